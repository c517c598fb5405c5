"""Errors that stop a run, although its input is right."""


class RunError(RuntimeError):
    """A run failed: one message that says what, where, and how to go on. Nothing done is lost."""


class NothingFeasibleError(RunError):
    """Nothing in the question is feasible: there is nothing to show."""
