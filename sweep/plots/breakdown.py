"""Breakdown: the terms of one strategy's iteration time, stacked over p."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.cases.row_cases import answer_expected
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.cube.variables import find_allowed
from paradl.sweep.plots.bars import MOST_BARS, draw_bars, make_keys, split_parts, write_totals
from paradl.sweep.plots.figures import add_legend, make_axes, scale_counts, scale_unit
from paradl.sweep.plots.looks import EDGE, TERM_LOOKS, styled
from paradl.sweep.plots.slices import (
    BEYOND,
    build_case,
    expect_any,
    find_beyond,
    name_reasons,
    name_stop,
    open_slice,
    read_fastest,
    write_title,
)

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Breakdown:
    """Seconds per iteration of each term [pe], at the allowed PE counts; terms of zero left out.

    beyond [pe]: where the global batch is larger than the data set. cause: the limit that forbids
    the next PE count; None: the axis ends.
    """

    title: str
    strategy: str
    pe: Floats
    terms: Mapping[str, Floats]
    beyond: NDArray[np.bool_]
    cause: str | None = None

    @property
    def total(self) -> Floats:
        """Seconds per iteration."""
        total: Floats = np.sum([*self.terms.values()], axis=0)
        return total


def describe_breakdown(source: Source, selection: Selection | None = None) -> Breakdown:
    """Compute the terms of a slice with one strategy.

    InputError: an axis other than pe has several values. NothingFeasibleError: no PE count.
    """
    cells = read_fastest(open_slice(source, selection), ("pe",))
    limit = cells["limit"].values.reshape(-1)
    allowed = np.flatnonzero(find_allowed(limit))
    title, strategy = write_title(cells, shown=("pe", "strategy")), str(cells["strategy"].item())
    expect_any(allowed, name_reasons(limit))
    line = cells.isel(pe=allowed)
    # Each PE count may have a layout of its own.
    varies = any("pe" in line[dim].dims for dim in Paradl(line).grid.rows)
    parts = [line.isel(pe=[at]) for at in range(line.sizes["pe"])] if varies else [line]
    computed = list(map(_compute_terms, parts))
    terms = {name: np.concatenate([part[name] for part in computed]) for name in computed[0]}
    return Breakdown(
        title,
        strategy,
        line["pe"].values.astype(float),
        {name: seconds for name, seconds in terms.items() if (seconds > 0).any()},
        find_beyond(limit[allowed]),
        name_stop(limit, int(allowed[-1])),
    )


def _compute_terms(line: "xr.Dataset") -> dict[str, Floats]:
    grid = Paradl(line).grid
    answer = answer_expected(build_case(grid, line))
    shape = tuple(line[name].size for name in grid.axes)

    def spread(values: object) -> Floats:
        # The kernels leave out dimensions along which nothing varies.
        return np.broadcast_to(np.asarray(values, float), shape).reshape(-1)

    iterations = spread(answer.iterations)
    return {
        name: spread(seconds) / iterations
        for name, seconds in vars(answer.terms).items()
        if EVERY_TERM[name].part != "hidden"
    }


MOST_OUTLINED = 64  # PE counts of areas with outlines
QUANTITY = ("time of an iteration", "s")


@styled
def draw_breakdown(breakdown: Breakdown) -> Figure:
    """Draw one strategy's terms: a bar for each of few PE counts, areas for many."""
    terms, thin = split_parts(breakdown.terms)
    title = f"time of an iteration: {breakdown.strategy}, {breakdown.title}"
    notes = [f"ends at {breakdown.pe[-1]:,.0f}: {breakdown.cause}"] if breakdown.cause else []
    if breakdown.beyond.any():
        notes.append(f"{BEYOND} from {breakdown.pe[breakdown.beyond][0]:,.0f}")
    note = "; ".join([*notes, *thin])
    if len(breakdown.pe) > MOST_BARS:
        figure, axes = make_axes(title, note)
        _draw_areas(axes, breakdown, terms)
        # In the order of the stack, the last on top.
        add_legend(figure, make_keys([*terms][::-1], TERM_LOOKS))
        return figure
    counts = [f"{count:,.0f}" for count in breakdown.pe]
    figure, axes = draw_bars(title, note, counts, terms, TERM_LOOKS, QUANTITY)
    axes.set_ylabel("PEs, p")
    write_totals(axes, [*_write_totals(breakdown)])
    add_legend(figure, make_keys(terms, TERM_LOOKS))
    return figure


def _write_totals(breakdown: Breakdown) -> Iterator[str]:
    """Write the time at each PE count, and how much of it is communication."""
    communication = np.zeros(len(breakdown.pe))
    for name, seconds in breakdown.terms.items():
        communication = communication + seconds * (EVERY_TERM[name].part == "communication")
    for seconds, waiting in zip(breakdown.total, communication, strict=True):
        yield f"{format_quantity(seconds, 's', digits=3)}, {waiting / seconds:.0%} comm."


def _draw_areas(axes: Axes, breakdown: Breakdown, terms: Mapping[str, Floats]) -> None:
    below = np.zeros(len(breakdown.pe))
    # Where group sizes change from count to count, outlines of many counts would be all one sees.
    edge = EDGE if len(breakdown.pe) <= MOST_OUTLINED else {**EDGE, "linewidth": 0}
    for name, seconds in terms.items():
        axes.fill_between(breakdown.pe, below, below + seconds, **TERM_LOOKS[name], **edge)
        below = below + seconds
    scale_counts(axes, breakdown.pe)
    axes.set(xlim=breakdown.pe[[0, -1]], ylim=(0, 1.03 * below.max()))
    scale_unit(axes.yaxis, QUANTITY[0], float(below.max()), QUANTITY[1])
