"""Quantities with units, parsed on input: "12.5 GB/s" becomes 12.5e9.

All code works in SI units (bytes, seconds, operations) with plain numbers; only this file parses
unit suffixes. It uses pint with our own registry: the default one sometimes takes "B" for bel, has
no operations, and is slow to load. Decimal arithmetic makes "40.31 us" exactly 40.31e-6.
"""

import math
import re
from decimal import Decimal, DecimalException
from functools import cache, lru_cache
from numbers import Real
from typing import TYPE_CHECKING

from grids.reading.errors import InputError, shorten

if TYPE_CHECKING:
    import pint

DEFINITIONS = (
    "nano- = 1e-9 = n-",
    # The micro sign and the Greek letter, which look alike.
    "micro- = 1e-6 = u- = µ- = μ-",
    "milli- = 1e-3 = m-",
    # KB is 1,000 bytes here, as on data sheets; KiB is 1,024.
    "kilo- = 1e3 = k- = K-",
    "mega- = 1e6 = M-",
    "giga- = 1e9 = G-",
    "tera- = 1e12 = T-",
    "peta- = 1e15 = P-",
    "exa- = 1e18 = E-",
    "kibi- = 1024 = Ki-",
    "mebi- = 1048576 = Mi-",
    "gibi- = 1073741824 = Gi-",
    "tebi- = 1099511627776 = Ti-",
    "pebi- = 1125899906842624 = Pi-",
    "second = [time] = s = sec",
    "minute = 60 * second = min",
    "hour = 3600 * second = h",
    "day = 24 * hour = d",
    "byte = [information] = B",
    # Network adapters are sold in bits: 400 Gbit/s is 50 GB/s.
    "bit = 0.125 * byte = b",
    "flop = [operation] = FLOP",
    "watt = [power] = W",
    "bytes_per_second = byte / second = Bps",
    "bits_per_second = bit / second = bps",
    "flop_per_second = flop / second = FLOPS = flops",
)

# An example for messages, by unit.
EXAMPLES = {
    "B/s": "12.5 GB/s",
    "s": "40.31 us",
    "B": "16 GiB",
    "FLOP/s": "15.7 TFLOP/s",
    "W": "700 W",
    "1": "1",
}

# Prefixes for output.
PREFIXES = (
    *((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
    *((1e-3, "m"), (1e-6, "u"), (1e-9, "n")),
)

# A number and a unit, since pint itself would also evaluate expressions such as "9**9**9".
QUANTITY = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"\s*(?P<unit>[A-Za-zµμ]+(?:\s*/\s*[A-Za-zµμ]+)?)?\s*"
)
# A longer text is no quantity, and matching time grows with the square of the length.
MOST_TEXT = 400


def parse_quantity(value: object, unit: str, where: str, example: str | None = None) -> float:
    """Parse a value in `unit` ("B/s", "s", "B", "FLOP/s", "W" or "1"), the unit of bare numbers.

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
    import pint

    try:
        given = _load_registry().parse_units(suffix)
        quantity = _load_registry().Quantity(Decimal(1), given)
        return Decimal(quantity.to(_load_registry().parse_units(unit)).magnitude)
    except (pint.PintError, ValueError):
        return None


@cache
def _load_registry() -> "pint.UnitRegistry[Decimal]":
    """Load pint with our units alone, at the first suffix."""
    import pint

    registry: pint.UnitRegistry[Decimal] = pint.UnitRegistry(None, non_int_type=Decimal)
    for definition in DEFINITIONS:
        registry.define(definition)
    return registry


def format_quantity(value: float, unit: str, digits: int = 4) -> str:
    """Format a quantity for people: 16e9, "B" as "16 GB"; 9e-6, "s" as "9 us"; 0.8, "1" as 0.8."""
    if unit == "1":  # a share has no prefix
        return f"{value:,.{digits}g}"
    size, prefix = next((step for step in PREFIXES if abs(value) >= step[0]), (1.0, ""))
    return f"{value / size:.{digits}g} {prefix}{unit}"
