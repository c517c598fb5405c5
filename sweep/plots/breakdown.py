"""Breakdown: the terms of one strategy's iteration time, stacked over p."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from paradl.grids.grid import LABELS
from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.cells.selection import Selection, locate_row
from paradl.sweep.cells.source import Source
from paradl.sweep.cells.space import thin_axis
from paradl.sweep.configurations.row_cases import answer_expected
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.cube.variables import find_allowed
from paradl.sweep.engine.resources import keep_programs
from paradl.sweep.plots.figures import (
    MOST_BARS,
    add_legend,
    draw_bars,
    make_keys,
    split_parts,
    write_totals,
)
from paradl.sweep.plots.looks import TERM_LOOKS, styled
from paradl.sweep.plots.slices import (
    BEYOND,
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

    beyond [pe]: where the global batch is larger than the data set. notes: where a limit ends the
    axis, and which of many counts are shown.
    """

    title: str
    strategy: str
    pe: Floats
    terms: Mapping[str, Floats]
    beyond: NDArray[np.bool_]
    notes: tuple[str, ...] = ()

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
    counts = cells["pe"].values[allowed].astype(float)
    shown = allowed[np.isin(counts, thin_axis(counts, MOST_BARS))]
    line = cells.isel(pe=shown)
    # Each PE count may have a layout of its own.
    varies = any("pe" in line[dim].dims for dim in Paradl(line).grid.rows)
    parts = [line.isel(pe=[at]) for at in range(line.sizes["pe"])] if varies else [line]
    computed = list(map(_compute_terms, parts))
    terms = {name: np.concatenate([part[name] for part in computed]) for name in computed[0]}
    notes = []
    if cause := name_stop(limit, int(allowed[-1])):
        notes.append(f"ends at {counts[-1]:,.0f}: {cause}")
    if shown.size < allowed.size:
        notes.append(f"{shown.size} of {allowed.size:,} PE counts")
    return Breakdown(
        title,
        strategy,
        line["pe"].values.astype(float),
        {name: seconds for name, seconds in terms.items() if (seconds > 0).any()},
        find_beyond(limit[shown]),
        tuple(notes),
    )


def _compute_terms(line: "xr.Dataset") -> dict[str, Floats]:
    grid = Paradl(line).grid
    keep_programs()
    index = locate_row(grid, {dim: str(line[dim].item()) for dim in LABELS})
    axes = {name: line[name].values.astype(float).reshape(-1) for name in grid.axes}
    case = grid.case(index, axes)
    assert case is not None  # pictures show cells that exist
    answer, shape = answer_expected(case), tuple(values.size for values in axes.values())

    def spread(values: object) -> Floats:
        # The kernels leave out dimensions along which nothing varies.
        return np.broadcast_to(np.asarray(values, float), shape).reshape(-1)

    iterations = spread(answer.iterations)
    return {
        name: spread(seconds) / iterations
        for name, seconds in vars(answer.terms).items()
        if EVERY_TERM[name].part != "hidden"
    }


QUANTITY = ("time of an iteration", "s")


@styled
def draw_breakdown(breakdown: Breakdown) -> Figure:
    """Draw one strategy's terms, a bar for each PE count."""
    terms, thin = split_parts(breakdown.terms)
    title = f"time of an iteration: {breakdown.strategy}, {breakdown.title}"
    notes = [*breakdown.notes, *thin]
    if breakdown.beyond.any():
        notes.append(f"{BEYOND} from {breakdown.pe[breakdown.beyond][0]:,.0f}")
    note = "; ".join(notes)
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
