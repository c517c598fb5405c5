"""Rows of a table, out of parts of a cube: typed, a batch at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from sweep.cells.parts import Part
from sweep.cube.variables import VARIABLES, name_limits
from sweep.exports.columns import (
    DEFINED,
    EPOCH_TIME,
    FEASIBLE,
    LIMIT_NAMES,
    Column,
    name_axis,
    name_column,
)

# Of a batch, and of a row group: readers skip groups, and decode one a thread. 2**18 rows are what
# DuckDB (122,880) and Polars (262,144) write by themselves.
ROWS = 2**18

Attributes = Mapping[str, str]
# Why a cell is no configuration stands in `limit_names`; its numbers are null, no NaN, which SQL
# would sort as the largest.
TYPES = {
    DEFINED: pa.bool_(),
    FEASIBLE: pa.bool_(),
    LIMIT_NAMES: pa.string(),
    EPOCH_TIME: pa.float32(),
} | {name_column(name): pa.from_numpy_dtype(each.dtype) for name, each in VARIABLES.items()}


def make_schema(columns: Sequence[Column], attributes: Attributes) -> pa.Schema:
    """The types of the columns, their units and meaning, and the cube's attributes."""
    fields = [
        pa.field(
            each.name,
            find_type(each.name),
            metadata={"units": each.units, "long_name": each.long_name},
        )
        for each in columns
    ]
    return pa.schema(fields, metadata=dict(attributes))


def find_type(column: str) -> pa.DataType:
    """The type of a column."""
    axis = name_axis(column)
    if axis in LABELS:
        return pa.dictionary(pa.int32(), pa.string())
    if axis in PARAMETERS:
        return pa.int64() if PARAMETERS[axis].whole else pa.float64()
    return TYPES[column]


def make_batches(
    parts: Iterable[Part], schema: pa.Schema, rows: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """The rows of parts, of cells that cannot exist where the schema marks them."""
    marked = DEFINED in schema.names
    for part in parts:
        at = np.arange(part.size) if marked else np.flatnonzero(part.defined)
        for first in range(0, len(at), rows):
            chosen = np.unravel_index(at[first : first + rows], part.shape)
            arrays = [_make_column(part, name, chosen) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def gather_tables(batches: Iterable[pa.RecordBatch], rows: int = ROWS) -> Iterator[pa.Table]:
    """Tables of at least so many rows but for the last one: small blocks share a row group."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _make_column(part: Part, column: str, at: tuple[NDArray[np.intp], ...]) -> pa.Array:
    """The values of a column at some cells of a part."""
    axis = name_axis(column)
    if axis in part.coordinates:
        values, place = part.coordinates[axis], at[list(part.coordinates).index(axis)]
        if axis in LABELS:
            texts = pa.array(values.astype(object), pa.string())
            return pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), texts)
        return pa.array(values[place], find_type(column))
    if column == LIMIT_NAMES:
        return _name_flags(_pick(part.arrays["limit"], at))
    if column in (DEFINED, FEASIBLE):
        return pa.array(_pick(part.defined if column == DEFINED else part.feasible, at))
    name = next((each for each in part.arrays if name_column(each) == column), "")
    values = _pick(part.arrays[name] if name else part.epoch_time, at)
    return pa.array(values, find_type(column), from_pandas=True)  # NaN becomes null


def _pick(array: NDArray[Any], at: tuple[NDArray[np.intp], ...]) -> NDArray[Any]:
    """The values at some cells, of an array that may have the size 1 along some dimensions."""
    sizes = zip(at, array.shape, strict=True)
    picked: NDArray[Any] = array[tuple(place if size > 1 else 0 for place, size in sizes)]
    return np.broadcast_to(picked, at[0].shape)


def _name_flags(flags: NDArray[np.uint16]) -> pa.Array:
    """The names of flags as one text each."""
    # Texts of the few kinds of flags, not of each row.
    kinds, at = np.unique(flags, return_inverse=True)
    texts = pa.array([", ".join(name_limits(int(each))) for each in kinds], pa.string())
    return texts.take(pa.array(at))
