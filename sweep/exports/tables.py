"""Rows of a cube as Parquet, whole or in partitions, or CSV, with one row group in memory.

A row is a cell: its labels and axes, whether it is feasible and what limits it, the time of an
epoch, and the cube's variables; one schema for all formats. No column is named with a reserved word
of SQL, so that none has to be quoted: the cube's `system`, `group`, `filter` and `limit` are
renamed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.csvfile import quote_formula
from paradl.sweep.cells.parts import Part
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cube.plan import SERIAL
from paradl.sweep.cube.variables import (
    DERIVED,
    VARIABLES,
    Columns,
    describe_coordinate,
    join_limits,
)
from paradl.sweep.exports.target import PART

# SQL reserves LIMIT and GROUP everywhere, SYSTEM in the standard (since SQL:1999) and in MySQL,
# FILTER and SEQUENCE in DuckDB.
RENAMED = {
    "system": "system_name",
    "group": "group_asked",
    "filter": "filter_degree",
    "sequence": "sequence_parallel",
    "limit": "limit_flags",
}
NAMES = {column: name for name, column in RENAMED.items()}
DEFINED, FEASIBLE, LIMIT_NAMES, EPOCH_TIME = "defined", "feasible", "limit_names", "epoch_time"


def make_schema(
    dims: Sequence[str], variables: Sequence[str], grid: Grid, *, marked: bool
) -> pa.Schema:
    """Return the columns of a table of cells.

    dims: axes, and parameters along zipped axes. variables: of the cube. marked: cells that cannot
    exist have rows too, and a column says so.
    """
    fields = [_describe_axis(dim, grid) for dim in dims]
    if marked:
        fields.append(describe_column(DEFINED, pa.bool_(), "there is such a configuration"))
    if "limit" in variables:
        fields.append(describe_column(FEASIBLE, pa.bool_(), DERIVED[FEASIBLE].long_name))
        words = "names of the flags, separated by ', '"
        fields.append(describe_column(LIMIT_NAMES, pa.string(), words))
    if {"comp_time", "comm_time"} <= set(variables):
        epoch = DERIVED[EPOCH_TIME]
        fields.append(describe_column(EPOCH_TIME, pa.float32(), epoch.long_name, epoch.units))
    for name in variables:
        variable = VARIABLES[name]
        kind, words = pa.from_numpy_dtype(variable.dtype), variable.long_name
        fields.append(describe_column(RENAMED.get(name, name), kind, words, variable.units))
    return pa.schema(fields)


def describe_column(
    name: str, kind: pa.DataType, long_name: str, units: str = "", **facts: str
) -> pa.Field:
    """Make a column with facts as metadata. units: in CF's spelling, empty for texts and flags."""
    return pa.field(name, kind, metadata={"units": units, "long_name": long_name, **facts})


def _describe_axis(dim: str, grid: Grid) -> pa.Field:
    if dim in LABELS or grid.parameters[dim].words:
        # Labels and words of settings repeat in every row: a dictionary stores each of them once.
        kind = pa.dictionary(pa.int32(), pa.string())
    else:
        kind = pa.int64() if grid.parameters[dim].whole else pa.float64()
    facts = describe_coordinate(dim, grid)
    return describe_column(RENAMED.get(dim, dim), kind, facts["long_name"], facts.get("units", ""))


# Rows of a batch, and of a row group: readers can skip a group, and decode one per thread. DuckDB
# writes 122,880 by default, Polars 262,144.
ROWS = 2**18

Positions = tuple[NDArray[np.intp], ...]


