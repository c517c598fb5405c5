"""Axes: the values along one numeric dimension, listed or generated.

A list of values and generators, in any mixture: `[1, 3, {pow2: [4, 1024]}]`. The values are put in
ascending order and each is kept once, so that "the next PE count" means something.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from grids.entries.quantity import Parameter
from grids.models.layers import Floats
from grids.ranges import LAWS, Range, is_range, read_range
from grids.reading.errors import InputError, shorten, suggest_name
from grids.reading.units import parse_quantity

# An axis beyond this is a slip of the pen: its values alone take 80 MB, several times over.
MOST_VALUES = 10_000_000
COUNT = Parameter("the count", "1", "how many values lie from the first to the last", 2, whole=True)

# A range as other programs write it: 1-64, 1..64, 1:64, 1...64.
_WRITTEN_RANGE = re.compile(r"\s*(\d+)\s*(?:-|:|\.{2,3})\s*(\d+)\s*")

# 0.1 + 0.1 + ... falls short of 1 by rounding, and yet a range up to 1 includes it.
SLACK = 1e-6  # steps

_SCALAR = {"anyOf": [{"type": "number"}, {"type": "string"}]}


def _describe_generator(name: str, fewest: int, most: int) -> JsonSchemaValue:
    """JSON schema of a generator and its list of arguments."""
    numbers = {"type": "array", "items": _SCALAR, "minItems": fewest, "maxItems": most}
    return {
        "type": "object",
        "properties": {name: numbers},
        "required": [name],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Axis:
    """Values of a parameter in SI units, ascending, and the form in which the user wrote them.

    Axes of the same values are equal. An array: Python's own numbers would take four times as much.
    """

    # A store keeps it: a million values stay the one line that the user wrote.
    form: object = field(compare=False)
    values: Floats = field(compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())


@dataclass(frozen=True)
class AxisOf:
    """Tells pydantic how to read the axis of one parameter."""

    parameter: Parameter

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        # What has been read before passes as it is.
        return core_schema.no_info_plain_validator_function(
            lambda form: form if isinstance(form, Axis | Range) else self._read(form),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda axis: axis.form),
        )

    def _read(self, form: object) -> Axis | Range:
        """The values of a user's list, or the range that they are drawn from."""
        if is_range(form):
            return read_range(form, self.parameter)
        return expand_axis(form, self.parameter)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        generators = [
            _describe_generator(name, generator.fewest, generator.most)
            for name, generator in GENERATORS.items()
        ]
        item = {"anyOf": [_SCALAR, *generators]}
        ranges = [_describe_generator(law, 2, 2) for law in LAWS]
        return {
            "anyOf": [{"type": "array", "items": item, "minItems": 1}, item, *ranges],
            "description": f"{self.parameter.meaning} [{self.parameter.unit}]",
        }


def expand_axis(form: object, parameter: Parameter) -> Axis:
    """The values that a user's list, generator, or single value stands for."""
    items = form if isinstance(form, list | tuple) else [form]
    if not items:
        raise InputError("expected at least one value, got an empty list")
    parts: list[Floats] = []
    count = 0
    for item in items:
        # Counted part by part: a list may name a generator of ten million values a thousand times.
        parts.append(_expand_item(item, parameter))
        count = _check_count(count + parts[-1].size)
    values = np.unique(np.concatenate(parts))
    values.flags.writeable = False  # the grid and all of its blocks share it
    return Axis(form, values)


def _expand_item(item: object, parameter: Parameter) -> Floats:
    """The values of one entry: a quantity, or a generator's."""
    if not isinstance(item, dict):
        _refuse_written_range(item)
        return np.array([parameter.read(item)])
    if len(item) != 1 or next(iter(item)) not in GENERATORS:
        name = str(next(iter(item), ""))
        if name in LAWS:
            raise InputError(
                f"{name}: a range stands alone, and not among values, got {shorten(item)}",
                advice="write it without the brackets around it",
            )
        raise InputError(
            f"expected a value or one generator, got {shorten(item)}",
            advice=suggest_name(name, GENERATORS),
        )
    (name, arguments), *_ = item.items()
    generator = GENERATORS[name]
    listed = isinstance(arguments, list | tuple)
    if not listed or not generator.fewest <= len(arguments) <= generator.most:
        raise InputError(
            f"expected {name}: {generator.usage}, got {shorten(arguments)}",
            advice=f"write it like '{generator.example}'",
        )
    values = generator.make(list(arguments), parameter)
    # Of counts, linspace: [1, 10, 3] is 1, 6, 10.
    return np.round(values) if parameter.whole else values


def _refuse_written_range(item: object) -> None:
    """Refuse a text such as `1-64`, which stands for more than one value."""
    match = _WRITTEN_RANGE.fullmatch(item) if isinstance(item, str) else None
    if match is not None:
        raise InputError(
            f"expected a value or a range, got {shorten(item)}",
            advice=f"write the range as '{{range: [{match[1]}, {match[2]}]}}'",
        )


