"""Configuration: a run, the case that the oracle is asked, and where its values stand."""
