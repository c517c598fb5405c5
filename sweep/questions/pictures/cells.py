"""The slice of a cube that a picture shows: its cells, and one value along every other axis."""

from collections.abc import Collection, Iterator, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS, Grid
from grids.reading.errors import InputError, shorten, suggest_name
from grids.reading.units import format_quantity
from kernels.flags import FORBIDS, STOPS, Limit
from kernels.statistics import SUMMARISED
from sweep.cells.selection import SHOWN, Selection, select, write_value
from sweep.cells.source import Source, open_cells, open_computed
from sweep.cube.derived import Paradl
from sweep.cube.dimensions import CELLS, restore_axes
from sweep.cube.store import Cube
from sweep.cube.variables import name_limits
from sweep.errors import NothingFeasibleError

if TYPE_CHECKING:
    import xarray as xr


def open_slice(
    source: Source, selection: Selection | None, extra: Collection[str] = ()
) -> "xr.Dataset":
    """The cells of a slice, with the dimensions of a cube, not read yet.

    extra: variables that are wanted beside the usual ones, where the cube has them. Models and data
    sets that do not fit each other are left out. InputError: a store without cells.
    """
    chosen, source = selection or {}, open_computed(source)
    cells = open_cells(source, chosen, extra) if isinstance(source, Cube) else source
    _expect_cells(cells)
    return _drop_misfits(select(restore_axes(cells, (*CELLS, *extra)), chosen))


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


def read_grid(cells: "xr.Dataset") -> Grid:
    """The design space of a cube that cells are of, with only the labels that the cells have."""
    return Paradl(cells).grid


def _expect_cells(cells: "xr.Dataset") -> None:
    """InputError: a variable that every picture is made of is not there."""
    missing = [name for name in SUMMARISED if hasattr(cells, "data_vars") and name not in cells]
    if missing:
        raise InputError(
            f"the cube has no variable {missing[0]!r}, and pictures are made of its cells",
            advice=f"sweep with outputs: [{', '.join(SUMMARISED)}]",
        )


def _drop_misfits(cells: "xr.Dataset") -> "xr.Dataset":
    """The cells without models and data sets of which nothing fits; all where nothing does."""
    misfit = cells["limit"] == np.uint16(Limit.INCOMPATIBLE)
    for dim in ("model", "dataset"):
        if cells.sizes[dim] > 1:
            alive = np.flatnonzero(~misfit.all([each for each in misfit.dims if each != dim]))
            if alive.size:
                cells, misfit = cells.isel({dim: alive}), misfit.isel({dim: alive})
    return cells


def _list_choices(cells: "xr.Dataset", several: Collection[str]) -> Iterator[str]:
    """Selections that leave one value of each of these axes, and something that exists."""
    for dim in several:
        if cells.sizes[dim] > 1:  # a model may have settled the data set
            yield f"{dim}={_write_value(cells, dim)}"
            cells = _drop_misfits(cells.isel({dim: [0]}))


def _write_value(cells: "xr.Dataset", dim: str) -> str:
    """The first value of an axis, as a shell and a selection take it."""
    value = _format_value(dim, cells[dim].values[0])
    return f'"{value}"' if " " in value else value


def _list_values(cells: "xr.Dataset", dim: str) -> str:
    values = [_format_value(dim, each) for each in cells[dim].values[:SHOWN]]
    more = cells.sizes[dim] - len(values)
    return ", ".join(values) + (f" and {more:,} more" if more else "")


def _format_value(dim: str, value: Any) -> str:
    return value if isinstance(value, str) else write_value(dim, float(value))


def expect_choice(value: str, choices: Collection[str], where: str) -> None:
    """InputError: a word that is none of the choices."""
    if value not in choices:
        raise InputError(
            f"unknown {where} {shorten(value)}", where=where, advice=suggest_name(value, choices)
        )


def expect_any(things: Sized, reasons: str) -> None:
    """NothingFeasibleError, with what forbids it, where there is nothing to be shown."""
    if not len(things):
        raise NothingFeasibleError(f"nothing in this slice is feasible: {reasons}")


def describe_place(cells: "xr.Dataset", told: Collection[str] = ()) -> str:
    """What all of a picture is about: the values of axes with one, but for those `told` elsewhere.

    Such as `vgg16, imagenet on abci, b = 64`.
    """
    scaling = read_grid(cells).spec.scaling
    names = {"batch": "b" if scaling == "weak" else "B", "pe": "p"}
    single = [str(dim) for dim in cells.dims if cells.sizes[dim] == 1 and dim not in told]
    labels = {dim: str(cells[dim].values[0]) for dim in single if dim in LABELS}
    where = f" on {labels.pop('system')}" if "system" in labels else ""
    numbers = [
        f"{names.get(dim, dim.replace('_', ' '))} = {format_number(dim, cells[dim].values[0])}"
        for dim in single
        if dim not in LABELS
    ]
    return ", ".join([", ".join(labels.values()) + where, *numbers])


def format_number(axis: str, value: float) -> str:
    """A value of a numeric axis as people read it, with its unit."""
    unit = PARAMETERS[axis].unit
    return f"{value:,.10g}" if unit == "1" else format_quantity(float(value), unit)


def find_allowed(limit: NDArray[Any]) -> NDArray[np.bool_]:
    """Where nothing forbids a cell."""
    allowed: NDArray[np.bool_] = np.equal(limit & np.uint16(FORBIDS), 0)
    return allowed


def find_beyond(limit: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a cell's global batch is larger than its data set."""
    beyond: NDArray[np.bool_] = (limit & np.uint16(Limit.BATCH_EXCEEDS_DATASET)) > 0
    return beyond


def name_stop(limit: NDArray[Any], last: int) -> str | None:
    """What forbids the first PE count beyond position `last`; None: the axis ends before anything.

    That a group does not divide a count stops nothing: the next one may be its multiple.
    """
    beyond = [int(flags) for flags in limit[last + 1 :] if int(flags) & STOPS]
    return _write_words(name_limits(beyond[0] & STOPS)) if beyond else None


def name_reasons(limit: NDArray[Any]) -> str:
    """What forbids cells none of which is allowed, the most frequent first."""
    counts = {
        name: int(((limit & np.uint16(Limit[name.upper()])) > 0).sum())
        for name in name_limits(FORBIDS)
    }
    frequent = sorted(counts, key=lambda name: -counts[name])
    return _write_words([name for name in frequent if counts[name]])


def _write_words(limits: list[str]) -> str:
    """Names of limits as people write them."""
    return ", ".join(limits).replace("_", " ").replace("pes", "PEs")
