"""Bottleneck: the term that dominates an iteration at each PE count, and the memory by part."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from paradl.grids.grid import Grid, Index
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.numbers import find_ends, find_range
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import BottleneckRow, ShareRanges
from paradl.sweep.cells.selection import Selection, join_selection, locate_row
from paradl.sweep.cells.source import Source, open_space
from paradl.sweep.cells.space import (
    CellLabels,
    Space,
    look_up_capacity,
    take_cell,
    thin_axis,
    write_cell,
)
from paradl.sweep.configurations.degrees import (
    list_degrees,
    list_layout_rows,
    time_iteration,
    write_layouts,
)
from paradl.sweep.configurations.fitting import find_memory_chance
from paradl.sweep.configurations.row_cases import (
    answer_expected,
    keep_fastest_layouts,
)
from paradl.sweep.cube.variables import name_limits
from paradl.sweep.explanation.formulas import describe_largest
from paradl.sweep.explanation.kinds import measure_row_parts
from paradl.sweep.uncertainty.draws import draw_terms

# Most PE counts of a line in an answer, including its ends, and most values of other axes.
COUNTS, OTHERS = 8, 4


def list_bottlenecks(
    cube: Source,
    selection: Selection | None = None,
    max_global_batch: int | None = None,
    **axes: object,
) -> list[BottleneckRow]:
    """One row for each strategy and PE count of the slice, at most eight per line.

    Shares of the time [s] by term, the largest of them, and the memory [B] by part (`paradl schema
    bottleneck`); for the machine oracle with percentiles over draws of uncertain parameters. Other
    axes are thinned to four values, rows of layouts to those that are the fastest somewhere.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> row = paradl.bottleneck(ds, {"pe": 64, "strategy": "data"}).iloc[0]
    >>> row["bottleneck"], round(row["shares"]["gradient_exchange"], 2)
    ('gradient_exchange', 0.73)
    """
    selection = join_selection(selection, axes)
    space = open_space(cube, selection, max_global_batch).ask_intervals()
    rows = [row for index in space.list_indices() for row in _list_rows(space, index)]
    return write_layouts(space.grid, complete_rows(space, rows))


bottleneck = tabulate("bottleneck", list_bottlenecks)


def _list_rows(space: Space, index: Index) -> Iterator[BottleneckRow]:
    """Yield the rows of a strategy, for cells that can exist."""
    layouts = list_layout_rows(space.grid)
    axes = {
        name: values if name in layouts else thin_axis(values, COUNTS if name == "pe" else OTHERS)
        for name, values in space.axes.items()
    }
    axes = keep_fastest_layouts(space, index, axes)
    case = space.build_case(index, axes)
    answer = answer_expected(case)
    drawn = None if case.uncertainty is None else draw_terms(case)
    shape = tuple(values.size for values in axes.values())
    times = {
        name: np.broadcast_to(seconds, shape).astype(float)
        for name, seconds in vars(answer.terms).items()
        if EVERY_TERM[name].part != "hidden"  # no PE waits for it
    }
    limit, memory = (np.broadcast_to(part, shape) for part in (answer.limit, answer.memory))
    # PE counts vary fastest, so that the rows of a line follow each other.
    for others in np.ndindex(shape[1:]):
        for pe in range(shape[0]):
            at = (pe, *others)
            seconds = {name: float(values[at]) for name, values in times.items()}
            if not np.isfinite(sum(seconds.values())):
                continue
            cell: CellLabels = {**space.name(index), **write_cell(take_cell(axes, at))}
            draws = {name: times[at] for name, times in drawn.items()} if drawn else None
            yield _describe_cell(
                space.grid, cell, seconds, int(limit[at]), float(memory[at]), draws
            )


def _describe_cell(
    grid: Grid,
    cell: CellLabels,
    seconds: Mapping[str, float],
    flags: int,
    memory: float,
    drawn: Mapping[str, Floats] | None,
) -> BottleneckRow:
    """Describe the terms and the memory of a cell. seconds, drawn: per epoch by term, also
    [draw].
    """
    total = sum(seconds.values())
    shares = {name: time / total for name, time in seconds.items()}
    positive = {name: n for name, n in shares.items() if n > 0}
    largest = describe_largest(shares)
    degrees, index = list_degrees(grid, cell), locate_row(grid, cell)
    ranges = _list_ranges(positive, largest["bottleneck"], drawn) if drawn else ShareRanges()
    return {
        **cell,
        "epoch_time": total,
        **largest,
        "computing": sum_computing(shares),
        "shares": positive,
        "memory": memory,
        "feasible": not flags & FORBIDS,
        "limit": name_limits(flags),
        **ranges,
        **degrees,
        **time_iteration(grid, index, cell, degrees["global_batch"], total),
        "memory_parts": measure_row_parts(grid, {**cell, **degrees}),
        "memory_capacity": look_up_capacity(grid, index, cell),
        "fits": find_memory_chance(grid, index, cell, memory),
    }


def sum_computing(shares: Mapping[str, Any]) -> Any:
    """The shares of terms of compute together."""
    return sum(share for name, share in shares.items() if EVERY_TERM[name].part == "compute")


def _list_ranges(shown: Iterable[str], largest: str, drawn: Mapping[str, Floats]) -> ShareRanges:
    """Percentiles of shares, and the probability that the largest term is the largest.

    drawn: seconds by term [draw].
    """
    total = np.sum([*drawn.values()], axis=0)
    shares = {name: times / total for name, times in drawn.items()}
    ranges = {name: find_range(shares[name]) for name in shown}
    share, computing = find_ends(shares[largest]), find_ends(sum_computing(shares))
    most = np.max([*shares.values()], axis=0)
    return {
        "share_p10": share[0],
        "share_p90": share[1],
        "computing_p10": computing[0],
        "computing_p90": computing[1],
        "shares_p10": {name: low for name, (low, _) in ranges.items()},
        "shares_p90": {name: high for name, (_, high) in ranges.items()},
        "bottleneck_probability": float(np.mean(shares[largest] == most)),
    }
