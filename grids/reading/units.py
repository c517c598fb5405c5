"""Quantities with units, parsed on input: "12.5 GB/s" becomes 12.5e9.

All code works in SI units (bytes, seconds, operations) with plain numbers; only this file parses
unit suffixes. Decimal arithmetic makes "40.31 us" exactly 40.31e-6.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, DecimalException
from functools import cache
from itertools import product
from numbers import Real

from grids.reading.errors import InputError, shorten

SCALES: Mapping[tuple[str, ...], str] = {
    ("",): "1",
    ("nano", "n"): "1e-9",
    # The micro sign and the Greek letter, which look alike.
    ("micro", "u", "µ", "μ"): "1e-6",
    ("milli", "m"): "1e-3",
    # KB is 1,000 bytes here, as on data sheets; KiB is 1,024.
    ("kilo", "k", "K"): "1e3",
    ("mega", "M"): "1e6",
    ("giga", "G"): "1e9",
    ("tera", "T"): "1e12",
    ("peta", "P"): "1e15",
    ("exa", "E"): "1e18",
    ("kibi", "Ki"): "1024",
    ("mebi", "Mi"): "1048576",
    ("gibi", "Gi"): "1073741824",
    ("tebi", "Ti"): "1099511627776",
    ("pebi", "Pi"): "1125899906842624",
}
# Names of units, their sizes, and what these are in.
UNITS: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("second", "seconds", "s", "sec", "secs"): ("1", "s"),
    ("minute", "minutes", "min", "mins"): ("60", "s"),
    ("hour", "hours", "h"): ("3600", "s"),
    ("day", "days", "d"): ("86400", "s"),
    ("byte", "bytes", "B"): ("1", "B"),
    # Network adapters are sold in bits: 400 Gbit/s is 50 GB/s.
    ("bit", "bits", "b"): ("0.125", "B"),
    ("flop", "FLOP"): ("1", "FLOP"),
    ("Bps",): ("1", "B/s"),
    ("bps",): ("0.125", "B/s"),
    ("FLOPS", "flops"): ("1", "FLOP/s"),
}

# An example for messages, by unit.
EXAMPLES = {
    "B/s": "12.5 GB/s",
    "s": "40.31 us",
    "B": "16 GiB",
    "FLOP/s": "15.7 TFLOP/s",
    "1": "1",
}

# Prefixes for output.
PREFIXES = (
    *((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
    *((1e-3, "m"), (1e-6, "u"), (1e-9, "n")),
)

QUANTITY = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"\s*(?P<unit>[A-Za-zµμ]+(?:\s*/\s*[A-Za-zµμ]+)?)?\s*"
)
# A longer text is no quantity, and matching time grows with the square of the length.
MOST_TEXT = 400


def parse_quantity(value: object, unit: str, where: str, example: str | None = None) -> float:
    """Parse a value in `unit` ("B/s", "s", "B", "FLOP/s" or "1"), the unit of bare numbers.

    example: a value of the usual size, for the message.
    """
    if isinstance(value, str):
        number = _read_quantity(value, unit)
    elif isinstance(value, Real) and not isinstance(value, bool):
        number = _convert_float(value)
    else:
        number = None
    if number is None or not math.isfinite(number):
        kind = "a number" if unit == "1" else f"a value in {unit}"
        raise InputError(
            f"expected {kind}, got {shorten(value)}",
            where=where,
            advice=f"write it like {example or EXAMPLES[unit]!r}",
            page="wrong-value",
        )
    # Links are sold in bits, but memory and messages are not: 32 Gb is a typo.
    if unit == "B" and isinstance(value, str) and value.rstrip().endswith(("b", "bit")):
        bytes_text = re.sub(r"(b|bit)$", "B", value.strip())
        raise InputError(
            f"{shorten(value)} is in bits",
            where=where,
            advice=f"did you mean {shorten(bytes_text)}? Otherwise write {number:g} B",
            page="wrong-value",
        )
    return number


def has_unit(value: object) -> bool:
    """True if a quantity states its unit."""
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return match is not None and match["unit"] is not None


def _convert_float(value: Real) -> float:
    """Convert to float64; infinite if too large."""
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf


def _read_quantity(text: str, unit: str) -> float | None:
    """Parse a quantity in `unit`; None if the text is none."""
    match = QUANTITY.fullmatch(text) if len(text) <= MOST_TEXT else None
    if match is None:
        return None
    number, suffix = match["number"], match["unit"]
    if suffix is None:
        return float(number)
    factor = None if unit == "1" else _find_factor(suffix, unit)
    return None if factor is None else _multiply(number, factor)


def _multiply(number: str, factor: Decimal) -> float:
    """Multiply in decimal arithmetic; infinite if too large."""
    try:
        return float(Decimal(number) * factor)
    except DecimalException:  # an exponent of a million
        return math.inf


def _find_factor(suffix: str, unit: str) -> Decimal | None:
    """Return the size of `suffix` in `unit`; None if it is no unit or of another dimension."""
    above, rated, below = (part.strip() for part in suffix.partition("/"))
    unknown = Decimal(1), "?"
    size, stated = _list_units().get(above, unknown)
    if rated:
        time, per = _list_units().get(below, unknown)
        size, stated = size / time, f"{stated}/{per}"
    return size if stated == unit else None


@cache
def _list_units() -> dict[str, tuple[Decimal, str]]:
    """Return sizes by names with their prefixes, and what they are in."""
    return {
        prefix + name: (Decimal(scale) * Decimal(size), unit)
        for (prefixes, scale), (names, (size, unit)) in product(SCALES.items(), UNITS.items())
        for prefix, name in product(prefixes, names)
    }


def format_quantity(value: float, unit: str, digits: int = 4) -> str:
    """Format a quantity for people: 16e9, "B" as "16 GB"; 9e-6, "s" as "9 us"."""
    size, prefix = next((step for step in PREFIXES if abs(value) >= step[0]), (1.0, ""))
    return f"{value / size:.{digits}g} {prefix}{unit}"
