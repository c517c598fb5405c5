"""Writing rows: Parquet, whole or in partitions, and CSV; one row group is in memory."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.dataset as pads

from sweep.cube.layout import SERIAL
from sweep.exports.rows import ROWS
from sweep.exports.target import PART

# Partitions whose row groups are in memory at once; a cube's own order has one after the other.
MOST_OPEN = 16

Batches = Iterable[pa.RecordBatch]


def write_parquet(
    path: Path,
    batches: Batches,
    schema: pa.Schema,
    labels: Sequence[str] = (),
    group_rows: int = ROWS,
) -> int:
    """Write one file, or folders `label=value` of files, as Hive has them; the number of rows.

    labels: columns that stand in the folders' names. group_rows: of a row group at least.
    """
    # Labels, axes and the time on one PE repeat; other times hardly do: their bytes are split.
    floats = {column.name for column in schema if pa.types.is_float32(column.type)}
    measured = [name for name in schema.names if name in floats - {SERIAL}]
    files, rows = pads.ParquetFileFormat(), 0

    def count() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    pads.write_dataset(
        count(),
        path,
        schema=schema,
        format=files,
        file_options=files.make_write_options(
            compression="zstd",
            use_dictionary=[one for one in schema.names if one not in (*measured, *labels)],
            use_byte_stream_split=measured,
        ),
        partitioning=list(labels) or None,
        partitioning_flavor="hive" if labels else None,
        basename_template=PART,
        min_rows_per_group=group_rows,
        max_rows_per_group=2 * group_rows,
        max_open_files=MOST_OPEN,
        use_threads=False,
        preserve_order=True,
    )
    if not labels:
        _unpack(path)
    return rows


def _unpack(folder: Path) -> None:
    """Put the one file of a folder in the folder's place."""
    (file,) = folder.iterdir()
    beside = file.rename(folder.with_name(f"{folder.name}.file"))
    folder.rmdir()
    beside.rename(folder)


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
