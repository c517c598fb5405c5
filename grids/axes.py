"""Axes: the values along one numeric dimension, listed or generated.

A list of values and generators in any combination: `[1, 3, {pow2: [4, 1024]}]`; a text may stand
for a generator: `pow2:4..1024`. Values are sorted, without duplicates, so that "the next PE count"
is defined. Samples may also draw values between two ends: `{uniform: [a, b]}`,
`{loguniform: [a, b]}`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue

from paradl.grids.entries.quantity import Parameter
from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.grids.reading.units import parse_quantity
from paradl.kernels.names.arrays import Floats

# A longer axis is a typo; its values alone would take several times 80 MB.
MOST_VALUES = 10_000_000
COUNT = Parameter("the count", "1", "the number of values, ends included", 2, whole=True)

Law = Literal["uniform", "loguniform"]
LAWS: tuple[Law, ...] = get_args(Law)

# A range as written for other programs, which might also mean powers of two: 1-64, 1:64.
_WRITTEN_RANGE = re.compile(r"\s*(\d+)\s*[-:]\s*(\d+)\s*")
_DOTS = re.compile(r"\.{2,3}|…")
_DASH = re.compile(r"(?<=[\dkKM])\s*[-:]\s*(?=\d)")  # no sign of an exponent

# 0.1 + 0.1 + ... misses 1 by rounding, but a range up to 1 should include it.
SLACK = 1e-6  # steps

# The JSON schema of one value, with or without a unit.
SCALAR = {"anyOf": [{"type": "number"}, {"type": "string"}]}


def _describe_generator(name: str, fewest: int, most: int) -> JsonSchemaValue:
    numbers = {"type": "array", "items": SCALAR, "minItems": fewest, "maxItems": most}
    return {
        "type": "object",
        "properties": {name: numbers},
        "required": [name],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Axis:
    """Values of a parameter in SI units, ascending, and the form that the user wrote.

    Axes with the same values are equal. An array takes a quarter of the memory of Python numbers.
    """

    # Kept in stores, where a million values stay the one line that the user wrote.
    form: object = field(compare=False)
    values: Floats = field(compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and np.array_equal(self.values, other.values)


@dataclass(frozen=True)
class Range:
    """Values from `low` to `high` in SI units, uniform in the value or in its logarithm; whole
    numbers for counts.

    >>> Range("loguniform", 1.0, 100.0).read_quantiles(np.array([0.5]))
    array([10.])
    """

    law: Law
    low: float
    high: float
    whole: bool = False
    # As the user wrote it; kept in a store of samples.
    form: object = field(default=None, compare=False)

    def read_quantiles(self, parts: Floats) -> Floats:
        """Return the values of quantiles in [0, 1)."""
        # Half a count more at either end makes all counts equally likely.
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        if self.law == "loguniform":
            values = np.exp(np.log(low) + parts * (np.log(high) - np.log(low)))
        else:
            values = low + parts * (high - low)
        if self.whole:
            values = np.round(values)
        # Halves round to even numbers, and exp(log(low)) may miss low by a bit.
        return np.asarray(np.clip(values, self.low, self.high))


def describe_axis(parameter: Parameter) -> Any:
    """Return the annotation by which pydantic reads, writes and describes a parameter's axis."""
    generators = [
        _describe_generator(name, generator.fewest, generator.most)
        for name, generator in GENERATORS.items()
    ]
    item = {"anyOf": [SCALAR, *generators]}
    ranges = [_describe_generator(law, 2, 2) for law in LAWS]
    forms: list[JsonSchemaValue] = [{"type": "array", "items": item, "minItems": 1}, item, *ranges]
    meaning = f"{parameter.meaning} [{parameter.unit}]"
    return Annotated[
        Axis | Range,
        PlainValidator(partial(_read_axis, parameter=parameter)),
        PlainSerializer(lambda axis: axis.form),
        WithJsonSchema({"anyOf": forms, "description": meaning}),
    ]


def _read_axis(form: object, parameter: Parameter) -> Axis | Range:
    if isinstance(form, Axis | Range):  # read before
        return form
    if isinstance(form, dict) and len(form) == 1 and next(iter(form)) in LAWS:
        return read_range(form, parameter)
    return expand_axis(form, parameter)


