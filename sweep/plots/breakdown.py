"""Breakdown: the terms of one strategy's iteration time, stacked over p."""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

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
from paradl.sweep.plots import slices
from paradl.sweep.plots.bars import MOST_BARS, Bars
from paradl.sweep.plots.looks import TERM_LOOKS

if TYPE_CHECKING:
    import xarray as xr


def describe_breakdown(source: Source, selection: Selection | None = None) -> Bars:
    """Compute the terms of a slice with one strategy: seconds per iteration at allowed PE counts.

    InputError: an axis other than pe has several values. NothingFeasibleError: no PE count.
    """
    cells = slices.read_fastest(slices.open_slice(source, selection), ("pe",))
    limit = cells["limit"].values.reshape(-1)
    allowed = np.flatnonzero(find_allowed(limit))
    title = slices.write_title(cells, shown=("pe", "strategy"))
    slices.expect_any(allowed, slices.name_reasons(limit))
    counts = cells["pe"].values[allowed].astype(float)
    shown = allowed[np.isin(counts, thin_axis(counts, MOST_BARS))]
    line = cells.isel(pe=shown)
    # Each PE count may have a layout of its own.
    varies = any("pe" in line[dim].dims for dim in Paradl(line).grid.rows)
    parts = [line.isel(pe=[at]) for at in range(line.sizes["pe"])] if varies else [line]
    computed = list(map(_compute_terms, parts))
    terms = {name: np.concatenate([part[name] for part in computed]) for name in computed[0]}
    notes = []
    if cause := slices.name_stop(limit, int(allowed[-1])):
        notes.append(f"ends at {counts[-1]:,.0f}: {cause}")
    if shown.size < allowed.size:
        notes.append(f"{shown.size} of {allowed.size:,} PE counts")
    names = [f"{count:,.0f}" for count in line["pe"].values]
    if (beyond := slices.find_beyond(limit[shown])).any():
        notes.append(f"{slices.BEYOND} from {names[beyond.argmax()]}")
    return Bars(
        f"time of an iteration: {cells['strategy'].item()}, {title}",
        names,
        {name: seconds for name, seconds in terms.items() if (seconds > 0).any()},
        TERM_LOOKS,
        ("time of an iteration", "s"),
        [*_write_times(terms)],
        notes,
        axis="PEs, p",
    )


def _write_times(terms: Mapping[str, Floats]) -> Iterator[str]:
    """Write the time at each PE count, and how much of it is communication."""
    waits = [EVERY_TERM[name].part == "communication" for name in terms]
    for seconds in zip(*terms.values(), strict=True):
        total, waiting = sum(seconds), sum(compress(seconds, waits))
        yield f"{format_quantity(total, 's', digits=3)}, {waiting / total:.0%} comm."


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
