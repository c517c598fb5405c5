"""Errors that stop a run, although its input is right."""

import errno
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


def explain_failure(error: OSError) -> str:
    """Say why writing failed; a quota that is used up is a full disk, too."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "the disk is full" if is_full else f"writing failed ({error.strerror or error})"


def expect_libraries(purpose: str, names: tuple[str, ...], extra: str) -> None:
    """RunError: a library that comes with an extra of paradl is not installed."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise RunError(
            f"{purpose} need {', '.join(missing)}; "
            f"install paradl with its extra: pip install '.[{extra}]'",
            page="missing-library",
        )
