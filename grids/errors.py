"""The errors of the border: one clear message instead of a traceback.

An `InputError` is the user's to mend, so its text says where, what and what to do. A `ShapeError`
is an answer rather than a fault: a sweep crosses every model with every dataset and marks the
pairs that do not fit.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input: one clear message: where, what, and what to do."""

    def __init__(self, what: str, *, where: str = "", advice: str = "") -> None:
        prefix = f"{where}: " if where else ""
        suffix = f"; {advice}" if advice else ""
        super().__init__(f"{prefix}{what}{suffix}")


class ShapeError(ValueError):
    """A sample does not fit an architecture; the text names the layer."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice on a misspelt name: the nearest known one, then all of them."""
    names = sorted(known)
    folded = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), folded, n=1)
    hint = f"did you mean {folded[close[0]]!r}? " if close else ""
    return f"{hint}known: {', '.join(names) or 'none'}"
