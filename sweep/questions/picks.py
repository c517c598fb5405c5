"""Picks: of each strategy in each place of a slice the best allowed cell, by an aim.

A place is a model, a data set and a machine: a system, and one value of each of its parameters that
are axes. From the summary, where a store keeps what is asked for; else from the cells.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import GIVEN
from grids.grid import LABELS, Grid
from kernels.flags import FORBIDS, Limit
from kernels.statistics import BEST, COUNT, Objective
from sweep.answers.objectives import Aim
from sweep.answers.reasons import rank_limits, rank_reasons
from sweep.cells.lines import Columns, split_groups
from sweep.cells.selection import Selection
from sweep.cells.source import CHOSEN, Source, open_source, read_cells, summarise_slice
from sweep.cells.space import list_given, read_grid, write_axis
from sweep.cube.store import Cube
from sweep.cube.variables import name_limits

if TYPE_CHECKING:
    import xarray as xr

Row = dict[str, Any]

PLACE = ("model", "dataset", "system")


def pick_strategies(
    source: Source, selection: Selection | None, aim: Aim, max_global_batch: int | None = None
) -> Iterator[Row]:
    """A row for each strategy that can be in each place, in the cube's order.

    Its labels and axes, comp_time, comm_time [s an epoch], epochs (None unless the aim is to
    train), memory [B], `limit`: what forbids all cells where none is allowed; `chosen`: the group
    and the segments where cells tell them.
    """
    source = open_source(source)
    whole = "pe" not in (selection or {}) and max_global_batch is None
    if isinstance(source, Cube) and whole and aim.summarised:
        lines = summarise_slice(source, selection, objective=aim.summarised)
        others = list(lines.coordinates)[len(LABELS) :]
        for columns in split_groups(lines.list_columns(), LABELS):
            for own in _split_given(columns, list_given(others)):
                yield _pick_line(own, others, aim.summarised)
        return
    cells = read_cells(source, selection, max_global_batch)
    yield from _pick_cells(read_grid(source), cells, aim)


def _split_given(columns: Columns, given: list[str]) -> Iterator[Columns]:
    """The lines of one strategy for each combination of values of some axes."""
    if not given:
        yield columns
        return
    order = np.lexsort([columns[name] for name in reversed(given)])  # stable
    yield from split_groups({name: values[order] for name, values in columns.items()}, given)


def _pick_line(lines: Columns, others: list[str], objective: Objective) -> Row:
    """The best of one strategy's lines of PE counts."""
    names = BEST[objective]
    times = lines[names["time"]]
    feasible = not np.isnan(times).all()
    # Of nothing but NaN nanargmin raises; a line that cannot be still has the labels.
    fastest = int(np.nanargmin(times)) if feasible else 0
    chosen = {name: values[fastest] for name, values in lines.items()}
    labels = {label: chosen[label] for label in LABELS}
    axes = {"pe": int(chosen[names["pe"]]), **{axis: chosen[axis].item() for axis in others}}
    told = {field: float(chosen[name]) for field, name in names.items()}
    if not feasible:
        given = {name: axes[name] for name in list_given(axes)}
        return labels | _pick_nothing([*axes], given, _count_reasons(lines))
    trains = objective == "train_time"
    epoch = told["time"] / told["epochs"] if trains else told["time"]
    return {
        **labels,
        **axes,
        "comp_time": told["comp_time"],
        "comm_time": epoch - told["comp_time"],
        "epochs": told["epochs"] if trains else None,
        "memory": told["memory"],
        "limit": [],
        "chosen": None,
    }


def _pick_cells(grid: Grid, cells: "xr.Dataset", aim: Aim) -> Iterator[Row]:
    """The rows, from cells that are read a strategy at a time."""
    axes = [str(dim) for dim in cells["limit"].dims if dim not in LABELS]
    for index in product(*(range(cells.sizes[dim]) for dim in LABELS)):
        part = cells.isel(dict(zip(LABELS, index, strict=True))).load()
        labels = {dim: str(part[dim].item()) for dim in LABELS}
        limit = part["limit"].transpose(*axes).values
        if (limit == Limit.INCOMPATIBLE).all():
            continue
        trains = aim.trains(grid, labels["model"], labels["dataset"])
        arrays = _read_arrays(part, axes, trains)
        weight = _weigh(arrays, part["pe"].values, aim)
        allowed = np.where((limit & FORBIDS) == 0, weight, np.nan)
        for own in _list_places(part, axes):
            values = [part[axis].values[each] for axis, each in zip(axes, own, strict=True)]
            place = {
                axis: write_axis(axis, each[0])
                for axis, each in zip(axes, values, strict=True)
                if axis in GIVEN
            }
            if np.isnan(allowed[own]).all():
                yield labels | _pick_nothing(axes, place, rank_limits(limit[own]))
                continue
            at = np.unravel_index(int(np.nanargmin(allowed[own])), allowed[own].shape)
            chosen = {
                axis: write_axis(axis, each[n])
                for axis, each, n in zip(axes, values, at, strict=True)
            }
            cell = {name: float(each[own][at]) for name, each in arrays.items()}
            yield labels | chosen | _describe_cell(cell)


def _list_places(part: "xr.Dataset", axes: list[str]) -> Iterator[tuple[slice, ...]]:
    """The cells of each combination of values of a machine's parameters."""
    sizes = [part.sizes[axis] if axis in GIVEN else 1 for axis in axes]
    for at in np.ndindex(*sizes):
        yield tuple(
            slice(n, n + 1) if axis in GIVEN else slice(None)
            for axis, n in zip(axes, at, strict=True)
        )


def _read_arrays(part: "xr.Dataset", axes: list[str], trains: bool) -> dict[str, NDArray[Any]]:
    """Times, memory and what was chosen [axes], PE counts first; epochs where they are asked."""
    from sweep.cells.computed_summary import add_epochs

    part = add_epochs(part) if trains else part.drop_vars("epochs", errors="ignore")
    names = ("comp_time", "comm_time", "memory", "epochs", *CHOSEN.values())
    return {
        name: part[name].transpose(*axes).values.astype(float) for name in names if name in part
    }


def _weigh(arrays: Mapping[str, NDArray[Any]], pe: NDArray[Any], aim: Aim) -> NDArray[Any]:
    """What the aim makes small, of each cell; prices differ between systems alone."""
    time = arrays["comp_time"] + arrays["comm_time"]
    if "epochs" in arrays:
        time = time * arrays["epochs"]
    counts = 1.0 if aim.summarised else pe.reshape(-1, *[1] * (time.ndim - 1))
    return np.asarray(time * counts)


def _describe_cell(cell: Mapping[str, float]) -> Row:
    """What a row says of one cell, beside its place."""
    known = all(name in cell for name in CHOSEN.values())
    return {
        **{name: cell[name] for name in ("comp_time", "comm_time")},
        "epochs": cell.get("epochs"),
        "memory": cell["memory"],
        "limit": [],
        "chosen": {of: int(cell[name]) for of, name in CHOSEN.items()} if known else None,
    }


def _pick_nothing(axes: list[str], given: Row, reasons: list[str]) -> Row:
    """A row of a strategy that nothing allows with the given values of a machine's parameters."""
    nothing = (*axes, "comp_time", "comm_time", "epochs", "memory", "chosen")
    return dict.fromkeys(nothing) | given | {"limit": reasons}


def _count_reasons(lines: Columns) -> list[str]:
    """Names of what forbids the cells of lines, the most frequent first."""
    return rank_reasons({name: int(lines[f"{COUNT}{name}"].sum()) for name in name_limits(FORBIDS)})
