"""Quantities with units, read at the border: "12.5 GB/s" becomes 12.5e9.

Everything inside is in SI units (bytes, seconds, operations), as plain numbers; this file is the
only one that reads unit suffixes. It reads a dozen units by a table: a library of units takes 0.2 s
to load, of a question that takes one. Decimal arithmetic keeps "40.31 us" the very float that
40.31e-6 is.
"""

import math
import re
from decimal import Decimal, DecimalException
from functools import lru_cache
from numbers import Real

from grids.reading.errors import InputError, shorten

SCALES = {
    name: Decimal(scale)
    for names, scale in (
        ("n nano", "1e-9"),
        ("u µ μ micro", "1e-6"),  # two characters that look alike: the micro sign, the Greek letter
        ("m milli", "1e-3"),
        ("k K kilo", "1e3"),  # KB is 1,000 bytes, as on data sheets; KiB is 1,024
        ("M mega", "1e6"),
        ("G giga", "1e9"),
        ("T tera", "1e12"),
        ("P peta", "1e15"),
        ("E exa", "1e18"),
        ("Ki kibi", 2**10),
        ("Mi mebi", 2**20),
        ("Gi gibi", 2**30),
        ("Ti tebi", 2**40),
        ("Pi pebi", 2**50),
    )
    for name in names.split()
}

# What each name means: a size in one of the units that are used inside.
UNITS = {
    name: (Decimal(size), unit)
    for names, size, unit in (
        ("s sec secs second seconds", 1, "s"),
        ("min mins minute minutes", 60, "s"),
        ("h hour hours", 3600, "s"),
        ("B byte bytes", 1, "B"),
        ("b bit bits", "0.125", "B"),  # adapters are sold by it: 400 Gbit/s is 50 GB/s
        ("FLOP FLOPs flop", 1, "FLOP"),
        ("Bps", 1, "B/s"),
        ("bps", "0.125", "B/s"),
        ("FLOPS flops", 1, "FLOP/s"),
    )
    for name in names.split()
}

# A well-written quantity for each unit that is used inside.
EXAMPLES = {
    "B/s": "12.5 GB/s",
    "s": "40.31 us",
    "B": "16 GiB",
    "FLOP/s": "15.7 TFLOP/s",
    "1": "1",
}

# Prefixes for people.
PREFIXES = (
    *((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
    *((1e-3, "m"), (1e-6, "u"), (1e-9, "n")),
)

# A number and a unit, and no expression.
QUANTITY = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"\s*(?P<unit>[A-Za-zµμ]+(?:\s*/\s*[A-Za-zµμ]+)?)?\s*"
)
# Longer ones are no quantity, and matching takes time that grows with the square of the length.
MOST_TEXT = 400


def parse_quantity(value: object, unit: str, where: str, example: str | None = None) -> float:
    """The value in `unit` ("B/s", "s", "B", "FLOP/s" or "1"); a bare number is in it already.

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
        )
    # Links are sold by the bit, sizes of memory and messages are not: 32 Gb is a slip.
    if unit == "B" and isinstance(value, str) and value.rstrip().endswith(("b", "bit")):
        bytes_text = re.sub(r"(b|bit)$", "B", value.strip())
        raise InputError(
            f"{shorten(value)} is in bits",
            where=where,
            advice=f"did you mean {shorten(bytes_text)}? Else write {number:g} B",
        )
    return number


def has_unit(value: object) -> bool:
    """Whether a quantity states its unit."""
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return match is not None and match["unit"] is not None


def _convert_float(value: Real) -> float:
    """The number in float64, infinite where it is too large for that."""
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf


def _read_quantity(text: str, unit: str) -> float | None:
    """The number in `unit`, None where the text is no such quantity."""
    match = QUANTITY.fullmatch(text) if len(text) <= MOST_TEXT else None
    if match is None:
        return None
    number, suffix = match["number"], match["unit"]
    if suffix is None:
        return float(number)
    factor = None if unit == "1" else _find_factor(suffix, unit)
    return None if factor is None else _multiply(number, factor)


def _multiply(number: str, factor: Decimal) -> float:
    """The product in decimal arithmetic; infinite where it is too large."""
    try:
        return float(Decimal(number) * factor)
    except DecimalException:  # an exponent of a million
        return math.inf


@lru_cache(maxsize=1024)  # a list of 30,000 quantities has few units
def _find_factor(suffix: str, unit: str) -> Decimal | None:
    """The size of `suffix` in `unit`; None where it is no unit or has another dimension."""
    terms = [_find_unit(name.strip()) for name in suffix.split("/")]
    known = [term for term in terms if term is not None]
    if len(known) < len(terms) or "/".join(name for _, name in known) != unit:
        return None
    size, *divisors = (factor for factor, _ in known)
    return size / divisors[0] if divisors else size


def _find_unit(text: str) -> tuple[Decimal, str] | None:
    """The size of a unit, with a prefix, too, and the unit of that size."""
    for length in range(len(text)):
        scale, unit = SCALES.get(text[:length]), UNITS.get(text[length:])
        if unit is not None and (scale is not None or length == 0):
            return (scale or 1) * unit[0], unit[1]
    return None


def format_quantity(value: float, unit: str, digits: int = 4) -> str:
    """A quantity as a person reads it: 16e9, "B" as "16 GB"; 9e-6, "s" as "9 us"."""
    size, prefix = next((step for step in PREFIXES if abs(value) >= step[0]), (1.0, ""))
    return f"{value / size:.{digits}g} {prefix}{unit}"
