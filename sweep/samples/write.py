"""Writing rows: Parquet in folders by the sides of every split, so that each split is some folders.

Rows come chunk by chunk and leave row group by row group: memory does not grow with their number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sweep.samples.columns import DTYPES, Column, name_split
from sweep.samples.rows import Columns

# Of a row group: 100 columns of them take 25 MB, and so many wait in each of 16 folders at most.
GROUP_ROWS = 2**15


def make_schema(columns: Sequence[Column], attributes: Mapping[str, str]) -> pa.Schema:
    """The types of the columns, their units and meaning, and what the data set is."""
    fields = [
        pa.field(
            each.name,
            pa.string() if each.kind == "text" else pa.from_numpy_dtype(DTYPES[each.kind]),
            metadata={"units": each.units, "long_name": each.meaning, "role": each.role},
        )
        for each in columns
    ]
    return pa.schema(fields, metadata=dict(attributes))


def name_folder(sides: Mapping[str, str]) -> str:
    """The folder of rows that lie on these sides, by split: `random-train,model-test`."""
    # No `=` in it: readers would take the sides for columns, which are in the files already.
    return ",".join(f"{split}-{side}" for split, side in sides.items())


@dataclass
class Writer:
    """Rows on their way into folders below `path`. counts: rows of each folder. ends: the least and
    the largest value of each column, by which constants are told.
    """

    path: Path
    schema: pa.Schema
    splits: tuple[str, ...]
    counts: dict[tuple[str, ...], int] = field(default_factory=dict)
    ends: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    _open: dict[tuple[str, ...], "_Part"] = field(default_factory=dict)

    def write(self, rows: Columns) -> None:
        """Add rows, each to the folder of its sides."""
        names = [name_split(each) for each in self.splits]
        sides = np.stack([rows[name] for name in names], axis=1)
        kinds, at = np.unique(sides, axis=0, return_inverse=True)
        self._widen_ends(rows)
        table = _make_table(rows, self.schema)
        for number, kind in enumerate(map(tuple, kinds.tolist())):
            chosen = np.flatnonzero(at.reshape(-1) == number)
            self.counts[kind] = self.counts.get(kind, 0) + len(chosen)
            # Copied, and no slice, which would keep all the others until its row group is full.
            self._find_part(kind).add(table.take(chosen))

    def close(self) -> None:
        """Write what waits: folders that were begun get another file when rows come again."""
        for part in self._open.values():
            part.close()
        self._open.clear()

    def _find_part(self, kind: tuple[str, ...]) -> "_Part":
        if kind not in self._open:
            folder = self.path / name_folder(dict(zip(self.splits, kind, strict=True)))
            folder.mkdir(parents=True, exist_ok=True)
            number = len(list(folder.iterdir()))
            self._open[kind] = _Part(
                pq.ParquetWriter(
                    folder / f"part-{number:05}.parquet", self.schema, compression="zstd"
                )
            )
        return self._open[kind]

    def _widen_ends(self, rows: Columns) -> None:
        for name, each in rows.items():
            values = each[~np.isnan(each)] if each.dtype.kind == "f" else each
            if values.size:
                some = (*self.ends.get(name, ()), *_find_ends(values))
                self.ends[name] = (min(some), max(some))

    def list_constants(self) -> list[str]:
        """The columns that have one value in all rows, or none in any."""
        return [name for name in self.schema.names if len(set(self.ends.get(name, ()))) < 2]


@dataclass
class _Part:
    """A file, and the rows that wait for their row group."""

    file: pq.ParquetWriter
    waiting: list[pa.Table] = field(default_factory=list)

    def add(self, table: pa.Table) -> None:
        self.waiting.append(table)
        if sum(each.num_rows for each in self.waiting) >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            table = pa.concat_tables(self.waiting)
            self.file.write_table(table, row_group_size=2 * GROUP_ROWS)  # a table is a group
            self.waiting.clear()

    def close(self) -> None:
        self.flush()
        self.file.close()


def _find_ends(values: NDArray[Any]) -> tuple[Any, Any]:
    """The least and the largest of some numbers or texts, as Python's."""
    if values.dtype.kind == "U":  # of which numpy finds no least; to sort numbers, too, is slow
        return tuple(np.unique(values)[[0, -1]].tolist())
    return values.min().item(), values.max().item()


def _make_table(rows: Columns, schema: pa.Schema) -> pa.Table:
    """Rows as the schema has them; NaN, of what is not defined, is null."""
    arrays = [pa.array(rows[each.name], each.type, from_pandas=True) for each in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
