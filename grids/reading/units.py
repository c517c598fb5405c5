"""Quantities with units, parsed on input: "12.5 GB/s" becomes 12.5e9.

All code works in SI units (bytes, seconds, operations) with plain numbers; only this file parses
unit suffixes. It uses pint with our own registry: the default one sometimes takes "B" for bel, has
no operations, and is slow to load. Decimal arithmetic makes "40.31 us" exactly 40.31e-6.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, DecimalException
from functools import cache, lru_cache
from numbers import Real
from typing import TYPE_CHECKING

from paradl.grids.reading.errors import InputError, shorten

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
    "week = 7 * day",
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
    "1": "0.8",
    "count": "1024",
    "amount": "15e12",
}

# What may stand behind a number without a unit. Amounts, such as tokens and rows, are decimal.
# Counts of PEs, samples and tokens of a sequence come in powers of two: 8k tokens are 8,192.
AMOUNTS = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9, "T": 10**12}
COUNTS = {"k": 2**10, "K": 2**10, "M": 2**20}
SUFFIXES: Mapping[str, Mapping[str, Decimal]] = {
    "1": {"%": Decimal("0.01")},
    "count": {suffix: Decimal(size) for suffix, size in COUNTS.items()},
    "amount": {suffix: Decimal(size) for suffix, size in AMOUNTS.items()},
}
WHOLE = ("count", "amount")

# Prefixes for output.
PREFIXES = (
    *((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
    *((1e-3, "m"), (1e-6, "u"), (1e-9, "n")),
)

# Of input without pint.
PLAIN = {prefix: Decimal(str(size)) for size, prefix in PREFIXES} | {
    f"{prefix}i": Decimal(1024**n) for n, prefix in enumerate("KMGTP", 1)
}

# Of durations from seconds on.
TIMES = ("s", "s/epoch")
LONG_TIMES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))

# A number and a unit, since pint itself would also evaluate expressions such as "9**9**9".
QUANTITY = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"\s*(?P<unit>[A-Za-zµμ]+(?:\s*/\s*[A-Za-zµμ]+)?|%)?\s*"
)
# Several times, as in 1h30m.
PART = r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*"
# A longer text is no quantity, and matching time grows with the square of the length.
MOST_TEXT = 400


def parse_quantity(value: object, unit: str, where: str, example: str | None = None) -> float:
    """Parse a value in `unit`, the unit of bare numbers: "B/s", "s", "B", "FLOP/s", "W", "1".

    unit: "1" also takes 80%; "count" and "amount" are whole numbers, which take 8k and 15T.
    example: a value of the usual size, for the message.
    """
    if isinstance(value, str):
        number = _read_quantity(value, unit)
    elif isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer of more than 308 digits
            number = math.inf
    else:
        number = None
    whole = unit in WHOLE
    if number is None or not math.isfinite(number) or (whole and number != round(number)):
        kind = f"a value in {unit}"
        if unit in SUFFIXES:
            kind = f"a {'whole ' if whole else ''}number"
        raise InputError(
            f"expected {kind}, got {shorten(value)}",
            where=where,
            advice=f"write it like {example or EXAMPLES[unit]!r}",
            page="wrong-value",
        )
    if isinstance(value, str):
        _refuse_ambiguous(value, number, unit, where)
    return number


def parse_count(value: object, where: str, unit: str = "count") -> int:
    """Parse a whole number, as `parse_quantity` does; unit: "count" or "amount"."""
    return int(parse_quantity(value, unit, where))


def _refuse_ambiguous(text: str, number: float, unit: str, where: str) -> None:
    """Raise InputError for memory in bits, and for counts whose thousands may be 1,000 or 1,024."""
    # Links are sold in bits, but memory and messages are not: 32 Gb is a typo.
    if unit == "B" and text.rstrip().endswith(("b", "bit")):
        bytes_text = re.sub(r"(b|bit)$", "B", text.strip())
        raise InputError(
            f"{shorten(text)} is in bits",
            where=where,
            advice=f"did you mean {shorten(bytes_text)}? Otherwise write {number:g} B",
            page="wrong-value",
        )
    match = QUANTITY.fullmatch(text) if unit == "count" else None
    suffix = match["unit"] if match else None
    # People say 8k for 8,192 and 100k for 100,000. `frexp` splits powers of two into 0.5 and more.
    if suffix is not None and math.frexp(abs(number))[0] not in (0, 0.5):
        decimal = number / COUNTS[suffix] * AMOUNTS[suffix]
        raise InputError(
            f"{shorten(text)} may be {decimal:,.0f} or {number:,.0f}",
            where=where,
            advice="write all digits",
            page="wrong-value",
        )


def parse_duration(value: object, where: str, example: str) -> float:
    """Parse a time in seconds, above 0. InputError: none, or a text without a unit."""
    seconds = parse_quantity(value, "s", where, example)
    if isinstance(value, str) and not has_unit(value):
        raise InputError(
            f"{value} has no unit",
            where=where,
            advice=f"write {value.strip()} s, min, h or d",
            page="wrong-value",
        )
    if not seconds > 0:
        raise InputError(f"expected more than 0 s, got {shorten(value)}", where=where)
    return seconds


def has_unit(value: object) -> bool:
    """True if a quantity states its unit."""
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        return match["unit"] is not None
    return isinstance(value, str) and _read_sum(value) is not None


def _read_quantity(text: str, unit: str) -> float | None:
    """Parse a quantity in `unit`; None if the text is none."""
    match = QUANTITY.fullmatch(text) if len(text) <= MOST_TEXT else None
    if match is None:
        return _read_sum(text) if unit == "s" else None
    number, suffix = match["number"], match["unit"]
    if suffix is None:
        return float(number)
    factor = SUFFIXES[unit].get(suffix) if unit in SUFFIXES else _find_factor(suffix, unit)
    return None if factor is None else _multiply(number, factor)


def _read_sum(text: str) -> float | None:
    """Parse times in descending units, such as 1h30m, where m is minutes; None for others."""
    if len(text) > MOST_TEXT or re.fullmatch(rf"\s*(?:{PART}){{2,}}", text) is None:
        return None
    # Of the first part, an m might also be milli or million.
    head, *rest = re.findall(PART, text)
    parts = [head, *((number, "min" if unit == "m" else unit) for number, unit in rest)]
    sizes = [size for _, unit in parts if (size := _find_factor(unit, "s")) is not None]
    if len(sizes) < len(parts) or sizes != sorted({*sizes}, reverse=True):
        return None
    return float(sum(Decimal(part[0]) * size for part, size in zip(parts, sizes, strict=True)))


def _multiply(number: str, factor: Decimal) -> float:
    try:
        return float(Decimal(number) * factor)
    except DecimalException:  # an exponent of a million
        return math.inf


@lru_cache(maxsize=1024)  # a list of 30,000 quantities has few units
def _find_factor(suffix: str, unit: str) -> Decimal | None:
    """Return the size of `suffix` in `unit`; None if it is no unit or of another dimension."""
    # To import pint takes a tenth of a cold answer, which has little but GB, GiB, Gbit/s and us.
    in_bytes = suffix.replace("bit", "B")
    prefix = in_bytes.removesuffix(unit)
    if in_bytes.endswith(unit) and prefix in PLAIN:
        return PLAIN[prefix] / (8 if "bit" in suffix else 1)
    import pint

    try:
        given = _load_registry().parse_units(suffix)
        quantity = _load_registry().Quantity(Decimal(1), given)
        return Decimal(quantity.to(_load_registry().parse_units(unit)).magnitude)
    except (pint.PintError, ValueError):
        return None


@cache
def _load_registry() -> "pint.UnitRegistry[Decimal]":
    import pint

    registry: pint.UnitRegistry[Decimal] = pint.UnitRegistry(None, non_int_type=Decimal)
    for definition in DEFINITIONS:
        registry.define(definition)
    return registry


def find_prefix(most: float, unit: str) -> tuple[float, str]:
    """Find a prefix for numbers up to `most`, in absolute terms: its size, and the whole unit.

    A time beyond two minutes has minutes, hours or days: 90 min say more than 1.5 h.
    """
    if unit in TIMES:
        _, _, per = unit.partition("s")
        for size, name in LONG_TIMES:
            if most >= 2 * size:
                return size, f"{name}{per}"
    size, prefix = next((step for step in PREFIXES if most >= step[0]), (1.0, ""))
    return size, f"{prefix}{unit}"


def format_quantity(value: float, unit: str, digits: int = 4) -> str:
    """Format a quantity for people: 16e9, "B" as "16 GB"; 9e-6, "s" as "9 us"; 0.8, "1" as 0.8."""
    if unit == "1":  # a share has no prefix
        return f"{value:,.{digits}g}"
    size, whole = find_prefix(abs(value), unit)
    return f"{float(f'{value / size:.{digits}g}'):,.15g} {whole}"
