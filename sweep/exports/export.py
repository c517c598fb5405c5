"""Export: the cells of a cube as a file, or a folder of files, that others read without paradl.

To add a format: its ending in `SUFFIXES` and the choice in `export`; of rows, a writer beside
`write_parquet` in sweep/exports/tables.py. Test: tests/sweep/exports/test_export.py, with other
libraries as readers.
"""

import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import InputError, format_count, shorten
from paradl.sweep.answers.mapping import name_arguments
from paradl.sweep.cells.reader import Reader
from paradl.sweep.cells.selection import Selection, join_selection, select
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.cube.plan import SERIAL
from paradl.sweep.cube.variables import list_columns
from paradl.sweep.errors import RunError, expect_libraries
from paradl.sweep.exports.target import measure_bytes, write_beside

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

# Every netCDF library reads zlib; its lowest level is the fastest.
COMPRESSION = {"zlib": True, "complevel": 1, "shuffle": True}


class _QuietFile(io.FileIO):
    """A file that records its first failed write and only pretends to write from then on.

    HDF5 cannot close a file after a failed write: with a full disk the process died of a
    segmentation fault (h5py 3.16).
    """

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all bytes, in as many steps as the system takes; after a failure pretend to."""
        rest = memoryview(data)
        try:
            while len(rest) and self.failure is None:
                rest = rest[super().write(rest) or 0 :]
        except OSError as error:
            self.failure = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Set the file's size, or pretend to after a failure: a full disk cannot grow it either."""
        try:
            return super().truncate(size) if self.failure is None else size or 0
        except OSError as error:
            self.failure = error
            return size or 0


def _compute_in_turn(graph: Any, keys: Any, **options: Any) -> Any:
    """Compute chunks in their order in the file, each read and written before the next.

    Dask would order them by their names, which are random: each time another file. And only one
    thread may write; others would read ahead of it and fill the memory.
    """
    from dask.local import get_sync
    from dask.optimization import cull

    tasks = dict(graph.__dask_graph__())

    def compute(keys: Any) -> Any:
        if isinstance(keys, list):  # one per array and dimension
            return [compute(key) for key in keys]
        return get_sync(cull(tasks, [keys])[0], keys)  # type: ignore[no-untyped-call]

    return compute(keys)


def write_netcdf(path: Path, cube: "xr.Dataset") -> None:
    """Write a Dataset, reading lazy arrays chunk by chunk."""
    import dask

    numbers = [name for name, array in cube.data_vars.items() if array.dtype.kind in "fiu"]
    with _QuietFile(path, "w+") as file, dask.config.set(scheduler=_compute_in_turn):
        try:
            cube.to_netcdf(
                file,
                engine="h5netcdf",
                format="NETCDF4",
                encoding={name: {**COMPRESSION} for name in numbers},
            )
        finally:
            if file.failure is not None:
                raise file.failure


SUFFIXES = (".parquet", ".csv", ".nc")


@dataclass(frozen=True)
class Export:
    """A finished export: rows (0 for netCDF), cells of the slice, files, bytes."""

    path: Path
    rows: int
    cells: int
    files: int
    bytes: int


@name_arguments
def export(
    cube: Source,
    path: str | Path,
    selection: Selection | None = None,
    *,
    undefined: bool = False,
    partition_by: Sequence[str] = (),
    force: bool = False,
    **axes: object,
) -> Export:
    """Write the cells of a slice to `path`: .parquet, .csv or .nc.

    A row is a cell; docs/export.md lists the columns. netCDF keeps the cube's dimensions. Memory
    does not grow with the cube. undefined: include configurations that cannot exist, with a column
    `defined`. partition_by: labels by which Parquet is split into folders. force: replace an
    existing export.

    InputError: unknown format or axis, or `path` exists. RunError: a library is missing, or the
    disk is full; nothing was written.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> paradl.export(ds, "cells.csv", {"strategy": "data"}).rows
    3
    """
    selection, target = join_selection(selection, axes) or {}, Path(path)
    _check_options(target, undefined, partition_by)
    reader = open_source(cube)
    cells = prod(map(len, reader.list_values(selection).values()))
    with write_beside(target, force=force) as folder:
        if target.suffix == ".nc":
            rows = 0
            _write_netcdf(reader, folder / target.name, selection)
        else:
            rows = _write_table(reader, folder / target.name, selection, undefined, partition_by)
    files, size = measure_bytes(target)
    return Export(target, rows, cells, files, size)


