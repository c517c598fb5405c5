"""Writing rows: Parquet, whole or in partitions, and CSV; one row group is in memory."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from sweep.cells.selection import Selection
from sweep.cube.layout import SERIAL
from sweep.exports.columns import name_column
from sweep.exports.rows import ROWS
from sweep.exports.target import PART

Batches = Iterable[pa.RecordBatch]
Labels = Mapping[str, Sequence[str]]


def write_parquet(path: Path, batches: Batches, schema: pa.Schema, group_rows: int = ROWS) -> int:
    """Write one file; the number of its rows is returned. group_rows: of a row group at least."""
    # Labels, axes and the time on one PE repeat; other times hardly do: their bytes are split.
    floats = {column.name for column in schema if pa.types.is_float32(column.type)}
    measured = [name for name in schema.names if name in floats - {SERIAL}]
    rows = 0
    with pa.parquet.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=[name for name in schema.names if name not in measured],
        use_byte_stream_split=measured,
    ) as writer:
        for table in _gather(batches, group_rows):
            writer.write_table(table, row_group_size=2 * group_rows)  # a table is a group
            rows += table.num_rows
    return rows


def write_partitions(
    path: Path, read: Callable[[Selection, pa.Schema], Batches], schema: pa.Schema, labels: Labels
) -> int:
    """Write a file for each combination of labels, in folders `column=label`, as Hive has them.

    read: the rows of a selection. labels: by axis.
    """
    hidden = {name_column(axis) for axis in labels}
    visible = pa.schema([column for column in schema if column.name not in hidden], schema.metadata)
    path.mkdir()
    rows = 0
    for values in product(*labels.values()):
        chosen = dict(zip(labels, values, strict=True))
        names = (f"{name_column(axis)}={quote(label, safe='')}" for axis, label in chosen.items())
        folder = path.joinpath(*names)
        folder.mkdir(parents=True)
        batches = read({axis: [label] for axis, label in chosen.items()}, visible)
        written = write_parquet(folder / PART, batches, visible)
        if not written:  # as of samples that do not fit their model
            (folder / PART).unlink()
            folder.rmdir()
        rows += written
    return rows


def _gather(batches: Batches, rows: int) -> Iterator[pa.Table]:
    """Tables of at least so many rows but for the last one: small blocks share a row group."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(batch.num_rows for batch in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def write_csv(path: Path, batches: Batches, schema: pa.Schema) -> int:
    """Write a file of text, and beside it what its columns mean; the number of rows."""
    plain = pa.schema([(column.name, _find_plain_type(column.type)) for column in schema])
    options = pa.csv.WriteOptions(quoting_style="needed")
    rows = 0
    with pa.csv.CSVWriter(path, plain, write_options=options) as writer:
        for batch in batches:
            arrays = [_write_plainly(array) for array in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
            rows += batch.num_rows
    name_description(path).write_text(json.dumps(_describe_table(path.name, schema), indent=2))
    return rows


def name_description(path: Path) -> Path:
    """The file beside one of CSV, which has no place for units."""
    return path.with_name(f"{path.name}.json")


def _find_plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column in the file: labels and broken numbers are texts."""
    is_text = pa.types.is_dictionary(kind) or pa.types.is_floating(kind)
    return pa.string() if is_text else kind


def _write_plainly(array: pa.Array) -> pa.Array:
    """The values as they stand in the file."""
    if not pa.types.is_floating(array.type):
        return array.cast(_find_plain_type(array.type))
    # The fewest digits that read back as the same. 0 becomes 0.0: readers guess the type of a
    # column from its first rows, and Polars then refuses the first that is broken.
    texts = array.cast(pa.string())
    whole = pa.compute.match_substring_regex(texts, r"^-?\d+$")
    return pa.compute.if_else(whole, pa.compute.binary_join_element_wise(texts, "0", "."), texts)


def _describe_table(name: str, schema: pa.Schema) -> dict[str, Any]:
    """A data resource as Frictionless (specs.frictionlessdata.io) has it, with units and spec."""
    fields = []
    for column in schema:
        words = {key.decode(): value.decode() for key, value in column.metadata.items()}
        kind = {"name": column.name, "type": _name_type(column.type)}
        fields.append({**kind, "description": words["long_name"], "units": words["units"]})
    attributes = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    resource = {"name": Path(name).stem.lower(), "path": name, "format": "csv"}
    return {**resource, "schema": {"fields": fields}, **attributes}


def _name_type(kind: pa.DataType) -> str:
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        return "string"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "integer" if pa.types.is_integer(kind) else "number"
