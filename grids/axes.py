"""Axes: the values along one numeric dimension, listed or generated.

A list of values and generators, in any mixture: `[1, 3, {pow2: [4, 1024]}]`. The values are put in
ascending order and each is kept once, so that "the next PE count" means something.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from grids.errors import InputError, nearest
from grids.models.layers import Floats
from grids.parameters import PARAMETERS, Parameter
from grids.units import parse

# An axis beyond this is a slip of the pen: its coordinate alone would fill the memory.
MOST_VALUES = 10_000_000
COUNT = Parameter("the count", "1", "how many values lie from the first to the last", 2, whole=True)

# 0.1 + 0.1 + ... falls short of 1 by rounding, and yet a range up to 1 includes it.
SLACK = 1e-6  # steps

_SCALAR = {"anyOf": [{"type": "number"}, {"type": "string"}]}


def _schema(name: str, fewest: int, most: int) -> JsonSchemaValue:
    numbers = {"type": "array", "items": _SCALAR, "minItems": fewest, "maxItems": most}
    return {
        "type": "object",
        "properties": {name: numbers},
        "required": [name],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Axis:
    """Values of a parameter in SI units, ascending, and the form in which the user wrote them."""

    form: object = field(compare=False)
    values: tuple[float, ...]


@dataclass(frozen=True)
class AxisOf:
    """Tells pydantic how to read the axis of one parameter."""

    name: str

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda form: form if isinstance(form, Axis) else expand(form, PARAMETERS[self.name]),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda axis: axis.form),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        generators = [_schema(name, each.fewest, each.most) for name, each in GENERATORS.items()]
        item = {"anyOf": [_SCALAR, *generators]}
        parameter = PARAMETERS[self.name]
        return {
            "anyOf": [{"type": "array", "items": item, "minItems": 1}, item],
            "description": f"{parameter.meaning} [{parameter.unit}]",
        }


def expand(form: object, parameter: Parameter) -> Axis:
    """The values that a user's list, generator, or single value stands for."""
    items = form if isinstance(form, list | tuple) else [form]
    if not items:
        raise InputError("expected at least one value, got an empty list")
    parts = [_values(item, parameter) for item in items]
    _bounded(sum(part.size for part in parts))
    return Axis(form, tuple(np.unique(np.concatenate(parts)).tolist()))


def _values(item: object, parameter: Parameter) -> Floats:
    if not isinstance(item, dict):
        return np.array([parameter.read(item)])
    if len(item) != 1 or next(iter(item)) not in GENERATORS:
        name = str(next(iter(item), ""))
        raise InputError(
            f"expected a value or one generator, got {item!r}", advice=nearest(name, GENERATORS)
        )
    (name, arguments), *_ = item.items()
    generator = GENERATORS[name]
    listed = isinstance(arguments, list | tuple)
    if not listed or not generator.fewest <= len(arguments) <= generator.most:
        raise InputError(
            f"expected {name}: {generator.usage}, got {arguments!r}",
            advice=f"write it like '{generator.example}'",
        )
    values = generator.make(list(arguments), parameter)
    return np.round(values) if parameter.whole else values


def _powers_of_two(arguments: list[object], parameter: Parameter) -> Floats:
    first, last = _positive_ends(arguments, parameter)
    exponents = np.arange(np.ceil(np.log2(first)), np.floor(np.log2(last)) + 1)
    if not exponents.size:
        raise InputError(f"no power of two lies from {first:g} to {last:g}")
    return np.asarray(2.0**exponents)


def _range(arguments: list[object], parameter: Parameter) -> Floats:
    first, last = _ends(arguments, parameter)
    step = _step(arguments[2], parameter) if len(arguments) > 2 else 1.0
    count = int((last - first) / step + SLACK) + 1
    return np.minimum(first + step * np.arange(_bounded(count), dtype=float), last)


def _step(value: object, parameter: Parameter) -> float:
    step = parse(value, parameter.unit, "")
    if step <= 0 or (parameter.whole and step != round(step)):
        kind = "whole" if parameter.whole else "positive"
        raise InputError(f"range: expected a {kind} step above 0, got {value!r}")
    return step


def _linspace(arguments: list[object], parameter: Parameter) -> Floats:
    first, last = _ends(arguments, parameter)
    return np.linspace(first, last, _count(arguments[2]))


def _geomspace(arguments: list[object], parameter: Parameter) -> Floats:
    first, last = _positive_ends(arguments, parameter)
    return np.geomspace(first, last, _count(arguments[2]))


def _ends(arguments: list[object], parameter: Parameter) -> tuple[float, float]:
    first, last = parameter.read(arguments[0]), parameter.read(arguments[1])
    if first > last:
        raise InputError(
            f"expected the first value not above the last, got {arguments!r}",
            advice="swap them",
        )
    return first, last


def _positive_ends(arguments: list[object], parameter: Parameter) -> tuple[float, float]:
    first, last = _ends(arguments, parameter)
    if first <= 0:
        raise InputError(
            f"expected a first value above 0, got {arguments[0]!r}",
            advice="list 0 beside the generator",
        )
    return first, last


def _count(value: object) -> int:
    return _bounded(int(COUNT.read(value)))


def _bounded(count: int) -> int:
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
    "pow2": Generator(_powers_of_two, 2, 2, "[first, last]", "{pow2: [1, 1024]}"),
    "range": Generator(_range, 2, 3, "[first, last] or [first, last, step]", "{range: [1, 1024]}"),
    "linspace": Generator(_linspace, 3, 3, "[first, last, count]", "{linspace: [1, 100, 12]}"),
    "geomspace": Generator(
        _geomspace, 3, 3, "[first, last, count]", "{geomspace: [1e9, 1e12, 50]}"
    ),
}
