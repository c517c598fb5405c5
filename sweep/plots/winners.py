"""Map: the fastest strategy over p and another axis, as coloured regions with borders."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter

from grids.grid import LABELS
from grids.models.layers import Floats
from grids.reading.errors import InputError, suggest_name
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cells.space import list_given
from sweep.cube.derived_quantities import Paradl
from sweep.cube.variables import find_allowed
from sweep.plots.figures import Size, add_legend, make_axes, scale_counts, use_style
from sweep.plots.looks import Look, choose_ink, choose_looks
from sweep.plots.regions import NOBODY, POINTS, is_logarithmic, refine_winners, spread_points
from sweep.plots.slices import (
    BEYOND_KEY,
    expect_any,
    find_beyond,
    format_number,
    name_reasons,
    open_slice,
    read_slice,
    write_axis,
    write_title,
)

if TYPE_CHECKING:
    import xarray as xr

# More PE counts are thinned out: hybrids exist only at multiples of their group, so a map of all
# counts would be striped.
MOST_COLUMNS = 40
COLUMNS_PER_DOUBLING = 2  # of the PE count, where it is thinned out


@dataclass(frozen=True)
class Map:
    """Times [s per epoch] of strategies [strategy, axis, pe], inf where forbidden.

    axis, values: the y axis. counts: PE counts of the slice, of which `pe` are shown. known: all
    strategies of the cube, so that its pictures agree in colours. beyond [axis, pe]: where the
    winner's global batch is larger than the data set. given: whether the y axis is a parameter of
    the machine. chosen: axes along which each strategy takes its best value.
    """

    title: str
    axis: str
    pe: Floats
    values: Floats
    strategies: tuple[str, ...]
    times: Floats
    counts: int
    known: tuple[str, ...]
    beyond: NDArray[np.bool_]
    given: bool = False
    chosen: tuple[str, ...] = ()

    @property
    def winners(self) -> NDArray[np.int64]:
        """Position of the fastest strategy [axis, pe]; NOBODY where nothing is feasible."""
        fastest = np.asarray(self.times.argmin(axis=0))
        return np.where(np.isfinite(self.times).any(axis=0), fastest, NOBODY)


def describe_map(
    source: Source, selection: Selection | None = None, over: str | None = None
) -> Map:
    """Compute the map of a slice over p and `over`, by default the first axis with several values.

    Along other axes that a user may choose (batch, group, segments, accumulate), each strategy
    takes its best value; a parameter of the machine must have a single one. InputError: it has
    several, or p is the only axis. NothingFeasibleError: nothing is feasible.
    """
    cells = open_slice(source, selection)
    axis = _choose_upright(cells, over)
    grid, others = Paradl(cells).grid, [dim for dim in _list_wide(cells) if dim not in ("pe", axis)]
    free = [dim for dim in others if not list_given(grid, [dim])]
    cells = read_slice(cells, ("strategy", "pe", axis, *free))
    ordered = cells.transpose(*LABELS, axis, "pe", ...)
    shape = [*(ordered.sizes[dim] for dim in ("strategy", axis, "pe")), -1]
    limit = ordered["limit"].values.reshape(shape)
    seconds = Paradl(ordered).epoch_time.values.astype(float).reshape(shape)
    # Infinite, since argmin counts NaN as the smallest.
    seconds = np.where(find_allowed(limit) & np.isfinite(seconds), seconds, np.inf)
    expect_any(np.flatnonzero(np.isfinite(seconds)), name_reasons(limit.reshape(-1)))
    best = seconds.argmin(axis=-1, keepdims=True)
    times = np.take_along_axis(seconds, best, -1)[..., 0]
    beyond = find_beyond(np.take_along_axis(limit, best, -1)[..., 0])
    pe = cells["pe"].values.astype(float)
    columns = _choose_columns(pe, np.isfinite(times).sum(axis=(0, 1)))
    times, beyond = times[:, :, columns], beyond[:, :, columns]
    fastest = times.argmin(axis=0)[None]
    return Map(
        title=write_title(cells, shown=("strategy", "pe", axis)),
        axis=axis,
        pe=pe[columns],
        values=cells[axis].values.astype(float),
        strategies=tuple(map(str, cells["strategy"].values)),
        times=times,
        counts=len(pe),
        known=grid.labels["strategy"],
        beyond=np.take_along_axis(beyond, fastest, 0)[0] & np.isfinite(times).any(axis=0),
        given=bool(list_given(grid, [axis])),
        chosen=tuple(free),
    )


def _list_wide(cells: "xr.Dataset") -> list[str]:
    """List the numeric axes with several values."""
    return [str(dim) for dim in cells.dims if dim not in LABELS and cells.sizes[dim] > 1]


def _choose_upright(cells: "xr.Dataset", over: str | None) -> str:
    wide = _list_wide(cells)
    others = [dim for dim in wide if dim != "pe"]
    if "pe" not in wide or not others:
        raise InputError(
            "a map needs several PE counts and several values of another axis; this slice has "
            f"several values of {', '.join(wide) or 'no axis'}",
            where="selection",
            advice="select more of pe and batch, or sweep over both",
        )
    if over is not None and over not in others:
        raise InputError(
            f"no axis {over!r} with several values in this slice",
            where="over",
            advice=suggest_name(over, others),
        )
    return over or others[0]


def _choose_columns(pe: Floats, candidates: NDArray[np.int64]) -> list[int]:
    """Choose the positions of the PE counts to show: all, or the one with the most feasible cells
    in each logarithmic step.
    """
    if len(pe) <= MOST_COLUMNS:
        return list(range(len(pe)))
    # The small addend keeps rounding from moving a power of two into the step before it.
    steps = np.floor(np.log2(pe) * COLUMNS_PER_DOUBLING + 1e-9)
    groups = (np.flatnonzero(steps == step) for step in np.unique(steps))
    return [int(group[candidates[group].argmax()]) for group in groups]


INFEASIBLE = "nothing feasible"
HATCH: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.6", "hatch": "////"}
MOST_TICKS = 10


def draw_map(shown: Map, size: Size = "page") -> Figure:
    """Draw a region for each winner, with its name inside where there is room."""
    looks = choose_looks(shown.known)
    x, y = spread_points(shown.pe), spread_points(shown.values)
    regions = _find_regions(shown, x, y)
    with use_style(size):
        figure, axes = make_axes(size, f"fastest strategy: {shown.title}", _write_note(shown))
        axes.patch.set(**HATCH)
        _scale_axes(axes, shown, x, y)
        keys: list[Artist] = [
            _draw_region(axes, x, y, region, name, looks[name]) for name, region in regions.items()
        ]
        if (shown.winners == NOBODY).any():
            keys.append(Patch(label=INFEASIBLE, **HATCH))
        if shown.beyond.any():
            keys.append(_mark_beyond(axes, shown))
        add_legend(figure, keys)
        figure.draw_without_rendering()  # gives texts their sizes
        for name, region in regions.items():
            _write_inside(axes, x, y, region, name, looks[name])
    return figure


def _find_regions(shown: Map, x: Floats, y: Floats) -> dict[str, NDArray[np.bool_]]:
    """Return where each strategy wins [y, x], the one that wins the most cells first."""
    won = shown.winners[shown.winners != NOBODY]
    counts = np.bincount(won, minlength=len(shown.strategies))
    fine = refine_winners(shown.times, (shown.values, y), (shown.pe, x))
    order = [number for number in np.argsort(-counts, kind="stable") if counts[number]]
    return {shown.strategies[number]: fine == number for number in order}


def _write_note(shown: Map) -> str:
    parts = []
    if shown.given:
        parts.append(f"each {write_axis(shown.axis)} is another machine")
    if shown.chosen:
        parts.append(f"each strategy at its best {' and '.join(map(write_axis, shown.chosen))}")
    if shown.counts != len(shown.pe):
        parts.append(f"{len(shown.pe)} of {shown.counts:,} PE counts shown")
    return "; ".join(parts)


def _mark_beyond(axes: Axes, shown: Map) -> Line2D:
    """Draw dots where the winner's global batch is larger than the data set; return their key."""
    rows, columns = np.nonzero(shown.beyond)
    style: Any = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.4}
    (dots,) = axes.plot(shown.pe[columns], shown.values[rows], "o", label=BEYOND_KEY, **style)
    return dots


