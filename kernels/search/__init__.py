"""Search for layouts: candidates, the best of them, why others do not fit, and what stacks run."""
