"""Rows: parameters that change together along one dimension of the cube.

Under `axes`, by a name that is no parameter's: a list of rows, columns of one length, a CSV file,
or a product, of which a condition may leave rows out.

    layout: [{group: 4, segments: 8}, {group: 8, segments: 4}]
    layout: {columns: {group: [4, 8], segments: [8, 4]}}
    layout: {csv: ./layouts.csv}
    layout: {product: {group: [1, 2, 4], segments: {pow2: [1, 16]}}, where: divides}
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import PlainSerializer, PlainValidator, ValidationError, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticKnownError

from paradl.grids.axes import GENERATORS, SCALAR, check_count, expand_axis
from paradl.grids.entries.parameters import FREE, PARAMETERS, expect_free, read_parameters
from paradl.grids.entries.quantity import Parameter
from paradl.grids.reading.csvfile import read_records
from paradl.grids.reading.errors import InputError, add_place, format_count, shorten
from paradl.kernels.names.arrays import Floats

Condition = Literal["divides"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
FORMS = ("columns", "csv", "product")
Place = AbstractContextManager[None]  # adds the place of a mistake to its error


@dataclass(frozen=True)
class Rows:
    """Values of several parameters, as the user wrote them, and in SI units.

    columns: by parameter, in the order of the table of parameters; empty for a file, until a grid
    is made of the spec. where: the condition that leaves rows out.
    """

    form: object = field(compare=False)
    columns: Mapping[str, Floats] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def values(self) -> Floats:
        """The values along the dimension of the rows: their numbers, from 0."""
        return np.arange(len(self), dtype=float)

    @property
    def file(self) -> str | None:
        """The CSV file with the rows, if they are in one."""
        return self.form.get("csv") if isinstance(self.form, dict) else None

    @property
    def condition(self) -> Condition | None:
        """The condition under which a row of a product stays."""
        return self.form.get("where") if isinstance(self.form, dict) else None

    def describe(self, name: str) -> Parameter:
        """The dimension of rows as a parameter: a count, chosen or given as its columns are."""
        parameters = [PARAMETERS[column] for column in self.columns]
        return Parameter(
            name,
            "1",
            f"the row of {', '.join(self.columns)}",
            0,
            whole=True,
            # Stages of pipelines depend on segments, too.
            layered=any(column.layered or column.name == "segments" for column in parameters),
            chosen=all(column.chosen for column in parameters),
        )

    def list_tuples(self) -> list[tuple[float, ...]]:
        """Each row's values, in the order of the columns."""
        return list(zip(*(values.tolist() for values in self.columns.values()), strict=True))

    def take(self, kept: Any) -> "Rows":
        """Return the rows of a mask, or at positions."""
        return Rows(self.form, {name: values[kept] for name, values in self.columns.items()})


def list_columns(form: Any) -> tuple[str, ...]:
    """List the parameters of a form that is no file, as written, without reading its values."""
    first = form[0] if isinstance(form, list) else form.get("columns", form.get("product", {}))
    return tuple(name for name in PARAMETERS if name in first)


def write_columns(columns: Mapping[str, Floats]) -> dict[str, object]:
    """The form of some columns, in SI units."""
    return {
        "columns": {
            name: [PARAMETERS[name].write(value) for value in values.tolist()]
            for name, values in columns.items()
        }
    }


def append_rows(first: Rows, second: Rows) -> Rows:
    """All rows of the first, then those that only the second has; both have the same columns."""
    known = dict.fromkeys(first.list_tuples())
    every = [*known | dict.fromkeys(second.list_tuples())]
    if every == second.list_tuples():  # which keeps the form that the user wrote
        return second
    table = np.array(every, float).T
    columns = dict(zip(first.columns, table, strict=True))
    return Rows(write_columns(columns), columns)


def _describe_forms() -> JsonSchemaValue:
    names = {"type": "object", "propertyNames": {"enum": [*FREE]}, "minProperties": 1}
    row = {"additionalProperties": SCALAR, **names}
    column = {"type": "array", "items": SCALAR, "minItems": 1}

    def describe(name: str, value: JsonSchemaValue, **more: JsonSchemaValue) -> JsonSchemaValue:
        keys = {"properties": {name: value, **more}, "required": [name]}
        return {"type": "object", "additionalProperties": False, **keys}

    return {
        "anyOf": [
            {"type": "array", "items": row, "minItems": 1},
            describe("columns", {"additionalProperties": column, **names}),
            describe("csv", {"type": "string"}),
            describe("product", names, where={"enum": [*CONDITIONS]}),
        ],
        "description": "rows of parameters that change together, along an axis of any name",
    }


@contextmanager
def _at(*loc: str | int) -> Iterator[None]:
    """Let pydantic report an InputError at a place inside the form."""
    try:
        yield
    except InputError as error:
        cause = PydanticCustomError("value_error", "{text}", {"text": str(error)})
        details = InitErrorDetails(type=cause, loc=loc, input=None)
        raise ValidationError.from_exception_data("rows", [details]) from None


