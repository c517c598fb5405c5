"""Writing rows: Parquet in folders by the sides of every split, so that each split is some folders.

Rows come chunk by chunk and leave row group by row group: memory does not grow with their number.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sweep.samples.columns import DTYPES, Column, name_split
from sweep.samples.rows import Columns
from sweep.samples.splits import TEST, TRAIN

# Rows of a row group at least: 100 columns of them take 25 MB, and so many wait in each folder.
GROUP_ROWS = 2**15


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
    path.mkdir()
    # pyarrow's own writer of folders would draw rows in its threads: with worker processes that
    # waited for ever.
    with ExitStack() as stack:
        parts: dict[str, _Part] = {}
        for rows in chunks:
            written.count(rows)
            for folder, table in _divide(rows, schema, splits):
                if folder not in parts:
                    parts[folder] = stack.enter_context(closing(_Part.begin(path / folder, schema)))
                parts[folder].add(table)
    return written


@dataclass
class _Part:
    """A file, and the rows that wait for their row group."""

    file: pq.ParquetWriter
    waiting: list[pa.Table] = field(default_factory=list)

    @classmethod
    def begin(cls, folder: Path, schema: pa.Schema) -> "_Part":
        folder.mkdir()
        return cls(pq.ParquetWriter(folder / "part-0.parquet", schema, compression="zstd"))

    def add(self, table: pa.Table) -> None:
        self.waiting.append(table)
        if sum(table.num_rows for table in self.waiting) >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            table = pa.concat_tables(self.waiting)
            self.file.write_table(table, row_group_size=2 * GROUP_ROWS)  # a table is a group
            self.waiting.clear()

    def close(self) -> None:
        self.flush()
        self.file.close()


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


def _divide(
    rows: Columns, schema: pa.Schema, splits: Sequence[str]
) -> Iterator[tuple[str, pa.Table]]:
    """Rows by their folder, as the schema has them; NaN, of what is not defined, is null."""
    arrays = [pa.array(rows[column.name], column.type, from_pandas=True) for column in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    sides = np.stack([rows[name_split(split)] for split in splits], axis=1)
    kinds, places = np.unique(sides, axis=0, return_inverse=True)
    for number, kind in enumerate(kinds.tolist()):
        folder = name_folder(dict(zip(splits, kind, strict=True)))
        # Copied, and no slice, which would keep all the others until its row group is full.
        yield folder, table.take(np.flatnonzero(places.reshape(-1) == number))


def _find_ends(values: NDArray[Any]) -> tuple[Any, Any]:
    """The least and the largest of some numbers or texts, as Python's."""
    if values.dtype.kind == "U":  # numpy finds no least of texts; to sort numbers, too, is slow
        return tuple(np.unique(values)[[0, -1]].tolist())
    return values.min().item(), values.max().item()