def _make_powers_of_two(arguments: list[object], parameter: Parameter) -> Floats:
    """Powers of two from the first to the last; what is no power of two cannot be the first."""
    first, last = _read_positive_ends(arguments, parameter)
    exponents = np.arange(np.ceil(np.log2(first)), np.floor(np.log2(last)) + 1)
    if not exponents.size:
        raise InputError(f"no power of two lies from {first:g} to {last:g}")
    values = np.asarray(2.0**exponents)
    # Else {pow2: [3, 100]} would begin at 4 in silence. The last need not be one: it is a bound.
    if values[0] != first:
        pair = f"[{values[0]:g}, {values[-1]:g}]"
        raise InputError(
            f"expected a power of two as the first value, got {shorten(arguments[0])}",
            advice=f"write {pair}, and list {first:g} beside the generator",
        )
    return values


def _make_range(arguments: list[object], parameter: Parameter) -> Floats:
    """Equal steps up to the last value, which is among them if a step leads there."""
    first, last = _read_ends(arguments, parameter)
    step = _read_step(arguments[2], parameter) if len(arguments) > 2 else 1.0
    # Else {range: [1, 64, 10000]} would be the 1 alone, in silence.
    if last > first and step > (last - first) * (1 + SLACK):
        raise InputError(
            f"range: the step {step:g} goes beyond the last value, {last:g}",
            advice="write a smaller step, or only the first value",
        )
    count = int((last - first) / step + SLACK) + 1
    # A value that the slack let in may lie beyond the last by its rounding.
    return np.minimum(first + step * np.arange(_check_count(count), dtype=float), last)


def _read_step(value: object, parameter: Parameter) -> float:
    """The step of a range, above 0; InputError where it is not."""
    # A difference of values: the parameter's bounds and its usual size are not its own.
    step = parse_quantity(value, parameter.unit, "")
    if step <= 0 or (parameter.whole and step != round(step)):
        kind = "whole" if parameter.whole else "positive"
        raise InputError(f"range: expected a {kind} step above 0, got {shorten(value)}")
    return step


def _make_linspace(arguments: list[object], parameter: Parameter) -> Floats:
    """As many values as are asked for, with equal differences."""
    first, last = _read_ends(arguments, parameter)
    count = _read_count(arguments[2], first, last)
    # More of them would be rounded onto each other, and the axis shorter than was asked for.
    if parameter.whole and count > last - first + 1:
        raise InputError(
            f"linspace: only {last - first + 1:g} whole numbers lie from {first:g} to {last:g}",
            advice=f"write {{range: [{first:g}, {last:g}]}}",
        )
    return np.linspace(first, last, count)


def _make_geomspace(arguments: list[object], parameter: Parameter) -> Floats:
    """As many values as are asked for, with equal ratios."""
    first, last = _read_positive_ends(arguments, parameter)
    # Of counts, small ones may fall together: geomspace: [1, 8, 20] is 1 to 8, as is customary.
    return np.geomspace(first, last, _read_count(arguments[2], first, last))


def _read_ends(arguments: list[object], parameter: Parameter) -> tuple[float, float]:
    """The first value and the last, which is not below it."""
    first, last = parameter.read(arguments[0]), parameter.read(arguments[1])
    if first > last:
        raise InputError(
            f"expected the first value not above the last, got {shorten(arguments)}",
            advice="swap them",
        )
    return first, last


def _read_positive_ends(arguments: list[object], parameter: Parameter) -> tuple[float, float]:
    """The first value, above 0, and the last: ratios and powers begin at no 0."""
    first, last = _read_ends(arguments, parameter)
    if first <= 0:
        raise InputError(
            f"expected a first value above 0, got {shorten(arguments[0])}",
            advice="list 0 beside the generator",
        )
    return first, last


def _read_count(value: object, first: float, last: float) -> int:
    """How many values lie from the first to the last, both among them."""
    count = _check_count(int(COUNT.read(value)))
    if first == last:
        raise InputError(
            f"expected a last value above the first, got {first:g} twice",
            advice=f"write {first:g} alone",
        )
    return count


def _check_count(count: int) -> int:
    """The count of values, before an array of that size is made."""
    if count > MOST_VALUES:
        raise InputError(f"expected at most {MOST_VALUES:,} values, got {count:,}")
    return count


@dataclass(frozen=True)
class Generator:
    """A way to write many values: what makes them, how many arguments it takes, how it looks."""

    make: Callable[[list[object], Parameter], Floats]
    fewest: int
    most: int
    usage: str
    example: str


GENERATORS = {
    "pow2": Generator(_make_powers_of_two, 2, 2, "[first, last]", "{pow2: [1, 1024]}"),
    "range": Generator(
        _make_range, 2, 3, "[first, last] or [first, last, step]", "{range: [1, 1024]}"
    ),
    "linspace": Generator(_make_linspace, 3, 3, "[first, last, count]", "{linspace: [1, 100, 12]}"),
    "geomspace": Generator(
        _make_geomspace, 3, 3, "[first, last, count]", "{geomspace: [1e9, 1e12, 50]}"
    ),
}
