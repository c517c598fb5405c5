"""Rows of a table, out of parts of a cube: typed, a batch at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grids.grid import LABELS
from sweep.cells.parts import Part
from sweep.cube.coordinates import Columns
from sweep.cube.variables import name_limits
from sweep.exports.columns import DEFINED, EPOCH_TIME, FEASIBLE, LIMIT_NAMES, name_axis, name_column

# Rows of a batch, and of a row group: readers skip groups, and decode one a thread. By themselves
# DuckDB writes 122,880 and Polars 262,144.
ROWS = 2**18

Places = tuple[NDArray[np.intp], ...]


def make_batches(
    parts: Iterable[Part], schema: pa.Schema, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """The rows of parts, of cells that cannot exist where the schema marks them.

    columns: the parameters that change together.
    """
    marked = DEFINED in schema.names
    for part in parts:
        cells = np.arange(part.size) if marked else np.flatnonzero(part.defined)
        for first in range(0, len(cells), ROWS):
            places = np.unravel_index(cells[first : first + ROWS], part.shape)
            arrays = [_make_column(part, column, places, columns) for column in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make_column(part: Part, column: pa.Field, places: Places, columns: Columns) -> pa.Array:
    """The values of a column at some cells of a part."""
    axis = name_axis(column.name)
    if axis in columns:
        dim, values = columns[axis]
        numbers = part.coordinates[dim][places[list(part.coordinates).index(dim)]]
        return pa.array(values[numbers], column.type)
    if axis in part.coordinates:
        values, place = part.coordinates[axis], places[list(part.coordinates).index(axis)]
        if axis not in LABELS:
            return pa.array(values[place], column.type)
        texts = pa.array(values.astype(object), pa.string())
        labels = pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), texts)
        return labels.cast(column.type)
    if column.name == LIMIT_NAMES:
        return _name_flags(_pick(part.arrays["limit"], places))
    if column.name in (DEFINED, FEASIBLE, EPOCH_TIME):
        values = getattr(part, column.name)
    else:
        values = next(
            array for name, array in part.arrays.items() if name_column(name) == column.name
        )
    # NaN becomes null: SQL would sort it as the largest number.
    return pa.array(_pick(values, places), column.type, from_pandas=True)


def _pick(array: NDArray[Any], places: Places) -> NDArray[Any]:
    """The values at some cells, of an array that may have the size 1 along some dimensions."""
    sizes = zip(places, array.shape, strict=True)
    picked: NDArray[Any] = array[tuple(place if size > 1 else 0 for place, size in sizes)]
    return np.broadcast_to(picked, places[0].shape)


def _name_flags(flags: NDArray[np.uint16]) -> pa.Array:
    """The names of flags as one text each."""
    # Texts of the few kinds of flags, not of each row.
    kinds, at = np.unique(flags, return_inverse=True)
    texts = pa.array([", ".join(name_limits(int(kind))) for kind in kinds], pa.string())
    return texts.take(pa.array(at))