def expect_arrow() -> None:
    """Check that the library for tables is installed. RunError: it is not."""
    expect_libraries("tables", ("pyarrow",), "export")


def _check_options(target: Path, undefined: bool, partition_by: Sequence[str]) -> None:
    if "://" in str(target):
        raise InputError("expected a file on this machine", where=str(target))
    if target.suffix not in SUFFIXES:
        raise InputError(
            f"expected a file that ends in {', '.join(SUFFIXES)}, got {shorten(target.name)}",
            where="output",
        )
    if partition_by and target.suffix != ".parquet":
        raise InputError("only Parquet has partitions", where="partition_by")
    if target.suffix != ".nc":
        expect_arrow()
        return
    if undefined:
        raise InputError(
            "netCDF always has all cells, NaN where a configuration cannot exist", where="undefined"
        )
    expect_libraries("netCDF files", ("h5netcdf", "h5py"), "export")


def _write_table(
    reader: Reader, path: Path, selection: Selection, undefined: bool, partition_by: Sequence[str]
) -> int:
    """Write rows and return their number. InputError: no label, or the cube has no cells."""
    from paradl.sweep.exports import tables  # late: pyarrow is optional

    partitions = [*dict.fromkeys(tables.NAMES.get(name, name) for name in partition_by)]
    for axis in partitions:
        if axis not in LABELS:
            raise InputError.unknown("label", axis, LABELS, where="partition_by")
    names = reader.variables
    _expect_cells(names)
    # Columns of the whole cube: a zipped axis' values are row numbers in it.
    dims, columns = reader.list_values(selection), list_columns(reader.grid)
    schema = tables.make_schema([*{**dims, **columns}], names, reader.grid, marked=undefined)
    # The facts about columns are repeated for the table: not all readers show those of columns.
    facts = {
        column.name: {key.decode(): text.decode() for key, text in column.metadata.items()}
        for column in schema
    }
    schema = schema.with_metadata(write_texts({**reader.attributes, "paradl_columns": facts}))

    def read(part: Selection, schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
        positions = reader.locate({**selection, **part})
        parts = reader.read_parts(names, positions, misfits=undefined)
        return tables.make_batches(parts, schema, columns)

    if partitions:
        labels = {axis: dims[axis].tolist() for axis in partitions}
        return tables.write_partitions(path, read, schema, labels)
    write = tables.write_csv if path.suffix == ".csv" else tables.write_parquet
    return write(path, read({}, schema), schema)


def _expect_cells(names: Collection[str]) -> None:
    """Refuse a cube without variables of cells."""
    if set(names) <= {SERIAL}:
        raise InputError(
            "the cube keeps no cells, only their summaries",
            advice="sweep into another store, without reduce_only",
        )


def write_texts(facts: Mapping[str, object]) -> dict[str, str]:
    """Return facts as texts for a table's metadata, in JSON unless they are texts."""
    return {
        str(key): fact if isinstance(fact, str) else json.dumps(fact) for key, fact in facts.items()
    }


def _write_netcdf(reader: Reader, path: Path, selection: Selection) -> None:
    """Write the cube's arrays. InputError: it has no cells. RunError: the sweep is unfinished."""
    if reader.keeps_summary:  # a Dataset may have variables of its owner's
        _expect_cells(reader.variables)
    done, blocks = reader.count_blocks()
    if done < blocks:
        raise RunError(
            f"{reader.place}: {blocks - done:,} of {format_count(blocks, 'block')} not done, which "
            "netCDF would show as configurations that cannot exist; "
            "rerun the same paradl sweep to finish"
        )
    write_netcdf(path, select(reader.open_chunks(), selection))
