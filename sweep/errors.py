"""What can stop a run that was rightly asked for."""


class RunError(RuntimeError):
    """A run failed: one message that says what, where, and how to go on. Nothing done is lost."""


class NothingFeasibleError(RunError):
    """Of all that was asked about, nothing is feasible: there is nothing to show."""
