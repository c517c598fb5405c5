"""Rows of a table, from parts of a cube, one batch at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grids.grid import LABELS
from sweep.cells.parts import Part
from sweep.cube.variables import Columns, join_limits
from sweep.exports.columns import DEFINED, EPOCH_TIME, FEASIBLE, LIMIT_NAMES, name_axis, name_column

# Rows of a batch, and of a row group: readers can skip a group, and decode one per thread. DuckDB
# writes 122,880 by default, Polars 262,144.
ROWS = 2**18

Positions = tuple[NDArray[np.intp], ...]


def make_batches(
    parts: Iterable[Part], schema: pa.Schema, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of parts; cells that cannot exist are among them if the schema marks them.

    columns: parameters along zipped axes.
    """
    marked = DEFINED in schema.names
    for part in parts:
        cells = np.arange(part.size) if marked else np.flatnonzero(part.defined)
        for first in range(0, len(cells), ROWS):
            positions = np.unravel_index(cells[first : first + ROWS], part.shape)
            arrays = [_make_column(part, column, positions, columns) for column in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make_column(part: Part, column: pa.Field, positions: Positions, columns: Columns) -> pa.Array:
    axis = name_axis(column.name)
    if axis in columns:
        dim, values = columns[axis]
        numbers = part.coordinates[dim][positions[list(part.coordinates).index(dim)]]
        return pa.array(values[numbers], column.type)
    if axis in part.coordinates:
        values, position = part.coordinates[axis], positions[list(part.coordinates).index(axis)]
        if axis not in LABELS:
            return pa.array(values[position], column.type)
        texts = pa.array(values.astype(object), pa.string())
        labels = pa.DictionaryArray.from_arrays(pa.array(position, pa.int32()), texts)
        return labels.cast(column.type)
    if column.name == LIMIT_NAMES:
        texts, at = join_limits(_pick(part.arrays["limit"], positions))
        return pa.array(texts, pa.string()).take(pa.array(at))
    if column.name in (DEFINED, FEASIBLE, EPOCH_TIME):
        values = getattr(part, column.name)
    else:
        values = next(
            array for name, array in part.arrays.items() if name_column(name) == column.name
        )
    # NaN becomes null, since SQL would sort it as the largest number.
    return pa.array(_pick(values, positions), column.type, from_pandas=True)


def _pick(array: NDArray[Any], positions: Positions) -> NDArray[Any]:
    # Along dimensions of size 1 all cells share a value.
    sizes = zip(positions, array.shape, strict=True)
    picked: NDArray[Any] = array[tuple(position if size > 1 else 0 for position, size in sizes)]
    return np.broadcast_to(picked, positions[0].shape)