def make_batches(
    parts: Iterable[Part], schema: pa.Schema, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of parts, of cells that cannot exist if the schema marks them.

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
    name = NAMES.get(column.name, column.name)
    dim, values = columns.get(name, (name, part.coordinates.get(name)))
    if values is not None:
        numbers = positions[list(part.coordinates).index(dim)]
        if name in columns:  # by the numbers of rows
            numbers = part.coordinates[dim][numbers]
        return _take_values(name, values, numbers, column)
    if column.name == LIMIT_NAMES:
        # Few combinations of flags occur: each is written once, and taken for its rows.
        texts, at = join_limits(_pick(part.arrays["limit"], positions))
        return pa.array(texts, pa.string()).take(pa.array(at))
    if column.name in (DEFINED, FEASIBLE, EPOCH_TIME):
        values = getattr(part, column.name)
    else:
        values = part.arrays[name]
    # NaN becomes null, since SQL would sort it as the largest number.
    return pa.array(_pick(values, positions), column.type, from_pandas=True)


def _take_values(
    axis: str, values: NDArray[Any], position: NDArray[Any], column: pa.Field
) -> pa.Array:
    """Return an axis' values at positions: labels, words of a setting, or numbers."""
    if not pa.types.is_dictionary(column.type):
        return pa.array(values[position], column.type)
    named = values if axis in LABELS else [str(PARAMETERS[axis].write(n)) for n in values.tolist()]
    texts = pa.array(np.asarray(named, object), pa.string())
    labels = pa.DictionaryArray.from_arrays(pa.array(position, pa.int32()), texts)
    return labels.cast(column.type)


def _pick(array: NDArray[Any], positions: Positions) -> NDArray[Any]:
    # Along dimensions of size 1 all cells share a value.
    sizes = zip(positions, array.shape, strict=True)
    picked: NDArray[Any] = array[tuple(position if size > 1 else 0 for position, size in sizes)]
    return np.broadcast_to(picked, positions[0].shape)


Batches = Iterable[pa.RecordBatch]


class RowGroups:
    """A Parquet file with row groups of at least `least` rows, however small the batches."""

    def __init__(self, path: Path, schema: pa.Schema, least: int, **options: Any) -> None:
        self.rows = 0
        self._file = pa.parquet.ParquetWriter(path, schema, compression="zstd", **options)
        self._least = least
        self._waiting: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Add rows, and write a group if enough are waiting."""
        self._waiting.append(table)
        if sum(waiting.num_rows for waiting in self._waiting) >= self._least:
            self._flush()

    def close(self) -> None:
        """Write the waiting rows and end the file."""
        try:
            if self._waiting:
                self._flush()
            self._file.close()
        finally:
            # Else, after a failure, pyarrow tries again as Python deletes it: a traceback per file.
            self._file.is_open = False

    def _flush(self) -> None:
        table = pa.concat_tables(self._waiting)
        self._file.write_table(table, row_group_size=2 * self._least)  # a table is a group
        self.rows += table.num_rows
        self._waiting.clear()


def write_parquet(path: Path, batches: Batches, schema: pa.Schema, group_rows: int = ROWS) -> int:
    """Write a single file and return its number of rows."""
    # Labels and axes repeat, so a dictionary pays; times hardly do, and compress better in streams.
    floats = [column.name for column in schema if pa.types.is_float32(column.type)]
    measured = [name for name in floats if name != SERIAL]
    repeated = [name for name in schema.names if name not in measured]
    options = {"use_dictionary": repeated, "use_byte_stream_split": measured}
    with closing(RowGroups(path, schema, group_rows, **options)) as groups:
        for batch in batches:
            groups.add(pa.Table.from_batches([batch]))
    return groups.rows


def write_partitions(
    path: Path,
    read: Callable[[Selection, pa.Schema], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    labels: Mapping[str, Sequence[str]],
) -> int:
    """Write a file per combination of labels by axis, in folders `column=label` as Hive does."""
    hidden = {RENAMED.get(axis, axis) for axis in labels}
    visible = pa.schema([column for column in schema if column.name not in hidden], schema.metadata)
    path.mkdir()
    rows = 0
    for values in product(*labels.values()):
        chosen = dict(zip(labels, values, strict=True))
        names = (
            f"{RENAMED.get(axis, axis)}={quote(label, safe='')}" for axis, label in chosen.items()
        )
        folder = path.joinpath(*names)
        batches = read({axis: [label] for axis, label in chosen.items()}, visible)
        first = next(batches, None)
        if first is not None:  # the data set fits the model
            folder.mkdir(parents=True)
            rows += write_parquet(folder / PART, chain([first], batches), visible)
    return rows


def write_csv(path: Path, batches: Batches, schema: pa.Schema) -> int:
    """Write a text file and return the number of rows."""
    # `_write_text` writes floating-point numbers as texts.
    kinds = [
        pa.string() if pa.types.is_dictionary(kind) or pa.types.is_floating(kind) else kind
        for kind in schema.types
    ]
    plain = pa.schema(list(zip(schema.names, kinds, strict=True)))
    options = pa.csv.WriteOptions(quoting_style="needed")
    rows = 0
    with pa.csv.CSVWriter(path, plain, write_options=options) as writer:
        for batch in batches:
            arrays = [_write_text(array) for array in batch.columns]
            writer.write_table(pa.Table.from_arrays(arrays, batch.schema.names).cast(plain))
            rows += batch.num_rows
    return rows


def _write_text(array: pa.Array) -> pa.Array:
    """Return floating-point numbers with the fewest digits that read back exactly, as texts.

    Labels become fields that no spreadsheet evaluates.
    """
    if pa.types.is_dictionary(array.type):
        labels = pa.array(map(quote_formula, array.dictionary.to_pylist()), pa.string())
        return pa.DictionaryArray.from_arrays(array.indices, labels)
    if not pa.types.is_floating(array.type):
        return array
    # 0 becomes 0.0: Polars guesses a column's type from its first rows, and would refuse fractions.
    texts = array.cast(pa.string())
    whole = pa.compute.match_substring_regex(texts, r"^-?\d+$")
    return pa.compute.if_else(whole, pa.compute.binary_join_element_wise(texts, "0", "."), texts)
