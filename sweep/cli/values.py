"""Parsing of option values: pairs NAME=VALUE, whole numbers, and names of the catalogue.

Names are checked before anything slow is imported, so that a typo is answered at once.
"""

from collections.abc import Mapping
from typing import Any, Literal

from grids.reading.errors import InputError, shorten

KINDS: tuple[Literal["model", "dataset", "system", "calibration"], ...] = (
    *("model", "dataset", "system", "calibration"),
)


def check_names(given: Mapping[str, Any], *, several: bool) -> None:
    """Refuse unknown names of models, data sets, systems, calibrations and strategies.

    given: by option, of which these are looked at. several: whether commas separate names.
    """
    # Late: it imports pydantic, which `--help` does not need.
    from grids.entries.names import check_name, split_labels
    from grids.entries.strategies import parse_strategy

    def split(option: str) -> list[str]:
        text = given.get(option)
        if text is None:
            return []
        return split_labels(text) if several else [text]

    for kind in KINDS:
        for name in split(kind):
            if kind == "calibration" and name in ("auto", "none"):
                continue
            try:
                check_name(kind, name)
            except InputError as error:
                raise InputError(str(error), where=f"--{kind}") from None
    for label in split("strategy"):
        parse_strategy(label, "--strategy")


def parse_selection(items: list[str] | None) -> dict[str, list[str]]:
    """Return the values of each axis; repeating an option adds values."""
    values: dict[str, list[str]] = {}
    for axis, value in _split_pairs(items, "--sel"):
        values.setdefault(axis, []).append(value)
    return values


def parse_settings(items: list[str] | None, option: str, advice: str = "") -> dict[str, str]:
    """Return the value of each name. InputError, with the advice: a repeated name, or no pair."""
    pairs = _split_pairs(items, option, advice)
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError("expected each name once", where=option, advice="keep one value")
    return values


def parse_counts(text: str, option: str, advice: str) -> int | list[int]:
    """Parse one whole number, or several separated by commas."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"expected whole numbers, got {shorten(text)}", where=option, advice=advice
        ) from None
    return counts if len(counts) > 1 else counts[0]


def _split_pairs(items: list[str] | None, option: str, advice: str = "") -> list[tuple[str, str]]:
    pairs = []
    # Only the first equals sign separates: strategy=data+filter:group=8.
    for item in items or []:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name or not value:
            raise InputError(
                f"expected name=value, got {shorten(item)}", where=option, advice=advice
            )
        pairs.append((name, value))
    return pairs
