"""Rows: parameters that change together along one dimension of the cube.

Under `axes`, by a name that is no parameter's: a list of rows, columns of one length, a CSV file,
or a product, of which a condition may leave rows out.

    layout: [{group: 4, segments: 8}, {group: 8, segments: 4}]
    layout: {columns: {group: [4, 8], segments: [8, 4]}}
    layout: {csv: ./layouts.csv}
    layout: {product: {group: [1, 2, 4], segments: {pow2: [1, 16]}}, where: divides}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from grids.axes import GENERATORS
from grids.entries.parameters import FREE, PARAMETERS
from grids.entries.quantity import Parameter
from kernels.names.arrays import Floats

Condition = Literal["divides"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
FORMS = ("columns", "csv", "product")


@dataclass(frozen=True)
class Rows:
    """Values of several parameters, as the user wrote them, and in SI units once they are read.

    columns: by parameter, in the order of the table of parameters; empty until a grid is made of
    the spec, as a file may hold them. where: the condition that leaves rows out.
    """

    form: object = field(compare=False)
    columns: Mapping[str, Floats] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def values(self) -> Floats:
        """The numbers of the rows, which are the values along their dimension."""
        return np.arange(len(self), dtype=float)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of rows that are written out, whether or not they are read."""
        if self.columns:
            return tuple(self.columns)
        form: Any = self.form
        first = form[0] if isinstance(form, list) else form.get("columns", form.get("product", {}))
        return tuple(name for name in PARAMETERS if name in first)

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
        """The same rows, but for those that a mask or positions leave out."""
        return Rows(self.form, {name: values[kept] for name, values in self.columns.items()})


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


class RowsForm:
    """Tells pydantic which keys beside parameters are rows; their values are read later."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _expect_form,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda rows: rows.form),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        scalar = {"anyOf": [{"type": "number"}, {"type": "string"}]}
        names = {"propertyNames": {"enum": [*FREE]}, "minProperties": 1}
        row = {"type": "object", "additionalProperties": scalar, **names}
        listed = {"type": "array", "items": scalar, "minItems": 1}

        def describe(name: str, value: JsonSchemaValue) -> JsonSchemaValue:
            more = {"where": {"enum": [*CONDITIONS]}} if name == "product" else {}
            return {
                "type": "object",
                "properties": {name: value, **more},
                "required": [name],
                "additionalProperties": False,
            }

        return {
            "anyOf": [
                {"type": "array", "items": row, "minItems": 1},
                describe("columns", {"type": "object", "additionalProperties": listed, **names}),
                describe("csv", {"type": "string"}),
                describe("product", {"type": "object", **names}),
            ],
            "description": "rows of parameters that change together, along an axis of any name",
        }


def _expect_form(form: object) -> Rows:
    """Rows that are not read yet; what looks like no rows is an unknown key."""
    if isinstance(form, Rows):
        return form
    if isinstance(form, dict) and {*form} & {*FORMS, "where", "rows"}:
        return Rows(form)
    # A parameter's misspelt name before generators is an unknown key, and names no rows.
    if isinstance(form, list) and all(
        isinstance(row, dict) and not {*row} & {*GENERATORS} for row in form
    ):
        return Rows(form)
    raise PydanticKnownError("extra_forbidden")
