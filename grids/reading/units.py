"""Quantities with units, parsed on input: "12.5 GB/s" becomes 12.5e9.

All code works in SI units (bytes, seconds, operations) with plain numbers; only this file parses
unit suffixes. Decimal arithmetic makes "40.31 us" exactly 40.31e-6.
"""

import math
import re
from decimal import Decimal, DecimalException
from functools import lru_cache
from numbers import Real

from grids.reading.errors import InputError, shorten

# What a prefix multiplies by. KB is 1,000 bytes here, as on data sheets; KiB is 1,024. The micro
# sign and the Greek letter look alike.
FACTORS: dict[str, Decimal] = {
    "": Decimal(1),
    **dict.fromkeys(("n", "nano"), Decimal("1e-9")),
    **dict.fromkeys(("u", "\u00b5", "\u03bc", "micro"), Decimal("1e-6")),
    **dict.fromkeys(("m", "milli"), Decimal("1e-3")),
    **dict.fromkeys(("k", "K", "kilo"), Decimal(10**3)),
    **dict.fromkeys(("M", "mega"), Decimal(10**6)),
    **dict.fromkeys(("G", "giga"), Decimal(10**9)),
    **dict.fromkeys(("T", "tera"), Decimal(10**12)),
    **dict.fromkeys(("P", "peta"), Decimal(10**15)),
    **dict.fromkeys(("E", "exa"), Decimal(10**18)),
    **dict.fromkeys(("Ki", "kibi"), Decimal(2**10)),
    **dict.fromkeys(("Mi", "mebi"), Decimal(2**20)),
    **dict.fromkeys(("Gi", "gibi"), Decimal(2**30)),
    **dict.fromkeys(("Ti", "tebi"), Decimal(2**40)),
    **dict.fromkeys(("Pi", "pebi"), Decimal(2**50)),
}
# Each unit's size in an SI unit. Adapters are sold in bits: 400 Gbit/s is 50 GB/s.
BIT = Decimal("0.125")
UNITS: dict[str, tuple[Decimal, str]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (Decimal(1), "s")),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), (Decimal(60), "s")),
    **dict.fromkeys(("h", "hour", "hours"), (Decimal(3600), "s")),
    **dict.fromkeys(("d", "day", "days"), (Decimal(86_400), "s")),
    **dict.fromkeys(("B", "byte", "bytes"), (Decimal(1), "B")),
    **dict.fromkeys(("b", "bit", "bits"), (BIT, "B")),
    **dict.fromkeys(("FLOP", "FLOPs", "flop"), (Decimal(1), "FLOP")),
    "Bps": (Decimal(1), "B/s"),
    "bps": (BIT, "B/s"),
    **dict.fromkeys(("FLOPS", "flops"), (Decimal(1), "FLOP/s")),
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

# A number and a unit, or two with a slash between them.
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
    parts = [_find_unit(part.strip()) for part in suffix.split("/")]
    sizes = [part[0] for part in parts if part]
    if len(sizes) < len(parts) or "/".join(part[1] for part in parts if part) != unit:
        return None
    return sizes[0] / sizes[1] if len(sizes) > 1 else sizes[0]


def _find_unit(text: str) -> tuple[Decimal, str] | None:
    """Return the size of a unit with a prefix, and the SI unit that it is of."""
    # The longest unit first: "min" is a minute, and no thousandth of anything.
    for start in range(len(text)):
        if text[start:] in UNITS and text[:start] in FACTORS:
            size, unit = UNITS[text[start:]]
            return FACTORS[text[:start]] * size, unit
    return None


def format_quantity(value: float, unit: str, digits: int = 4) -> str:
    """Format a quantity for people: 16e9, "B" as "16 GB"; 9e-6, "s" as "9 us"."""
    size, prefix = next((step for step in PREFIXES if abs(value) >= step[0]), (1.0, ""))
    return f"{value / size:.{digits}g} {prefix}{unit}"
