"""Map: the fastest strategy over p and another axis, in colours, crossovers as lines between."""

from collections.abc import Collection
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
from sweep.cube.derived import Paradl
from sweep.plots.figures import Size, add_legend, make_axes, scale_counts, use_style
from sweep.plots.looks import Look, choose_ink, choose_looks
from sweep.plots.regions import NOBODY, POINTS, is_logarithmic, refine_winners, spread_points
from sweep.plots.slices import (
    BEYOND,
    describe_place,
    expect_any,
    find_allowed,
    find_beyond,
    format_number,
    name_reasons,
    open_slice,
    read_slice,
    write_axis,
)

if TYPE_CHECKING:
    import xarray as xr

# More PE counts than this are thinned out: at those that are no multiples of a group no hybrid is,
# and a map of all of them is one of stripes.
MOST_COLUMNS = 40
A_DOUBLING = 2  # columns that are left where PE counts double


@dataclass(frozen=True)
class Map:
    """Times [s an epoch] of strategies [strategy, axis, pe], infinite where nothing is allowed.

    axis: the name of the upright one. place: what all of it is about. given: whether the axis is a
    parameter of the machine, each value of which is a machine of its own. chosen: axes along which
    each strategy has its best value. counts: how many PE counts the slice has, of many of which
    some are shown. known: all strategies of the cube, which colours go by. beyond [axis, pe]: where
    the winner's global batch is larger than the data set.
    """

    place: str
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
        """The position of the fastest strategy [axis, pe]; NOBODY: nothing is feasible."""
        fastest = np.asarray(self.times.argmin(axis=0))
        return np.where(np.isfinite(self.times).any(axis=0), fastest, NOBODY)


def describe_map(
    source: Source, selection: Selection | None = None, over: str | None = None
) -> Map:
    """Who wins where, over p and the axis `over`, by default the first of several values beside p.

    Of batch, group, segments and accumulate, which one chooses, each strategy has its best value;
    a parameter of the machine is given, and has one value unless it is `over`. InputError: it has
    several; there is no axis beside p. NothingFeasibleError: nobody wins anywhere.
    """
    cells = open_slice(source, selection)
    axis = _choose_upright(cells, over)
    free = [dim for dim in _list_wide(cells) if dim not in ("pe", axis) and not list_given([dim])]
    cells = read_slice(cells, ("strategy", "pe", axis, *free))
    ordered = cells.transpose(*LABELS, axis, "pe", ...)
    shape = [*(ordered.sizes[dim] for dim in ("strategy", axis, "pe")), -1]
    limit = ordered["limit"].values.reshape(shape)
    seconds = Paradl(ordered).epoch_time.values.astype(float).reshape(shape)
    # Infinite and not NaN: argmin takes NaN for the least.
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
        place=describe_place(cells, shown=("strategy", "pe", axis)),
        axis=axis,
        pe=pe[columns],
        values=cells[axis].values.astype(float),
        strategies=tuple(map(str, cells["strategy"].values)),
        times=times,
        counts=len(pe),
        known=Paradl(cells).grid.labels["strategy"],
        beyond=np.take_along_axis(beyond, fastest, 0)[0] & np.isfinite(times).any(axis=0),
        given=bool(list_given([axis])),
        chosen=tuple(free),
    )


def _list_wide(cells: "xr.Dataset") -> list[str]:
    """The numeric axes with several values."""
    return [str(dim) for dim in cells.dims if dim not in LABELS and cells.sizes[dim] > 1]


