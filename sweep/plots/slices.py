"""The slice of a cube that a picture shows; axes that it does not show must have one value."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.flags import STOPS, Limit
from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.reasons import rank_limits
from paradl.sweep.cells.selection import (
    SHOWN,
    Selection,
    look_up_parameter,
    read_columns,
    write_value,
)
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.cells.space import list_given
from paradl.sweep.configurations.degrees import name_layout
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.cube.variables import name_limits
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.text.tables import shorten_label

if TYPE_CHECKING:
    import xarray as xr

# What `find_beyond` finds, in a note, and on two lines in a legend.
BEYOND = "global batch larger than the data set"
BEYOND_KEY = "global batch larger\nthan the data set"

PLACES = {"intra": "in a node", "inter": "between nodes"}


def open_slice(
    source: Source, selection: Selection | None, extra: Collection[str] = ()
) -> "xr.Dataset":
    """Open the cells of a slice lazily, with all dimensions of a cube.

    Models and data sets that fit no other are dropped. extra: further variables, if the cube has
    them. InputError: the store has no cells.
    """
    return _drop_misfits(open_source(source).read_cells(selection or {}, extra=extra))


def read_slice(cells: "xr.Dataset", kept: Collection[str]) -> "xr.Dataset":
    """Read the cells. InputError: an axis not in `kept` has several values."""
    expect_single(cells, kept)
    return cells.load()


def read_fastest(cells: "xr.Dataset", kept: Collection[str]) -> "xr.Dataset":
    """Read the cells, of several layouts the fastest allowed one, whose number stays.

    InputError: another axis not in `kept` has several values.
    """
    grid = Paradl(cells).grid
    # Rows of layouts; a parameter of the machine is no choice.
    rows = [dim for dim in grid.rows if cells.sizes[dim] > 1 and not list_given(grid, [dim])]
    cells = read_slice(cells, (*kept, *rows))
    for dim in rows:
        cells = take_fastest(cells, dim)
    return cells


def take_fastest(cells: "xr.Dataset", dim: str) -> "xr.Dataset":
    """Take the fastest allowed position along a dimension, whose number stays; else the first."""
    derived = Paradl(cells)
    times = derived.epoch_time.where(derived.feasible)
    # Columns of the rows would vary along other axes now.
    return cells.drop_vars(read_columns(cells)).isel({dim: times.fillna(np.inf).argmin(dim)})


def expect_single(cells: "xr.Dataset", kept: Collection[str]) -> None:
    """Check that axes not in `kept` have one value. InputError: they have several."""
    several = [str(dim) for dim in cells.dims if dim not in kept and cells.sizes[dim] > 1]
    if several:
        todo = " ".join(_list_choices(cells, several))
        known = "; ".join(f"{dim} {_list_values(cells, dim)}" for dim in several)
        raise InputError(
            f"this picture needs a single value of {', '.join(several)}; the slice has several",
            where="selection",
            advice=f"add such as {todo} (known: {known})",
        )


def _drop_misfits(cells: "xr.Dataset") -> "xr.Dataset":
    """Drop models and data sets that fit no other, unless nothing fits at all."""
    # Cells that were never written have this flag alone.
    misfit = cells["limit"] == np.uint16(Limit.INCOMPATIBLE)
    for dim in ("model", "dataset"):
        if cells.sizes[dim] > 1:
            fits = np.flatnonzero(~misfit.all([other for other in misfit.dims if other != dim]))
            if fits.size:
                cells, misfit = cells.isel({dim: fits}), misfit.isel({dim: fits})
    return cells


def _list_choices(cells: "xr.Dataset", several: Collection[str]) -> Iterator[str]:
    """Propose one value per axis, such that the cells exist."""
    for dim in several:
        if cells.sizes[dim] > 1:  # choosing a model may have left only one data set
            value = _write_value(dim, cells[dim].values[0])
            text = f'"{value}"' if " " in value else value
            yield f"{dim}={text}"
            cells = _drop_misfits(cells.isel({dim: [0]}))


def _list_values(cells: "xr.Dataset", dim: str) -> str:
    values = [_write_value(dim, value) for value in cells[dim].values[:SHOWN]]
    rest = cells.sizes[dim] - len(values)
    return ", ".join(values) + (f" and {rest:,} more" if rest else "")


def _write_value(dim: str, value: Any) -> str:
    return str(value) if dim in LABELS else write_value(dim, float(value))


def expect_any(things: Sized, reasons: str) -> None:
    """Check that there is something to draw. NothingFeasibleError, with the reasons: nothing."""
    if not len(things):
        why = reasons or "no cell of it is computed yet (paradl status)"
        raise NothingFeasibleError(f"nothing in this slice is feasible: {why}")


def write_title(cells: "xr.Dataset", shown: Collection[str] = ()) -> str:
    """Write a picture's title: its axes of one value, such as `vgg16, imagenet on abci, b = 64`.

    shown: axes that the picture itself shows.
    """
    grid = Paradl(cells).grid
    single = [str(dim) for dim in cells.dims if cells.sizes[dim] == 1 and dim not in shown]
    labels = {dim: str(cells[dim].values[0]) for dim in single if dim in LABELS}
    if "strategy" in labels:
        labels["strategy"] = shorten_label(labels["strategy"])
    where = f" on {labels.pop('system')}" if "system" in labels else ""
    numbers = [
        f"{name_axis(grid, dim)} = {format_number(dim, cells[dim].values[0])}"
        for dim in single
        if dim not in LABELS
    ]
    numbers += [
        f"{write_axis(name)} = {format_number(name, values[0])}"
        for name, (dim, values) in read_columns(cells).items()
        if dim in single
    ]
    best = [f"each at its best {dim}" for dim in grid.rows if dim not in cells.dims]
    return ", ".join([", ".join(labels.values()) + where, *numbers, *best])


def name_axis(grid: Grid, axis: str) -> str:
    """Name an axis in short: p, b, B, or its words."""
    symbols = {"batch": "b" if grid.spec.scaling == "weak" else "B", "pe": "p"}
    return symbols.get(axis, write_axis(axis))


def write_axis(axis: str) -> str:
    """Write the name of an axis in words, such as `bandwidth between nodes`."""
    place, _, quantity = axis.partition("_")
    words = f"{quantity} {PLACES[place]}" if place in PLACES else axis
    return words.replace("_", " ")


def format_number(axis: str, value: float) -> str:
    """Write a value of a numeric axis with its unit."""
    unit = look_up_parameter(axis).unit
    return f"{value:,.10g}" if unit == "1" else format_quantity(float(value), unit)


def write_choice(grid: Grid, row: Mapping[str, Any], axes: Iterable[str]) -> str:
    """Write what a cell chooses along some axes; of a layout's rows, its words."""
    layout = name_layout(grid, row)
    values = [
        f"{name_axis(grid, axis)} = {format_number(axis, row[axis])}"
        for axis in axes
        if not (layout and axis in grid.rows)
    ]
    return ", ".join([*values, *([layout] if layout else [])])


