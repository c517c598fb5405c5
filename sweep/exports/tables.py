"""Writing rows: Parquet, whole or in partitions, and CSV; in memory is one row group."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from sweep.cells.parts import Part
from sweep.cells.selection import Selection
from sweep.cube.layout import SERIAL
from sweep.exports.columns import Column, name_column
from sweep.exports.rows import ROWS, Attributes, gather_tables, make_batches, make_schema
from sweep.exports.target import PART

Read = Callable[[Selection], Iterator[Part]]
Labels = Mapping[str, Sequence[str]]


def write_parquet(
    path: Path,
    read: Read,
    columns: Sequence[Column],
    attributes: Attributes,
    group_rows: int = ROWS,
) -> int:
    """Write one file; the number of its rows is returned.

    group_rows: of a batch, and at least of a row group.
    """
    schema = make_schema(columns, attributes)
    floats = [each.name for each in schema if pa.types.is_float32(each.type)]
    measured = [name for name in floats if name != SERIAL]
    rows = 0
    with pa.parquet.ParquetWriter(
        path,
        schema,
        compression="zstd",
        # Labels, axes and the time on one PE repeat; other times hardly do: their bytes are split.
        use_dictionary=[name for name in schema.names if name not in measured],
        use_byte_stream_split=measured,
    ) as writer:
        for table in gather_tables(make_batches(read({}), schema, group_rows), group_rows):
            writer.write_table(table, row_group_size=2 * group_rows)  # a table is a group
            rows += table.num_rows
    return rows


def write_partitions(
    path: Path, read: Read, columns: Sequence[Column], attributes: Attributes, labels: Labels
) -> int:
    """Write a file for each combination of labels, in folders `column=label`, as Hive has them."""
    hidden = {name_column(axis) for axis in labels}
    own = [each for each in columns if each.name not in hidden]
    path.mkdir()
    rows = 0
    for values in product(*labels.values()):
        chosen = dict(zip(labels, values, strict=True))
        folder = path.joinpath(
            *(f"{name_column(axis)}={quote(label, safe='')}" for axis, label in chosen.items())
        )
        folder.mkdir(parents=True)
        written = write_parquet(folder / PART, _fix_labels(read, chosen), own, attributes)
        if not written:  # as of samples that do not fit their model
            (folder / PART).unlink()
            folder.rmdir()
        rows += written
    return rows


def write_csv(path: Path, read: Read, columns: Sequence[Column], attributes: Attributes) -> int:
    """Write a file of text, and beside it what its columns mean."""
    schema = make_schema(columns, attributes)
    plain = pa.schema([(each.name, _find_plain_type(each.type)) for each in schema])
    options = pa.csv.WriteOptions(quoting_style="needed")
    rows = 0
    with pa.csv.CSVWriter(path, plain, write_options=options) as writer:
        for batch in make_batches(read({}), schema):
            arrays = [_write_plainly(array) for array in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
            rows += batch.num_rows
    described = _describe_table(path.name, columns, schema, attributes)
    name_description(path).write_text(json.dumps(described, indent=2))
    return rows


def name_description(path: Path) -> Path:
    """The file beside one of CSV, which has no place for units."""
    return path.with_name(f"{path.name}.json")


def _fix_labels(read: Read, chosen: Mapping[str, str]) -> Read:
    return lambda selection: read({**selection, **{axis: [each] for axis, each in chosen.items()}})


def _find_plain_type(kind: pa.DataType) -> pa.DataType:
    """What is written of a column: labels and broken numbers as texts."""
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


def _describe_table(
    name: str, columns: Sequence[Column], schema: pa.Schema, attributes: Attributes
) -> dict[str, Any]:
    """A data resource as Frictionless (specs.frictionlessdata.io) has it, with units and spec."""
    fields = [
        {
            "name": each.name,
            "type": _name_type(schema.field(each.name).type),
            "description": each.long_name,
            "units": each.units,
        }
        for each in columns
    ]
    resource = {"name": Path(name).stem.lower(), "path": name, "format": "csv"}
    return {**resource, "schema": {"fields": fields}, **attributes}


def _name_type(kind: pa.DataType) -> str:
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        return "string"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "integer" if pa.types.is_integer(kind) else "number"