def read_range(form: object, parameter: Parameter) -> Range:
    """Read a range `{law: [first, last]}`; InputError: what is wrong with it."""
    assert isinstance(form, dict)
    (law, ends), *_ = form.items()
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        what = f"expected {law}: [first, last], such as [1e9, 1e11], got {shorten(ends)}"
        raise InputError(what)
    if parameter.layered and parameter.whole:
        what = f"{parameter.name} decides how layers are laid out and cannot be a range"
        raise InputError(what, advice="list its values")
    read_ends = _read_positive_ends if law == "loguniform" else _read_ends
    low, high = read_ends(list(ends), parameter)
    _expect_two(low, high)
    return Range(law, low, high, parameter.whole, form)


def expand_axis(form: object, parameter: Parameter) -> Axis:
    """Return the values of a user's list, generator or single value."""
    items = form if isinstance(form, list | tuple) else [form]
    if not items:
        raise InputError("expected at least one value, got an empty list")
    parts: list[Floats] = []
    count = 0
    for item in items:
        # Checked part by part: a list may repeat a generator of ten million values.
        parts.append(_expand_item(item, parameter))
        count = check_count(count + parts[-1].size)
    values = np.unique(np.concatenate(parts))
    values.flags.writeable = False  # the grid and all its blocks share the array
    return Axis(form, values)


def read_item(item: object) -> object:
    """Return the generator that a text stands for, such as `1..64`, `pow2:1-64`; others unchanged.

    InputError: a range without an end, or of an unknown kind.
    """
    if not isinstance(item, str):
        return item
    name, colon, rest = (part.strip() for part in item.partition(":"))
    dots = _DOTS.search(item)
    if not (dots or (colon and name in GENERATORS)):
        return item
    if not colon:
        name, rest = "range", item
    ends = [part.strip() for part in (_DOTS if dots else _DASH).split(rest)]
    if name not in GENERATORS or "" in ends:
        raise InputError(
            f"expected a range, got {shorten(item)}",
            advice=f"write it like '1..64' or 'pow2:1..64'; known: {', '.join(GENERATORS)}",
        )
    return {name: ends}


def _expand_item(item: object, parameter: Parameter) -> Floats:
    item = read_item(item)
    if not isinstance(item, dict):
        _refuse_slips(item)
        return np.array([parameter.read(item)])
    if len(item) != 1 or next(iter(item)) not in GENERATORS:
        raise InputError(
            f"expected a value or one generator, got {shorten(item)}",
            advice=suggest_name(str(next(iter(item), "")), GENERATORS),
        )
    (name, arguments), *_ = item.items()
    generator = GENERATORS[name]
    listed = isinstance(arguments, list | tuple)
    if not listed or not generator.fewest <= len(arguments) <= generator.most:
        counts = " or ".join(map(str, dict.fromkeys((generator.fewest, generator.most))))
        raise InputError(
            f"expected {counts} values of {name}, got {shorten(arguments)}",
            advice=f"write it like '{generator.example}'",
        )
    values = generator.make(list(arguments), parameter)
    # For counts, linspace: [1, 10, 3] is 1, 6, 10.
    return np.round(values) if parameter.whole else values


def _refuse_slips(item: object) -> None:
    """Refuse `1-64`, which means more than one value, and the `024` of `1,024` cut at its comma."""
    match = _WRITTEN_RANGE.fullmatch(item) if isinstance(item, str) else None
    if match is not None:
        raise InputError(
            f"expected a value or a range, got {shorten(item)}",
            advice=f"write the range as '{{range: [{match[1]}, {match[2]}]}}'",
        )
    if isinstance(item, str) and re.fullmatch(r"0\d+", item):
        raise InputError(f"unexpected zero in {item}", advice="write thousands without a comma")


def _make_powers_of_two(arguments: list[object], parameter: Parameter) -> Floats:
    """Return the powers of two from the first value, which must be one, to the last."""
    first, last = _read_positive_ends(arguments, parameter)
    exponents = np.arange(np.ceil(np.log2(first)), np.floor(np.log2(last)) + 1)
    if not exponents.size:
        raise InputError(f"no power of two is in {first:g} to {last:g}")
    values = np.asarray(2.0**exponents)
    # {pow2: [3, 100]} would silently begin at 4. The last value may be any bound.
    if values[0] != first:
        pair = f"[{values[0]:g}, {values[-1]:g}]"
        raise InputError(
            f"expected a power of two as the first value, got {shorten(arguments[0])}",
            advice=f"write {pair}, and list {first:g} beside the generator",
        )
    return values