def _choose_upright(cells: "xr.Dataset", over: str | None) -> str:
    """The name of the upright axis."""
    wide = _list_wide(cells)
    others = [dim for dim in wide if dim != "pe"]
    if "pe" not in wide or not others:
        raise InputError(
            "a map has several PE counts, and several values of another axis; this slice has "
            f"several of {', '.join(wide) or 'none'}",
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
    """Positions of the PE counts to show: all of few; else that with the most candidates of each
    step on a logarithmic scale, the first of several.
    """
    if len(pe) <= MOST_COLUMNS:
        return list(range(len(pe)))
    # 2**1.5 is no whole number, 8 = 2**3 has to begin its step.
    steps = np.floor(np.log2(pe) * A_DOUBLING + 1e-9)
    groups = (np.flatnonzero(steps == step) for step in np.unique(steps))
    return [int(group[candidates[group].argmax()]) for group in groups]


INFEASIBLE = "nothing feasible"
HATCH: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.6", "hatch": "////"}
MOST_TICKS = 10


def draw_map(shown: Map, size: Size = "page") -> Figure:
    """The figure of a map: regions of one winner, each with its name where it has room."""
    looks = choose_looks(shown.known)
    winners = _order_winners(shown)
    with use_style(size):
        figure, axes = make_axes(size, f"fastest strategy: {shown.place}", _write_note(shown))
        axes.patch.set(**HATCH)
        keys: list[Artist] = [
            Patch(label=shown.strategies[winner], **_fill(looks[shown.strategies[winner]]))
            for winner in winners
        ]
        if (shown.winners == NOBODY).any():
            keys.append(Patch(label=INFEASIBLE, **HATCH))
        if shown.beyond.any():
            keys.append(_mark_beyond(axes, shown))
        add_legend(figure, keys)
        x, y = spread_points(shown.pe), spread_points(shown.values)
        fine = refine_winners(shown.times, (shown.values, y), (shown.pe, x))
        _scale_axes(axes, shown, x, y)
        for winner in winners:
            _draw_region(axes, x, y, fine == winner, looks[shown.strategies[winner]])
        figure.draw_without_rendering()  # how wide the axes are is known behind it
        for winner in winners:
            look = looks[shown.strategies[winner]]
            _write_inside(axes, (x, y), fine == winner, shown.strategies[winner], look)
    return figure


def _order_winners(shown: Map) -> list[int]:
    """Positions of the strategies that win anywhere, the most frequent first."""
    counts = np.bincount(shown.winners[shown.winners != NOBODY], minlength=len(shown.strategies))
    return [int(winner) for winner in np.argsort(-counts, kind="stable") if counts[winner]]


def _write_note(shown: Map) -> str:
    """What is chosen and what is given along axes, and that some columns are left out."""
    parts = []
    if shown.given:
        parts.append(f"{write_axis(shown.axis)} is given: each value is another machine")
    if shown.chosen:
        parts.append(f"each strategy with its best {_join(shown.chosen)}")
    if shown.counts != len(shown.pe):
        parts.append(
            f"{len(shown.pe)} of {shown.counts:,} PE counts shown: those with the most candidates"
        )
    return "; ".join(parts)


def _join(names: Collection[str]) -> str:
    return " and ".join(map(write_axis, names))


def _fill(look: Look) -> dict[str, Any]:
    """The settings of a patch; hatches tell settings of one strategy apart."""
    return {"facecolor": look.colour, "edgecolor": "white", "linewidth": 0, "hatch": look.hatch}


def _mark_beyond(axes: Axes, shown: Map) -> Line2D:
    """Put a dot at each value where the winner's global batch is larger than the data set."""
    rows, columns = np.nonzero(shown.beyond)
    style: Any = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.4}
    label = BEYOND.replace("larger", "\nlarger")
    (dots,) = axes.plot(shown.pe[columns], shown.values[rows], "o", label=label, **style)
    return dots


def _scale_axes(axes: Axes, shown: Map, x: Floats, y: Floats) -> None:
    """Scales, ticks at values that there are, words with units."""
    scale_counts(axes, shown.pe)
    if is_logarithmic(shown.values):
        axes.set_yscale("log", base=2)
    ticks = shown.values[:: -(-len(shown.values) // MOST_TICKS)]
    axes.set_yticks(ticks, [format_number(shown.axis, value) for value in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("samples per replica, b" if shown.axis == "batch" else write_axis(shown.axis))
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))


def _draw_region(axes: Axes, x: Floats, y: Floats, region: NDArray[np.bool_], look: Look) -> None:
    """Fill where a strategy wins, with a white line about it."""
    won = region.astype(float)
    filled = axes.contourf(x, y, won, [0.5, 1.5], colors=[look.colour], hatches=[look.hatch])
    filled.set(edgecolor="white", linewidth=0, zorder=1)  # the edge has the colour of the hatch
    axes.contour(x, y, won, [0.5], colors="white", zorder=2)


def _write_inside(
    axes: Axes, points: tuple[Floats, Floats], region: NDArray[np.bool_], name: str, look: Look
) -> None:
    """Write a winner's name into its region, as near to its middle as there is room."""
    x, y = points
    text = axes.text(x[0], y[0], name, ha="center", va="center", zorder=4)
    text.set(color=choose_ink(look.colour), backgroundcolor=look.colour if look.hatch else "none")
    room, box = text.get_window_extent(), axes.get_window_extent()
    # A letter's height about it is free, too.
    needed = [POINTS * (room.height * 1.5) / box.height, POINTS * (room.width * 1.1) / box.width]
    fits = np.argwhere(minimum_filter(region, [int(n) + 1 for n in needed], mode="constant"))
    if not len(fits):
        text.remove()
        return
    middle = np.argwhere(region).mean(axis=0)
    row, column = fits[np.abs(fits - middle).sum(axis=1).argmin()]
    text.set_position((x[column], y[row]))