def read_row(grid: Grid, cell: "xr.Dataset") -> Row:
    """Return the labels and axes of a single cell."""
    labels = {dim: str(cell[dim].item()) for dim in LABELS}
    return labels | {axis: float(cell[axis].item()) for axis in grid.axes}


def find_beyond(limit: NDArray[Any]) -> NDArray[np.bool_]:
    """Find the cells whose global batch is larger than their data set."""
    return np.asarray((limit & np.uint16(Limit.BATCH_EXCEEDS_DATASET)) > 0)


def name_stop(limit: NDArray[Any], last: int) -> str | None:
    """Name the limit that stops a curve after position `last`; None: the axis or machine ends."""
    # A group that does not divide a count stops no curve: the next count may be a multiple.
    beyond = [int(flags) & STOPS for flags in limit[last + 1 :] if int(flags) & STOPS]
    if not beyond or beyond[0] & Limit.MACHINE_TOO_SMALL:
        return None
    return _write_words(name_limits(beyond[0]))


def name_reasons(limit: NDArray[Any]) -> str:
    """Name the limits of forbidden cells, the most frequent first."""
    return _write_words(rank_limits(limit))


def _write_words(limits: Iterable[str]) -> str:
    # `too_many_pes` has PEs in small letters.
    return ", ".join(limits).replace("_", " ").replace("pes", "PEs")


def list_by_cause(causes: Mapping[str, str]) -> str:
    """Group names by the limit that forbids them: `serial, data (memory)`."""
    names: dict[str, list[str]] = {}
    for name, cause in causes.items():
        names.setdefault(cause, []).append(name)
    return "; ".join(f"{', '.join(group)} ({cause})" for cause, group in names.items())
