"""Writing rows as Parquet, whole or in partitions, or CSV, with one row group in memory."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
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
        if self._waiting:
            self._flush()
        self._file.close()

    def _flush(self) -> None:
        table = pa.concat_tables(self._waiting)
        self._file.write_table(table, row_group_size=2 * self._least)  # a table is a group
        self.rows += table.num_rows
        self._waiting.clear()


def write_parquet(path: Path, batches: Batches, schema: pa.Schema, group_rows: int = ROWS) -> int:
    """Write a single file and return its number of rows."""
    # Labels, axes and the time on one PE repeat, so a dictionary pays. Other times hardly repeat:
    # their bytes are split into streams, which compress better.
    floats = {column.name for column in schema if pa.types.is_float32(column.type)}
    measured = [name for name in schema.names if name in floats - {SERIAL}]
    repeated = [name for name in schema.names if name not in measured]
    options = {"use_dictionary": repeated, "use_byte_stream_split": measured}
    with closing(RowGroups(path, schema, group_rows, **options)) as groups:
        for batch in batches:
            groups.add(pa.Table.from_batches([batch]))
    return groups.rows


def write_partitions(
    path: Path,
    read: Callable[[Selection, pa.Schema], Batches],
    schema: pa.Schema,
    labels: Mapping[str, Sequence[str]],
) -> int:
    """Write a file per combination of labels, in folders `column=label` as Hive does.

    read: returns the rows of a selection. labels: by axis.
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
        if not written:  # the data set does not fit the model
            (folder / PART).unlink()
            folder.rmdir()
        rows += written
    return rows


def write_csv(path: Path, batches: Batches, schema: pa.Schema) -> int:
    """Write a text file, and a description of its columns beside it; return the number of rows."""
    # `_write_digits` writes floating-point numbers as texts.
    kinds = [
        pa.string() if pa.types.is_dictionary(kind) or pa.types.is_floating(kind) else kind
        for kind in schema.types
    ]
    plain = pa.schema(list(zip(schema.names, kinds, strict=True)))
    options = pa.csv.WriteOptions(quoting_style="needed")
    rows = 0
    with pa.csv.CSVWriter(path, plain, write_options=options) as writer:
        for batch in batches:
            arrays = [_write_digits(array) for array in batch.columns]
            writer.write_table(pa.Table.from_arrays(arrays, batch.schema.names).cast(plain))
            rows += batch.num_rows
    name_description(path).write_text(json.dumps(_describe_table(path.name, schema), indent=2))
    return rows


def name_description(path: Path) -> Path:
    """Return the path of a CSV file's description, which has the units."""
    return path.with_name(f"{path.name}.json")


def _write_digits(array: pa.Array) -> pa.Array:
    """Return floating-point numbers as texts with the fewest digits that read back exactly."""
    if not pa.types.is_floating(array.type):
        return array
    # 0 becomes 0.0: readers guess a column's type from its first rows, and Polars would then refuse
    # the first number with a fraction.
    texts = array.cast(pa.string())
    whole = pa.compute.match_substring_regex(texts, r"^-?\d+$")
    return pa.compute.if_else(whole, pa.compute.binary_join_element_wise(texts, "0", "."), texts)


def _describe_table(name: str, schema: pa.Schema) -> dict[str, Any]:
    """Describe a table as a data resource of Frictionless (specs.frictionlessdata.io)."""
    fields = []
    for column in schema:
        words = read_texts(column.metadata)
        kind = {"name": column.name, "type": _name_type(column.type)}
        fields.append({**kind, "description": words["long_name"], "units": words["units"]})
    resource = {"name": Path(name).stem.lower(), "path": name, "format": "csv"}
    return {**resource, "schema": {"fields": fields}, **read_texts(schema.metadata)}


def read_texts(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    """Decode Arrow's metadata."""
    return {key.decode(): value.decode() for key, value in metadata.items()}


def _name_type(kind: pa.DataType) -> str:
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        return "string"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "integer" if pa.types.is_integer(kind) else "number"
