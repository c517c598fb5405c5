"""The slice of a cube that a picture shows: its cells, and one value along every other axis."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import Strategy
from grids.grid import LABELS, Grid
from grids.reading.errors import InputError
from grids.reading.units import format_quantity
from kernels.configuration.case import Case
from kernels.names.flags import FORBIDS, STOPS, Limit
from sweep.cells.selection import (
    SHOWN,
    Selection,
    locate_row,
    look_up_parameter,
    read_columns,
    write_value,
)
from sweep.cells.source import Source, read_cells
from sweep.cube.derived import Paradl
from sweep.cube.variables import name_limits
from sweep.engine.compile_cache import keep_programs
from sweep.errors import NothingFeasibleError

if TYPE_CHECKING:
    import xarray as xr

# What notes, and legends in two lines, say of cells that `find_beyond` finds.
BEYOND = "global batch larger than the data set"
BEYOND_KEY = "global batch larger\nthan the data set"


def open_slice(
    source: Source, selection: Selection | None, extra: Collection[str] = ()
) -> "xr.Dataset":
    """The cells of a slice, with the dimensions of a cube; many are not read yet.

    extra: variables beside the usual ones, where the cube has them. Models and data sets that do
    not fit each other are left out. InputError: a store without cells.
    """
    return _drop_misfits(read_cells(source, selection, extra=extra))


def read_slice(cells: "xr.Dataset", kept: Collection[str]) -> "xr.Dataset":
    """The cells, read, where no axis but `kept` has several values. InputError: the others."""
    several = [str(dim) for dim in cells.dims if dim not in kept and cells.sizes[dim] > 1]
    if several:
        todo = " ".join(_list_choices(cells, several))
        known = "; ".join(f"{dim} {_list_values(cells, dim)}" for dim in several)
        raise InputError(
            f"this picture has one value of {', '.join(several)}, and the slice has several",
            where="selection",
            advice=f"add such as {todo} (known: {known})",
        )
    return cells.load()


def build_case(grid: Grid, cells: "xr.Dataset", strategy: Strategy | None = None) -> Case:
    """The kernels' case of cells with one value of each label, for what the cube does not hold.

    strategy: in the place of that of the cells.
    """
    keep_programs()
    index = locate_row(grid, {dim: str(cells[dim].item()) for dim in LABELS})
    axes = {name: np.atleast_1d(cells[name].values.astype(float)) for name in grid.axes}
    case = grid.case(index, axes, strategy)
    assert case is not None  # pictures are of cells that something allows
    return case


def _drop_misfits(cells: "xr.Dataset") -> "xr.Dataset":
    """The cells without models and data sets of which nothing fits; all where nothing does."""
    misfit = cells["limit"] == np.uint16(Limit.INCOMPATIBLE)
    for dim in ("model", "dataset"):
        if cells.sizes[dim] > 1:
            fits = np.flatnonzero(~misfit.all([other for other in misfit.dims if other != dim]))
            if fits.size:
                cells, misfit = cells.isel({dim: fits}), misfit.isel({dim: fits})
    return cells


def _list_choices(cells: "xr.Dataset", several: Collection[str]) -> Iterator[str]:
    """Selections that leave one value of each of these axes, and something that exists."""
    for dim in several:
        if cells.sizes[dim] > 1:  # a model may have settled the data set
            value = _write_value(dim, cells[dim].values[0])
            yield f'{dim}="{value}"' if " " in value else f"{dim}={value}"
            cells = _drop_misfits(cells.isel({dim: [0]}))


def _list_values(cells: "xr.Dataset", dim: str) -> str:
    """The values of an axis, as far as a message has room."""
    values = [_write_value(dim, value) for value in cells[dim].values[:SHOWN]]
    more = cells.sizes[dim] - len(values)
    return ", ".join(values) + (f" and {more:,} more" if more else "")


def _write_value(dim: str, value: Any) -> str:
    """A value of an axis, as a selection takes it."""
    return value if isinstance(value, str) else write_value(dim, float(value))


def expect_any(things: Sized, reasons: str) -> None:
    """NothingFeasibleError, with the reasons, where there is nothing to draw."""
    if not len(things):
        raise NothingFeasibleError(f"nothing in this slice is feasible: {reasons}")


def describe_place(cells: "xr.Dataset", shown: Collection[str] = ()) -> str:
    """The values of axes that have one, without the `shown` axes: a picture's title.

    Such as `vgg16, imagenet on abci, b = 64`.
    """
    names = {"batch": "b" if Paradl(cells).grid.spec.scaling == "weak" else "B", "pe": "p"}
    single = [str(dim) for dim in cells.dims if cells.sizes[dim] == 1 and dim not in shown]
    labels = {dim: str(cells[dim].values[0]) for dim in single if dim in LABELS}
    where = f" on {labels.pop('system')}" if "system" in labels else ""
    numbers = [
        f"{names.get(dim, write_axis(dim))} = {format_number(dim, cells[dim].values[0])}"
        for dim in single
        if dim not in LABELS
    ]
    numbers += [
        f"{write_axis(name)} = {format_number(name, values[0])}"
        for name, (dim, values) in read_columns(cells).items()
        if dim in single
    ]
    return ", ".join([", ".join(labels.values()) + where, *numbers])


def write_axis(axis: str) -> str:
    """The name of an axis in words."""
    return axis.replace("_", " ")


def format_number(axis: str, value: float) -> str:
    """A value of a numeric axis as people read it, with its unit."""
    unit = look_up_parameter(axis).unit
    return f"{value:,.10g}" if unit == "1" else format_quantity(float(value), unit)


def find_allowed(limit: NDArray[Any]) -> NDArray[np.bool_]:
    """Where nothing forbids a cell."""
    return np.asarray((limit & np.uint16(FORBIDS)) == 0)


def find_beyond(limit: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a cell's global batch is larger than its data set."""
    return np.asarray((limit & np.uint16(Limit.BATCH_EXCEEDS_DATASET)) > 0)


def name_stop(limit: NDArray[Any], last: int) -> str | None:
    """The limit at the first forbidden PE count beyond position `last`; None: there is none.

    That a group does not divide a count stops nothing: the next one may be its multiple.
    """
    beyond = [int(flags) for flags in limit[last + 1 :] if int(flags) & STOPS]
    return _write_words(name_limits(beyond[0] & STOPS)) if beyond else None


def name_reasons(limit: NDArray[Any]) -> str:
    """The limits of cells none of which is allowed, the most frequent first."""
    counts = {
        name: int(((limit & np.uint16(Limit[name.upper()])) > 0).sum())
        for name in name_limits(FORBIDS)
    }
    frequent = sorted(counts, key=lambda name: -counts[name])
    return _write_words(name for name in frequent if counts[name])


def _write_words(limits: Iterable[str]) -> str:
    """Names of limits as people write them."""
    return ", ".join(limits).replace("_", " ").replace("pes", "PEs")


def list_by_cause(causes: Mapping[str, str]) -> str:
    """Names with what forbids them, those of one cause together: `serial, data (memory)`."""
    names: dict[str, list[str]] = {}
    for name, cause in causes.items():
        names.setdefault(cause, []).append(name)
    return "; ".join(f"{', '.join(those)} ({cause})" for cause, those in names.items())
