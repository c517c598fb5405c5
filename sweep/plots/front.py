"""Pareto: time against PE-hours or memory, its front and knee, and the front of each strategy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from paradl.kernels.names.arrays import Floats
from paradl.sweep.answers.objectives import read_choice
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.cells.space import list_given
from paradl.sweep.plots import slices
from paradl.sweep.plots.figures import add_legend, make_axes, scale_amounts, set_ticks
from paradl.sweep.plots.looks import choose_looks, shorten_names, styled, wrap_name
from paradl.sweep.questions.pareto import PLACE, find_knee, list_front

Against = Literal["pe-hours", "memory"]
# Key of a row, and label of the axis.
COSTS = {"pe-hours": ("pe_hours", "PE-hours of an epoch"), "memory": ("memory", "memory per PE")}


@dataclass(frozen=True)
class Front:
    """Time [s per epoch] and cost of the configurations that no other beats in both.

    strategies: the front of each strategy alone, as times and costs. known: all strategies of the
    cube, so that its pictures agree in colours. knee: position in the front, and its words.
    """

    title: str
    against: Against
    times: Floats
    costs: Floats
    strategies: Mapping[str, tuple[Floats, Floats]]
    known: tuple[str, ...]
    knee: int
    words: str


def describe_front(
    source: Source, selection: Selection | None = None, against: Against = "pe-hours"
) -> Front:
    """Find the front of a slice, and that of each strategy.

    InputError: several models, data sets, or values of a parameter of the machine.
    NothingFeasibleError: no configuration.
    """
    against = read_choice(against, get_args(Against), "quantity", "against")
    reader, chosen = open_source(source), selection or {}
    cells, grid = slices.open_slice(reader, chosen), reader.grid
    given = [*PLACE, *(axis for axis in list_given(grid, grid.axes) if axis not in grid.rows)]
    free = [str(dim) for dim in cells.dims if dim not in given]
    slices.expect_single(cells, free)
    # What fits no other is no part of the cells: the question has to leave it out, too.
    chosen = {**chosen, **{dim: [cells[dim].values[0]] for dim in PLACE}}
    rows = list_front(reader, chosen, against=against)
    slices.expect_any(rows, "no configuration")
    # The front of all may have one strategy alone; those of the others say how far behind they are.
    alone = {
        strategy: list_front(reader, {**chosen, "strategy": [strategy]}, against=against)
        for strategy in map(str, cells["strategy"].values)
    }
    times, costs = _read_points(rows, against)
    knee = find_knee(times.tolist(), costs.tolist())
    best = rows[knee]
    axes = [axis for axis in grid.axes if axis in free and cells.sizes[axis] > 1]
    known = grid.labels["strategy"]
    # A strategy has the name that the legend gives it.
    words = {"system": best["system"], "strategy": shorten_names(known)[best["strategy"]]}
    names = [word for dim, word in words.items() if cells.sizes[dim] > 1]
    return Front(
        slices.write_title(cells, shown=[dim for dim in free if cells.sizes[dim] > 1]),
        against,
        times,
        costs,
        {name: _read_points(own, against) for name, own in alone.items() if own},
        known,
        knee,
        ", ".join([*names, slices.write_choice(grid, best, axes)]),
    )


def _read_points(rows: Sequence[Mapping[str, Any]], against: Against) -> tuple[Floats, Floats]:
    times, costs = (
        np.array([row[key] for row in rows], float) for key in ("epoch_time", COSTS[against][0])
    )
    return times, costs


@styled
def draw_front(front: Front) -> Figure:
    """Draw points of each strategy's front, the front of all as a line, and a ring at the knee."""
    label = COSTS[front.against][1]
    title = f"time against {label}: {front.title}"
    note = "points: configurations that no other of their strategy beats in both"
    figure, axes = make_axes(title, note, len(front.strategies) + 5)
    looks = choose_looks(front.known)
    keys = []
    for name, (times, costs) in front.strategies.items():
        look = looks[name]
        keys += axes.plot(costs, times, **look.marks, label=look.name)
    ink = mpl.rcParams["text.color"]
    # A staircase: at a cost between two points nothing is faster than the slower one. Backwards,
    # since the fastest comes first and costs most.
    (line,) = axes.step(
        front.costs[::-1], front.times[::-1], where="post", color="grey", zorder=1, label="front"
    )
    knee = front.costs[front.knee], front.times[front.knee]
    style: Any = {"mfc": "none", "mec": ink, "markersize": 2.5 * mpl.rcParams["lines.markersize"]}
    (ring,) = axes.plot(*knee, "o", **style, zorder=4, label=wrap_name(f"knee: {front.words}"))
    axes.set_xscale("log")
    (left, right), (low, high) = axes.dataLim.intervalx, axes.dataLim.intervaly
    scale_amounts(axes, low, high)
    set_ticks(axes.xaxis, left, right, "B" if front.against == "memory" else "")
    axes.set(xlabel=label, ylabel="time of an epoch [s]")
    axes.grid()
    add_legend(figure, [*keys, line, ring])
    return figure
