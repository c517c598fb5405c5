"""Writing rows: Parquet in folders by the sides of every split, so that each split is some folders.

Rows come chunk by chunk and leave row group by row group: memory does not grow with their number.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
from numpy.typing import NDArray

from sweep.samples.columns import DTYPES, Column, name_split
from sweep.samples.rows import Columns
from sweep.samples.splits import TEST, TRAIN

# Rows of a row group at least: 100 columns of them take 25 MB, and so many wait in each folder.
GROUP_ROWS = 2**15
FOLDER = "folder"  # the column that files are divided by, and do not have


@dataclass
class Written:
    """A summary of the rows that were written.

    sides: rows on the sides of each split. ends: the least and the largest value of each column.
    """

    sides: dict[str, dict[str, int]]
    rows: int = 0
    ends: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def count(self, rows: Columns) -> None:
        """Add some rows."""
        self.rows += len(rows["slice"])
        for split, counts in self.sides.items():
            for side in counts:
                counts[side] += int((rows[name_split(split)] == side).sum())
        for name, column in rows.items():
            values = column[~np.isnan(column)] if column.dtype.kind == "f" else column
            if values.size:
                ends = (*self.ends.get(name, ()), *_find_ends(values))
                self.ends[name] = (min(ends), max(ends))

    def list_constants(self, columns: Iterable[Column]) -> list[str]:
        """The columns that have one value in all rows, or none in any."""
        return [column.name for column in columns if len(set(self.ends.get(column.name, ()))) < 2]


def write_rows(
    path: Path,
    chunks: Iterable[Columns],
    columns: Sequence[Column],
    attributes: Mapping[str, str],
    splits: Sequence[str],
) -> Written:
    """Write rows into folders below `path`, which are named by their sides."""
    schema = make_schema(columns, attributes)
    written = Written({split: {TRAIN: 0, TEST: 0} for split in splits})
    files = pads.ParquetFileFormat()

    def divide() -> Iterator[pa.RecordBatch]:
        for rows in chunks:
            written.count(rows)
            yield _make_batch(rows, schema, splits)

    pads.write_dataset(
        divide(),
        path,
        schema=schema.append(pa.field(FOLDER, pa.string())),
        format=files,
        file_options=files.make_write_options(compression="zstd"),
        # No escapes: `random-train,model-test` is a good name for a folder.
        partitioning=pads.DirectoryPartitioning(
            pa.schema([(FOLDER, pa.string())]), segment_encoding="none"
        ),
        min_rows_per_group=GROUP_ROWS,
        basename_template="part-{i}.parquet",
        # The same files for the same rows.
        use_threads=False,
        preserve_order=True,
    )
    return written


def make_schema(columns: Sequence[Column], attributes: Mapping[str, str]) -> pa.Schema:
    """The types of the columns, their units and meaning, and the facts of the data set."""
    fields = [
        pa.field(
            column.name,
            pa.string() if column.kind == "text" else pa.from_numpy_dtype(DTYPES[column.kind]),
            metadata={"units": column.units, "long_name": column.meaning, "role": column.role},
        )
        for column in columns
    ]
    return pa.schema(fields, metadata=dict(attributes))


def name_folder(sides: Mapping[str, str]) -> str:
    """The folder of rows that lie on these sides, by split: `random-train,model-test`."""
    # No `=` in it: readers would take the sides for columns, which are in the files already.
    return ",".join(f"{split}-{side}" for split, side in sides.items())


def _make_batch(rows: Columns, schema: pa.Schema, splits: Sequence[str]) -> pa.RecordBatch:
    """Rows as the schema has them, with their folder; NaN, of what is not defined, is null."""
    arrays = [pa.array(rows[column.name], column.type, from_pandas=True) for column in schema]
    sides = zip(*(rows[name_split(split)].tolist() for split in splits), strict=True)
    folders = pa.array([name_folder(dict(zip(splits, side, strict=True))) for side in sides])
    return pa.RecordBatch.from_arrays(
        [*arrays, folders], schema=schema.append(pa.field(FOLDER, pa.string()))
    )


def _find_ends(values: NDArray[Any]) -> tuple[Any, Any]:
    """The least and the largest of some numbers or texts, as Python's."""
    if values.dtype.kind == "U":  # numpy finds no least of texts; to sort numbers, too, is slow
        return tuple(np.unique(values)[[0, -1]].tolist())
    return values.min().item(), values.max().item()
