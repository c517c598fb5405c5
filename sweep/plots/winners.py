"""Map: the fastest strategy in each cell of two axes, and what it chooses there."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import InputError, suggest_name
from paradl.kernels.names.arrays import Floats
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.cells.space import list_given, thin_axis
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.plots import slices
from paradl.sweep.plots.figures import LINE, add_legend, make_axes
from paradl.sweep.plots.looks import Look, choose_ink, choose_looks, styled

if TYPE_CHECKING:
    import xarray as xr

MOST_CELLS = 16  # along an axis: of more values, powers of two are shown
NOBODY = -1


@dataclass(frozen=True)
class Map:
    """Times [s per epoch] of strategies [strategy, y, x], inf where forbidden.

    x, y: the axes, with `labels` and values, columns and rows. words [y, x]: what the winner
    chooses. known: all strategies of the cube, so that its pictures agree in colours. beyond
    [y, x]: where the winner's global batch is larger than the data set. note: what each strategy
    chooses, and how many values are shown.
    """

    title: str
    x: str
    y: str
    columns: Floats
    rows: Floats
    labels: tuple[str, str]
    strategies: tuple[str, ...]
    times: Floats
    words: NDArray[np.str_]
    known: tuple[str, ...]
    beyond: NDArray[np.bool_]
    note: str = ""

    @property
    def winners(self) -> NDArray[np.int64]:
        """Position of the fastest strategy [y, x]; NOBODY where nothing is feasible."""
        fastest = np.asarray(self.times.argmin(axis=0))
        return np.where(np.isfinite(self.times).any(axis=0), fastest, NOBODY)


def describe_map(
    source: Source, selection: Selection | None = None, over: str | None = None
) -> Map:
    """Compute the map of a slice over p, or its first axis with several values, and `over`.

    over: by default the next axis. Along other axes that a user may choose (batch, group, layout),
    each strategy takes its best value; a parameter of the machine must have a single one.
    InputError: it has several, there is only one axis, or layouts stand beside other strategies.
    NothingFeasibleError: nothing feasible.
    """
    reader = open_source(source)
    open_space(reader, selection).expect_one_kind()
    cells = slices.open_slice(reader, selection)
    x, y, others = _choose_axes(cells, over)
    grid = Paradl(cells).grid
    given = list_given(grid, [x, y, *others])
    free = [dim for dim in others if dim not in given or dim in grid.rows]
    shown = {dim: thin_axis(cells[dim].values.astype(float), MOST_CELLS) for dim in (x, y)}
    thinned = [
        f"{values.size} of {cells.sizes[dim]:,} values of {slices.name_axis(grid, dim)}"
        for dim, values in shown.items()
        if values.size < cells.sizes[dim]
    ]
    cells = slices.read_slice(cells.sel(shown), ("strategy", x, y, *free))
    best = _take_best(cells, [str(dim) for dim in cells.dims if dim not in ("strategy", y, x)])
    best = best.transpose("strategy", y, x)
    winner = best.isel(strategy=best["time"].argmin("strategy"))
    feasible = np.isfinite(winner["time"].values)
    # Objects, since an array of texts cuts longer ones.
    words = np.full(feasible.shape, "", dtype=object)
    for row, column in np.argwhere(feasible):
        cell = winner.isel({y: row, x: column})
        words[row, column] = slices.write_choice(grid, slices.read_row(grid, cell), free)
    note = [f"each {slices.write_axis(dim)} is another machine" for dim in (x, y) if dim in given]
    if free:
        note.append(f"each strategy at its best {' and '.join(map(slices.write_axis, free))}")
    if len({*words[feasible]}) == 1 and (same := words[feasible][0]):
        note.append(f"everywhere {same}")
        words[:] = ""
    return Map(
        title=slices.write_title(cells, shown=("strategy", x, y)),
        x=x,
        y=y,
        columns=shown[x],
        rows=shown[y],
        labels=(_label_axis(cells, x), _label_axis(cells, y)),
        strategies=tuple(map(str, cells["strategy"].values)),
        times=best["time"].values,
        words=words.astype(str),
        known=grid.labels["strategy"],
        beyond=slices.find_beyond(winner["limit"].values) & feasible,
        note="; ".join([*note, *thinned]),
    )


def _take_best(cells: "xr.Dataset", others: list[str]) -> "xr.Dataset":
    """Take the fastest cells along other axes; `time` [s] is infinite where it is forbidden.

    NothingFeasibleError: all cells are forbidden.
    """
    derived = Paradl(cells)
    times = derived.epoch_time.astype(float)
    allowed = derived.feasible & np.isfinite(times)
    reasons = slices.name_reasons(cells["limit"].values.reshape(-1))
    slices.expect_any(np.flatnonzero(allowed), reasons)
    cells = cells.assign(time=times.where(allowed, np.inf)).stack(choice=others)
    return cells.isel(choice=cells["time"].argmin("choice"))


def _choose_axes(cells: "xr.Dataset", over: str | None) -> tuple[str, str, list[str]]:
    """Choose the horizontal axis and the vertical one; return those left, too."""
    wide = [str(dim) for dim in cells.dims if dim not in LABELS and cells.sizes[dim] > 1]
    rows = Paradl(cells).grid.rows
    # Rows of parameters have no order that a map would show, so they come last.
    wide.sort(key=lambda dim: (dim in rows, dim != "pe"))
    if len(wide) < 2:
        raise InputError(
            "a map needs two axes with several values; this slice has several values of "
            f"{', '.join(wide) or 'no axis'}",
            where="selection",
            advice="select more, such as several PE counts and batches, or sweep over both",
        )
    if over is not None and over not in wide:
        raise InputError(
            f"no axis {over!r} of several numbers in this slice",
            where="over",
            advice=suggest_name(over, wide),
        )
    x = next(dim for dim in wide if dim != over)
    y = over or wide[1]
    return x, y, [dim for dim in wide if dim not in (x, y)]


def _label_axis(cells: "xr.Dataset", axis: str) -> str:
    weak = Paradl(cells).grid.spec.scaling == "weak"
    batch = "samples per replica, b" if weak else "global batch, B"
    return {"pe": "PEs, p", "batch": batch}.get(axis, slices.write_axis(axis))


INFEASIBLE = "nothing feasible"
DOTS: Any = {"mfc": "white", "mec": "black", "mew": 0.4}
LETTER = 0.62  # width of a letter, in text sizes


@styled
def draw_map(shown: Map) -> Figure:
    """Draw a tile in the colour of the winner for each cell, with its choice where that fits."""
    looks = choose_looks(shown.known)
    title = f"fastest strategy: {shown.title}"
    figure, axes = make_axes(title, shown.note, rows=1.4 * len(shown.rows))
    winners = shown.winners
    # Strategies that win most come first in the legend.
    numbers, counts = np.unique(winners[winners != NOBODY], return_counts=True)
    names = [shown.strategies[number] for number in numbers[np.argsort(-counts, kind="stable")]]
    keys: list[Artist] = []
    for name in names:
        area = looks[name].area
        rows, columns = np.nonzero(winners == shown.strategies.index(name))
        # Bars, since the cells of an image have no hatches.
        axes.barh(rows, 1, 1, columns - 0.5, linewidth=0.3, **area)
        keys.append(Patch(label=looks[name].name, linewidth=0.4, **area))
    if (winners == NOBODY).any():
        keys.append(Patch(label=INFEASIBLE, facecolor="none", edgecolor="grey", linewidth=0.4))
    if shown.beyond.any():
        keys += axes.plot(*np.nonzero(shown.beyond)[::-1], "o", **DOTS, label=slices.BEYOND_KEY)
    ticks = [slices.format_number(shown.y, row) for row in shown.rows]
    axes.set_yticks(range(len(ticks)), ticks)
    axes.set(xlabel=shown.labels[0], ylabel=shown.labels[1])
    axes.set(xlim=(-0.5, len(shown.columns) - 0.5), ylim=(-0.5, len(shown.rows) - 0.5))
    axes.tick_params(length=0)
    add_legend(figure, keys)
    _fill_cells(figure, axes, shown, looks)
    return figure


def _fill_cells(figure: Figure, axes: Axes, shown: Map, looks: Mapping[str, Look]) -> None:
    """Write what the winners choose, if all cells have room for it; thin out names of columns."""
    figure.draw_without_rendering()  # makes the layout
    box, small = axes.get_window_extent(), mpl.rcParams["font.size"] * figure.dpi / 72
    letters = int(box.width / len(shown.columns) / small / LETTER)
    lines = int(box.height / len(shown.rows) / small / LINE)
    ticks = [slices.format_number(shown.x, column) for column in shown.columns]
    # As many are left out as the longest needs room, with a blank behind it.
    step = -(-(max(map(len, ticks)) + 1) // max(letters, 1))
    axes.set_xticks(range(0, len(ticks), step), ticks[::step])
    wrapped = {at: wrap(str(text), max(letters, 1)) for at, text in np.ndenumerate(shown.words)}
    # Some words without others would look like cells without a choice.
    if any(len(text) > lines for text in wrapped.values()):
        return
    for (row, column), text in wrapped.items():
        if text:
            colour = looks[shown.strategies[shown.winners[row, column]]].colour
            box_of_text = {"facecolor": colour, "linewidth": 0, "pad": 1}
            style: Any = {"color": choose_ink(colour), "bbox": box_of_text}
            axes.text(column, row, "\n".join(text), ha="center", va="center", **style)
