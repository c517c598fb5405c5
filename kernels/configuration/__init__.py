"""The oracle's input: a run, the case, and where its parameters are."""