def _scale_axes(axes: Axes, shown: Map, x: Floats, y: Floats) -> None:
    scale_counts(axes, shown.pe)
    if is_logarithmic(shown.values):
        axes.set_yscale("log", base=2)
    ticks = shown.values[:: -(-len(shown.values) // MOST_TICKS)]
    axes.set_yticks(ticks, [format_number(shown.axis, value) for value in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("samples per replica, b" if shown.axis == "batch" else write_axis(shown.axis))
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))


def _draw_region(
    axes: Axes, x: Floats, y: Floats, region: NDArray[np.bool_], name: str, look: Look
) -> Patch:
    """Fill the region of a strategy, with a white border; return its legend key."""
    won = region.astype(float)
    filled = axes.contourf(x, y, won, [0.5, 1.5], colors=[look.colour], hatches=[look.hatch])
    filled.set(edgecolor="white", linewidth=0, zorder=1)  # the edge has the colour of the hatch
    axes.contour(x, y, won, [0.5], colors="white", zorder=2)
    return Patch(fc=look.colour, ec="white", hatch=look.hatch, linewidth=0, label=name)


def _write_inside(
    axes: Axes, x: Floats, y: Floats, region: NDArray[np.bool_], name: str, look: Look
) -> None:
    """Write a winner's name into its region, as close to the middle as it fits."""
    text = axes.text(x[0], y[0], name, ha="center", va="center", zorder=4)
    text.set(color=choose_ink(look.colour), backgroundcolor=look.colour if look.hatch else "none")
    room, box = text.get_window_extent(), axes.get_window_extent()
    free = room.height  # half of it on each side of the text
    height, width = (room.height + free) / box.height, (room.width + free) / box.width
    needed = [int(POINTS * share) + 1 for share in (height, width)]
    fits = np.argwhere(minimum_filter(region, needed, mode="constant"))
    if not len(fits):
        text.remove()
        return
    middle = np.argwhere(region).mean(axis=0)
    row, column = fits[np.abs(fits - middle).sum(axis=1).argmin()]
    text.set_position((x[column], y[row]))
