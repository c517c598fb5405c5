"""Options of the form NAME=VALUE, and messages that speak of options."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from grids.reading.errors import InputError, shorten


@contextmanager
def named_as_options() -> Iterator[None]:
    """Tell what is wrong with a configuration by the options that it was given with."""
    try:
        yield
    except InputError as error:
        text = re.sub(r"^axes\.(\w+)(\.\d+)?", r"--\1", str(error), flags=re.MULTILINE)
        text = re.sub(r"^parameters\b", "--set", text, flags=re.MULTILINE)
        raise InputError(re.sub(r"^calibration: ", "--calibration: ", text)) from None


def selection(sel: list[str] | None) -> dict[str, object]:
    """The values of each axis; an option that is repeated adds values."""
    pairs = _pairs(sel, "--sel")
    axes = dict.fromkeys(axis for axis, _ in pairs)
    return {axis: [value for each, value in pairs if each == axis] for axis in axes}


def once(items: list[str] | None, option: str) -> dict[str, str]:
    """The value of each name."""
    pairs = _pairs(items, option)
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError("expected each name once", where=option, advice="keep one value")
    return values


def _pairs(items: list[str] | None, option: str) -> list[tuple[str, str]]:
    """`name=value` options."""
    pairs = []
    for item in items or []:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name or not value:
            raise InputError(f"expected name=value, got {shorten(item)}", where=option)
        pairs.append((name, value))
    return pairs
