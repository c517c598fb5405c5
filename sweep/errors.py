"""Errors that stop a run, although its input is right."""

from importlib.util import find_spec

from paradl.grids.reading.errors import ErrorPage


class RunError(RuntimeError):
    """A run failed: one message that says what, where, and how to go on. Nothing done is lost.

    page: as of an `InputError`.
    """

    def __init__(self, message: str, page: ErrorPage = "") -> None:
        super().__init__(message)
        self.page = page


class NothingFeasibleError(RunError):
    """Nothing in the question is feasible: there is nothing to show."""


def expect_libraries(purpose: str, names: tuple[str, ...], extra: str) -> None:
    """RunError: a library that comes with an extra of paradl is not installed."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise RunError(
            f"{purpose} need {', '.join(missing)}; "
            f"install paradl with its extra: pip install '.[{extra}]'",
            page="missing-library",
        )
