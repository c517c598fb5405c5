"""Quantities with units, parsed on input: "12.5 GB/s" becomes 12.5e9.

All code works in SI units (bytes, seconds, operations) with plain numbers; only this file parses
unit suffixes. Decimal arithmetic makes "40.31 us" exactly 40.31e-6.
"""

import math
import re
from decimal import Decimal, DecimalException
from functools import cache, lru_cache
from itertools import product
from numbers import Real

from grids.reading.errors import InputError, shorten

# What may precede a unit's name, and by how much it makes it larger.
MULTIPLES = {
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
# Names of each unit, and its size in one of ours.
UNITS = {
    ("second", "sec", "s"): ("1", "s"),
    ("minute", "min"): ("60", "s"),
    ("hour", "h"): ("3600", "s"),
    ("day", "d"): ("86400", "s"),
    ("byte", "B"): ("1", "B"),
    # Network adapters are sold in bits: 400 Gbit/s is 50 GB/s.
    ("bit", "b"): ("0.125", "B"),
    ("flop", "FLOP"): ("1", "FLOP"),
    ("Bps",): ("1", "B/s"),
    ("bps",): ("0.125", "B/s"),
    ("flops", "FLOPS"): ("1", "FLOP/s"),
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

# A number and a unit, which may be divided by another.
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


@lru_cache(maxsize=1024)  # a list of 30,000 quantities has few units
def _find_factor(suffix: str, unit: str) -> Decimal | None:
    """Return the size of `suffix` in `unit`; None if it is no unit or of another dimension."""
    match [_list_units().get(name.strip()) for name in suffix.split("/")]:
        case [(size, whole)] if whole == unit:
            return size
        case [(size, above), (divisor, below)] if f"{above}/{below}" == unit:
            return size / divisor
    return None


@cache
def _list_units() -> dict[str, tuple[Decimal, str]]:
    """List what a unit may be called: "GB", "gigabytes". The size of each, and of which unit."""
    singular: dict[str, tuple[Decimal, str]] = {}
    plural: dict[str, tuple[Decimal, str]] = {}
    for prefixes, multiple in MULTIPLES.items():
        for names, (size, unit) in UNITS.items():
            value = Decimal(multiple) * Decimal(size), unit
            for prefix, name in product(prefixes, names):
                singular[prefix + name] = value
                if len(name) > 1:  # "GBs" is none: it may be meant as GB/s
                    plural[f"{prefix}{name}s"] = value
    return plural | singular  # "flops" are operations per second


def format_quantity(value: float, unit: str, digits: int = 4) -> str:
    """Format a quantity for people: 16e9, "B" as "16 GB"; 9e-6, "s" as "9 us"."""
    size, prefix = next((step for step in PREFIXES if abs(value) >= step[0]), (1.0, ""))
    return f"{value / size:.{digits}g} {prefix}{unit}"