def _make_range(arguments: list[object], parameter: Parameter) -> Floats:
    """Return values in equal steps, with the last one if a step meets it."""
    first, last = _read_ends(arguments, parameter)
    step = _read_step(arguments[2], parameter) if len(arguments) > 2 else 1.0
    # {range: [1, 64, 10000]} would silently be just 1.
    if last > first and step > (last - first) * (1 + SLACK):
        raise InputError(f"range: a step of {step:g} exceeds the last value, {last:g}")
    # A tiny step would make the count infinite, which is no integer.
    if (last - first) / step > 1e15:
        raise InputError(f"range: a step of {step:g} is too small from {first:g} to {last:g}")
    count = int((last - first) / step + SLACK) + 1
    # Rounding may put a value that the slack admits above the last.
    return np.minimum(first + step * np.arange(check_count(count), dtype=float), last)


def _read_step(value: object, parameter: Parameter) -> float:
    # A step is a difference: the parameter's bounds and usual size do not apply.
    step = parse_quantity(value, parameter.unit, "")
    if step <= 0 or (parameter.whole and step != round(step)):
        kind = "whole" if parameter.whole else "positive"
        raise InputError(f"range: expected a {kind} step above 0, got {shorten(value)}")
    return step


def _make_linspace(arguments: list[object], parameter: Parameter) -> Floats:
    first, last = _read_ends(arguments, parameter)
    count = _read_count(arguments[2], first, last)
    # More values would coincide after rounding, and the axis would be shorter than requested.
    if parameter.whole and count > last - first + 1:
        whole = f"{last - first + 1:g} whole numbers"
        raise InputError(f"linspace: there are only {whole} in {first:g} to {last:g}")
    return np.linspace(first, last, count)


def _make_geomspace(arguments: list[object], parameter: Parameter) -> Floats:
    first, last = _read_positive_ends(arguments, parameter)
    # Small counts may coincide: geomspace: [1, 8, 20] is 1 to 8, as is customary.
    return np.geomspace(first, last, _read_count(arguments[2], first, last))


def _read_ends(arguments: list[object], parameter: Parameter) -> tuple[float, float]:
    """Parse the first and the last value, which must not be below the first."""
    first, last = parameter.read(arguments[0]), parameter.read(arguments[1])
    if first > last:
        raise InputError(f"expected the first value not above the last, got {shorten(arguments)}")
    return first, last


def _read_positive_ends(arguments: list[object], parameter: Parameter) -> tuple[float, float]:
    """Parse ends above 0, as ratios and powers need them."""
    first, last = _read_ends(arguments, parameter)
    if first <= 0:
        raise InputError(f"expected a first value above 0, got {shorten(arguments[0])}")
    return first, last


def _read_count(value: object, first: float, last: float) -> int:
    """Parse how many values lie from the first to the last, both included."""
    count = check_count(int(COUNT.read(value)))
    _expect_two(first, last)
    return count


def _expect_two(first: float, last: float) -> None:
    if first == last:
        raise InputError(f"expected a last value above the first, got {first:g} twice")


def check_count(count: int) -> int:
    """Return the count if an array of that size may be made."""
    if count > MOST_VALUES:
        raise InputError(f"expected at most {MOST_VALUES:,} values, got {count:,}")
    return count


@dataclass(frozen=True)
class Generator:
    """A way to write many values: its function, its number of arguments, and an example."""

    make: Callable[[list[object], Parameter], Floats]
    fewest: int
    most: int
    example: str


GENERATORS = {
    "pow2": Generator(_make_powers_of_two, 2, 2, "{pow2: [1, 1024]}"),
    "range": Generator(_make_range, 2, 3, "{range: [1, 1024]}"),
    "linspace": Generator(_make_linspace, 3, 3, "{linspace: [1, 100, 12]}"),
    "geomspace": Generator(_make_geomspace, 3, 3, "{geomspace: [1e9, 1e12, 50]}"),
}