def _read_form(form: object) -> Rows:
    """Read rows, all but a file's; what looks like no rows is an unknown key."""
    if isinstance(form, Rows):
        return form
    # `rows` is no form, but a likely slip: the message then lists the forms.
    if isinstance(form, dict) and {*form} & {*FORMS, "where", "rows"}:
        return Rows(form, _read_mapping(form))
    # A parameter's misspelt name before generators is an unknown key, and names no rows.
    if isinstance(form, list) and all(
        isinstance(row, dict) and not {*row} & {*GENERATORS} for row in form
    ):
        return Rows(form, _stack_rows((_at(number), row) for number, row in enumerate(form)))
    raise PydanticKnownError("extra_forbidden")


def _read_mapping(form: Mapping[str, Any]) -> dict[str, Floats]:
    """Read columns or a product; none of a file."""
    kinds = [kind for kind in FORMS if kind in form]
    known = (*kinds[:1], *(["where"] if kinds == ["product"] else []))
    if len(kinds) != 1 or {*form} - {*known}:
        raise InputError(
            f"expected one of {', '.join(FORMS)}, and 'where' with a product alone, got "
            f"{shorten(form)}",
            advice="write it like '{product: {group: [2, 4], segments: [4, 8]}, where: divides}'",
        )
    (kind,) = kinds
    content = form[kind]
    with _at(kind):
        if kind == "csv" and not isinstance(content, str):
            raise InputError(f"expected the name of a CSV file, got {shorten(content)}")
        if kind != "csv" and (not isinstance(content, dict) or not content):
            raise InputError(f"expected parameters with their values, got {shorten(content)}")
    with _at("where"):
        if form.get("where", "divides") not in CONDITIONS:
            raise InputError.unknown("condition", form["where"], CONDITIONS)
    if kind == "csv":
        return {}
    return _multiply(content) if kind == "product" else _read_columns(content)


def _multiply(factors: Mapping[str, object]) -> dict[str, Floats]:
    """The columns of all combinations, the last factor's values changing fastest."""
    axes = {}
    for key, form in factors.items():
        with _at("product", key):
            expect_free(key)
            axes[key] = expand_axis(form, PARAMETERS[key]).values
    # Before the arrays are made: three short axes may have billions of rows.
    with _at("product"):
        check_count(prod(values.size for values in axes.values()) * len(axes))
    grids = np.meshgrid(*axes.values(), indexing="ij")
    return _sort_columns({key: grid.ravel() for key, grid in zip(axes, grids, strict=True)})


def _read_columns(columns: Mapping[str, object]) -> dict[str, Floats]:
    """Columns of one length."""
    lists: dict[str, list[object]] = {}
    for key, listed in columns.items():
        with _at("columns", key):
            if not isinstance(listed, list | tuple) or not listed:
                raise InputError(f"expected a list of values, got {shorten(listed)}")
            lists[key] = [*listed]
            first, size = next((name, len(values)) for name, values in lists.items())
            if len(listed) != size:
                expected = f"{format_count(size, 'value')}, as many as {first!r} has"
                raise InputError(f"expected {expected}, got {len(listed)}")
    rows = enumerate(zip(*lists.values(), strict=True))
    return _stack_rows((_at("columns", n), dict(zip(lists, row, strict=True))) for n, row in rows)


# As pydantic reads, writes and describes keys beside parameters.
RowsAxis = Annotated[
    Rows,
    PlainValidator(_read_form),
    PlainSerializer(lambda rows: rows.form),
    WithJsonSchema(_describe_forms()),
]


def read_file(path: Path) -> Rows:
    """The rows of a CSV file, spelled out: a store must not depend on it. InputError: its line."""
    columns = _stack_rows(
        (add_place(place), fields) for place, fields in read_records(path, (), tuple(PARAMETERS))
    )
    return Rows(write_columns(columns), columns)


def _stack_rows(rows: Iterable[tuple[Place, Mapping[str, object]]]) -> dict[str, Floats]:
    """The columns of rows that all have the same parameters, no row twice."""
    names: tuple[str, ...] = ()
    # A set in order: of a hundred thousand rows, a repeated one is found at once.
    values: dict[tuple[float, ...], None] = {}
    for place, row in rows:
        with place:
            read = read_parameters(row)
            names = names or tuple(read)
            if not read or {*read} != {*names}:
                other = next(iter({*read} ^ {*names}), "a parameter")
                what = "not in the rows before" if other in read else "missing here"
                raise InputError(f"{other!r} is {what}")
            key = tuple(read[name] for name in names)
            if key in values:
                raise InputError("this row stands twice", advice="keep one")
            values[key] = None
            check_count(len(values) * len(names))
    if not values:
        raise InputError("expected at least one row, got none")
    return _sort_columns(dict(zip(names, np.array([*values], float).T, strict=True)))


def _sort_columns(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """The columns in the order of parameters, read-only: the grid and all of its blocks share."""
    ordered = {name: np.ascontiguousarray(columns[name]) for name in PARAMETERS if name in columns}
    for values in ordered.values():
        values.flags.writeable = False
    return ordered
