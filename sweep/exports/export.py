"""Export: the cells of a cube as one file, or as a folder of them, that needs no paradl to read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from grids.grid import LABELS
from grids.reading.errors import InputError, shorten, suggest_name
from sweep.cells.files import check_files
from sweep.cells.parts import (
    Part,
    list_variables,
    locate_slice,
    read_parts,
)
from sweep.cells.selection import Selection, select
from sweep.cells.source import Source, open_computed, read_grid
from sweep.cube.layout import SERIAL
from sweep.cube.store import Cube
from sweep.errors import RunError
from sweep.exports.columns import Column, list_columns, name_axis
from sweep.exports.netcdf import expect_engine, write_netcdf
from sweep.exports.target import check_target, measure_bytes, write_beside

if TYPE_CHECKING:
    import xarray as xr

SUFFIXES = (".parquet", ".csv", ".nc")


@dataclass(frozen=True)
class Export:
    """What was written: rows (netCDF has none: 0), cells of the slice, files and their bytes."""

    path: Path
    rows: int
    cells: int
    files: int
    bytes: int


def export(
    cube: Source,
    path: str | Path,
    selection: Selection | None = None,
    *,
    undefined: bool = False,
    partition_by: Sequence[str] = (),
    force: bool = False,
) -> Export:
    """Write the cells of a slice to `path`: .parquet, .csv or .nc; what was written is returned.

    `cube` is a Dataset or the place of a store. A row is a cell; docs/export.md lists the columns.
    undefined: rows of configurations that cannot exist, too, with the column `defined`.
    partition_by: labels, of each of which a Parquet table has folders. force: replace what stands
    there. Memory does not grow with the cube. netCDF has the cube's own dimensions.

    InputError: no such format or axis, a file that stands there. RunError: a library is missing,
    the disk is full; then nothing was written.
    """
    target = Path(path)
    _check_options(target, undefined, partition_by)
    expect_engine() if target.suffix == ".nc" else expect_arrow()
    check_target(target, force=force)
    source, chosen = open_computed(cube), selection or {}
    axes = locate_slice(source, chosen)
    with write_beside(*_list_files(target), force=force) as folder:
        beside = folder / target.name
        if target.suffix == ".nc":
            _write_netcdf(source, beside, chosen)
            rows = 0
        else:
            rows = _write_table(source, beside, chosen, undefined, partition_by)
    files, size = measure_bytes(target)
    return Export(target, rows, prod(map(len, axes.values())), files, size)


def _list_files(target: Path) -> list[Path]:
    """What an export makes: beside a table of text a description."""
    if target.suffix != ".csv":
        return [target]
    from sweep.exports.tables import name_description

    return [target, name_description(target)]


def _check_options(target: Path, undefined: bool, partition_by: Sequence[str]) -> None:
    """Refuse what no format can be told by, and options that a format lacks."""
    if "://" in str(target):
        raise InputError("expected a file of this machine", where=str(target))
    if target.suffix not in SUFFIXES:
        raise InputError(
            f"expected a file that ends in {', '.join(SUFFIXES)}, got {shorten(target.name)}",
            where="output",
        )
    if partition_by and target.suffix != ".parquet":
        raise InputError("only Parquet has partitions", where="partition_by")
    if undefined and target.suffix == ".nc":
        raise InputError(
            "netCDF holds every cell already, NaN where there is none", where="undefined"
        )
    for axis in map(name_axis, partition_by):
        if axis not in LABELS:
            raise InputError(
                f"expected labels, got {shorten(axis)}",
                where="partition_by",
                advice=suggest_name(axis, LABELS),
            )


def expect_arrow() -> None:
    """RunError: the library that writes tables is not installed."""
    if find_spec("pyarrow") is None:
        raise RunError(
            "tables need pyarrow; install paradl with its extra: pip install '.[export]'"
        )


def _write_table(
    source: "Cube | xr.Dataset",
    path: Path,
    selection: Selection,
    undefined: bool,
    partition_by: Sequence[str],
) -> int:
    """Write rows; how many they are is returned."""
    from sweep.exports import tables  # late: pyarrow need not be there

    axes = locate_slice(source, selection)
    names = list_variables(source)
    columns = _list_columns(source, list(axes), names, undefined)
    described = _describe_cube(source, columns)

    def read(more: Selection) -> Iterator[Part]:
        return read_parts(source, names, {**selection, **more}, misfits=undefined)

    if path.suffix == ".csv":
        return tables.write_csv(path, read, columns, described)
    if not partition_by:
        return tables.write_parquet(path, read, columns, described)
    labels = {axis: axes[axis].tolist() for axis in dict.fromkeys(map(name_axis, partition_by))}
    return tables.write_partitions(path, read, columns, described, labels)


def _list_columns(
    source: "Cube | xr.Dataset", dims: Sequence[str], names: Sequence[str], undefined: bool
) -> list[Column]:
    """The columns of a cube's table; InputError: the cube has no cells."""
    if set(names) <= {SERIAL}:
        raise InputError(
            "the cube keeps no cells, only their summaries",
            advice="sweep without --reduce-only into another store",
        )
    return list_columns(dims, names, read_grid(source).spec.scaling, marked=undefined)


def _describe_cube(source: "Cube | xr.Dataset", columns: Sequence[Column]) -> dict[str, str]:
    """The cube's attributes as texts, and the columns once more: not all readers show theirs."""
    attributes = source.group.attrs.asdict() if isinstance(source, Cube) else source.attrs
    texts = {
        str(key): value if isinstance(value, str) else json.dumps(value)
        for key, value in attributes.items()
    }
    units = {each.name: {"units": each.units, "long_name": each.long_name} for each in columns}
    return {**texts, "paradl_columns": json.dumps(units)}


def _write_netcdf(source: "Cube | xr.Dataset", path: Path, selection: Selection) -> None:
    """Write the cube's own arrays; RunError: a block is not done, which would read as NaN."""
    if isinstance(source, Cube):
        missing = int((~source.read_done()).sum())
        if missing:
            raise RunError(
                f"{source.url}: {missing} of {source.plan.blocks} blocks are not done, and netCDF "
                "would show them as configurations that cannot exist; "
                "run the same paradl sweep again to finish"
            )
        check_files(source, list_variables(source), {})
    from sweep.engine.run import open_dataset  # late: xarray comes with it

    cube = open_dataset(source.url) if isinstance(source, Cube) else source
    write_netcdf(path, select(cube, selection))
