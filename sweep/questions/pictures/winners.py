"""Map: the best strategy over p and another axis, batch or a bandwidth."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grids.grid import LABELS
from grids.models.layers import Floats
from grids.reading.errors import InputError, suggest_name
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cube.derived import Paradl
from sweep.questions.pictures.cells import (
    describe_place,
    expect_any,
    find_allowed,
    find_beyond,
    name_reasons,
    open_slice,
    read_slice,
)

if TYPE_CHECKING:
    import xarray as xr

NOBODY = -1
# More PE counts than this are thinned out: at those that are no multiples of a group no hybrid is,
# and a map of all of them is one of stripes.
MOST_COLUMNS = 40
A_DOUBLING = 2  # columns that are left where PE counts double


@dataclass(frozen=True)
class Map:
    """The strategy with the least epoch time in each cell [axis, pe]: a position in `strategies`.

    NOBODY: nothing is feasible. axis: the name of the upright one. place: what all of it is about.
    counts: how many PE counts the slice has, of many of which some are shown. known: all strategies
    of the cube, which colours go by. across [axis, pe - 1], up [axis - 1, pe]: where between two
    neighbours the winner changes, as values of the PE counts and of the axis; NaN where it does
    not, or where one of the two winners is not allowed in both. beyond [axis, pe]: where the
    winner's global batch is larger than the data set.
    """

    place: str
    axis: str
    pe: Floats
    values: Floats
    strategies: tuple[str, ...]
    winners: NDArray[np.int64]
    counts: int
    known: tuple[str, ...]
    across: Floats
    up: Floats
    beyond: NDArray[np.bool_] | None = None


def describe_map(
    source: Source, selection: Selection | None = None, over: str | None = None
) -> Map:
    """Who wins where, over p and the axis `over`.

    By default the only numeric axis beside p with several values. InputError: there is none, there
    are several, or another axis has several. NothingFeasibleError: nobody wins anywhere.
    """
    cells = open_slice(source, selection)
    axis = _choose_upright(cells, over)
    cells = read_slice(cells, ("strategy", "pe", axis))
    ordered = cells.transpose(*LABELS, axis, "pe", ...)
    shape = [ordered.sizes[dim] for dim in ("strategy", axis, "pe")]
    derived = Paradl(ordered)
    times = derived.epoch_time.values.astype(float).reshape(shape)
    limit = ordered["limit"].values.reshape(shape)
    # Infinite and not NaN: argmin takes NaN for the least.
    times = np.where(find_allowed(limit) & np.isfinite(times), times, np.inf)
    pe = cells["pe"].values.astype(float)
    shown = _choose_columns(pe, np.isfinite(times).sum(axis=(0, 1)))
    times = times[:, :, shown]
    expect_any(np.flatnonzero(np.isfinite(times)), name_reasons(limit.reshape(-1)))
    winners = np.where(np.isfinite(times).any(axis=0), times.argmin(axis=0), NOBODY)
    values = cells[axis].values.astype(float)
    beyond = find_beyond(np.take_along_axis(limit[:, :, shown], winners[None], 0)[0])
    return Map(
        describe_place(cells, told=("strategy", "pe", axis)),
        axis,
        pe[shown],
        values,
        tuple(map(str, cells["strategy"].values)),
        winners,
        len(pe),
        derived.grid.labels["strategy"],
        find_changes(times, winners, pe[shown]),
        find_changes(times.swapaxes(1, 2), winners.T, values).T,
        beyond & (winners != NOBODY),
    )


def find_changes(times: Floats, winners: NDArray[np.int64], values: Floats) -> Floats:
    """Where between two neighbours the winner changes [rows, values - 1], NaN where nothing does.

    times [strategy, rows, values], infinite where nothing is allowed. Where the ratio of the two
    winners' times is 1 on a line between two values, in logarithms of both.
    """
    scaled = np.log(values) if (values > 0).all() else values
    low, high = winners[:, :-1], winners[:, 1:]
    at = np.nonzero((low != high) & (low != NOBODY) & (high != NOBODY))
    rows, columns = at
    logs = np.log(times)
    with np.errstate(invalid="ignore", divide="ignore"):  # of what is not allowed
        before, after = (
            logs[low[at], rows, n] - logs[high[at], rows, n] for n in (columns, columns + 1)
        )
        part = before / (before - after)
    part[~np.isfinite(before) | ~np.isfinite(after)] = np.nan
    changes = np.full(low.shape, np.nan)
    changes[at] = scaled[columns] + part * (scaled[columns + 1] - scaled[columns])
    return np.exp(changes) if (values > 0).all() else changes


def _choose_columns(pe: Floats, candidates: NDArray[np.int64]) -> list[int]:
    """Positions of the PE counts to show: all of few; else that with the most candidates of each
    step on a logarithmic scale, the first of several.
    """
    if len(pe) <= MOST_COLUMNS:
        return list(range(len(pe)))
    # 2**1.5 is no whole number, 8 = 2**3 has to begin its step.
    steps = np.floor(np.log2(pe) * A_DOUBLING + 1e-9)
    groups = (np.flatnonzero(steps == step) for step in np.unique(steps))
    return [int(group[candidates[group].argmax()]) for group in groups]


def _choose_upright(cells: "xr.Dataset", over: str | None) -> str:
    """The name of the upright axis."""
    wide = [str(dim) for dim in cells.dims if dim not in LABELS and cells.sizes[dim] > 1]
    others = [dim for dim in wide if dim != "pe"]
    if "pe" not in wide or not others:
        raise InputError(
            "a map has several PE counts, and several values of another axis; this slice has "
            f"several of {', '.join(wide) or 'none'}",
            where="selection",
            advice="select more of pe and batch, or sweep over both",
        )
    if over is None:
        return others[0]
    if over not in others:
        raise InputError(
            f"no axis {over!r} with several values in this slice",
            where="over",
            advice=suggest_name(over, others),
        )
    return over
