"""Errors in input: one clear message instead of a traceback.

An `InputError` is for the user to fix: it says where, what, and what to do. A `ShapeError` is a
result rather than a mistake: a sweep combines all models with all data sets and marks pairs that do
not fit. Users' values enter messages through `shorten`, so messages stay short.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr

from grids.reading.synonyms import find_synonym

MOST_TEXT = 900  # characters of a message
MOST_VALUE = 80  # characters of a value in a message
MOST_NAMES = 500  # characters of the known names in a message
NAMES_BESIDE_HINT = 20  # with more known names, only the hint is shown, or it would be overlooked
NAMES_COMPARED = 1000  # comparing is quadratic, and an axis may have a million values


class InputError(ValueError):
    """Bad input; the message says where, what, and what to do."""

    def __init__(self, what: str, *, where: str = "", advice: str = "") -> None:
        prefix = f"{where}: " if where else ""
        suffix = f"; {advice}" if advice else ""
        super().__init__(_cut_middle(f"{prefix}{what}{suffix}", MOST_TEXT))

    @classmethod
    def unknown(
        cls, kind: str, name: object, names: Iterable[str], *, where: str = ""
    ) -> "InputError":
        """Return the error for an unknown name, with the nearest known one as advice."""
        advice = suggest_name(str(name), names)
        return cls(f"unknown {kind} {shorten(name)}", where=where, advice=advice)


class ShapeError(ValueError):
    """A sample does not fit a network; the message names the layer."""

    def __init__(self, what: str) -> None:
        super().__init__(_cut_middle(what, MOST_TEXT))


class _Short(Repr):
    """`repr` of a few parts of a value of any size and depth."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = self.maxlong = MOST_VALUE

    def repr_int(self, x: int, level: int) -> str:
        # Python does not print numbers of more than 4300 digits, such as 0xfff... in a file.
        return super().repr_int(x, level) if x.bit_length() < 1000 else "an enormous number"


def shorten(value: object) -> str:
    """Return a user's value for a message, at most MOST_VALUE characters."""
    return _cut_middle(_Short().repr(value), MOST_VALUE)


def format_text(text: object) -> str:
    """Return a user's text without quotes if it is short and on one line."""
    usual = isinstance(text, str) and text.isprintable() and len(text) <= MOST_VALUE
    return str(text) if usual else shorten(text)


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Advise on an unknown name: the probable one, and the known ones."""
    listed = sorted(islice(names, NAMES_COMPARED))
    meant = find_meant(name, listed)
    known = f"known: {_cut_end(', '.join(listed), MOST_NAMES) or 'none'}"
    if meant is None:
        return known
    hint = f"did you mean {shorten(meant)}?"
    return hint if len(listed) > NAMES_BESIDE_HINT else f"{hint} {known}"


def find_meant(name: str, names: Collection[str]) -> str | None:
    """Return the name that an unknown one probably means; None if there is none."""
    synonym = find_synonym(name, names)
    if synonym is not None:
        return synonym
    # Similar digits do not make numbers similar: 200 is not a typo of 2000.
    if _is_number(name):
        return None
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(name[:MOST_VALUE].casefold(), folded, n=1)
    return folded[close[0]] if close else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cut_middle(text: str, most: int) -> str:
    """Keep the beginning, which says where, and the end, which says what to do."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def _cut_end(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
