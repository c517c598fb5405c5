"""Ranges of limits: between which values a line's least time and best PE counts lie."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grids.entries.strategies import Strategy
from grids.grid import Grid, Index
from grids.models.layers import Floats
from kernels.case import Case
from kernels.flags import FORBIDS
from kernels.oracle import answer_case, settle_choices
from kernels.outputs import compute_outputs
from kernels.statistics import BEST, Objective
from sweep.answers.draws import draw_epochs, draw_times
from sweep.answers.numbers import finite, name_percentiles, number, pick_range
from sweep.answers.row_cases import build_row_case
from sweep.cells.selection import locate_row
from sweep.cells.space import Space

Row = dict[str, Any]

# PE counts of a line that are asked about with each draw: of a longer one these are kept evenly.
MOST_COUNTS = 64


def list_line_ranges(
    space: Space, row: Mapping[str, Any], efficiency: float, objective: Objective
) -> Row:
    """The 10th and 90th percentiles of a row of `limits`: its time [s], and its best PE counts.

    Of a time as everywhere; of PE counts over draws: which is the fastest, and the largest that is
    efficient, of those that are allowed. None where there is none. The space knows of intervals.
    """
    names = BEST[objective]
    pe = row[names["pe"]]
    if pe is None:
        return name_ranges(objective)
    told = {name: row[name] for name in space.grid.dims if name != "pe"}
    times = name_percentiles(objective)
    outputs = compute_outputs(build_row_case(space.grid, told | {"pe": pe}), names=times)
    counts = _thin(space.axes["pe"], [row["largest_pe"], pe, row["efficient_pe"]])
    fastest, efficient = _draw_counts(space.grid, told, counts, efficiency, objective)
    return {
        **dict(
            zip(
                name_percentiles(names["time"]),
                (finite(number(outputs[name])) for name in times),
                strict=True,
            )
        ),
        **pick_range(names["pe"], fastest, _write_count),
        **pick_range("efficient_pe", efficient, _write_count),
    }


def name_ranges(objective: Objective) -> Row:
    """The same keys where nothing is known."""
    names = BEST[objective]
    keys = (names["time"], names["pe"], "efficient_pe")
    return dict.fromkeys(name for key in keys for name in name_percentiles(key))


def _draw_counts(
    grid: Grid, told: Row, counts: Floats, efficiency: float, objective: Objective
) -> tuple[Floats, Floats]:
    """With each draw the fastest PE count, and the largest efficient one, 0 for none."""
    index = locate_row(grid, told)
    axes = {name: counts if name == "pe" else np.array([told[name]], float) for name in grid.axes}
    case, alone = grid.case(index, axes), _build_alone(grid, index, axes)
    assert case is not None  # its samples fit
    case = settle_choices(case)
    if objective == "epoch_time":
        case, alone = (replace(each, training=None) for each in (case, alone))
    limit = answer_case(replace(case, uncertainty=None)).limit
    allowed = (np.ravel(limit).astype(np.int64) & FORBIDS) == 0
    times, serial = (_draw_objective(grid, index, each) for each in (case, alone))
    times = np.where(allowed[:, None] & np.isfinite(times), times, np.inf)
    is_efficient = counts[:, None] * times * efficiency <= serial
    return counts[times.argmin(axis=0)], np.where(is_efficient, counts[:, None], 0).max(axis=0)


def _build_alone(grid: Grid, index: Index, axes: Mapping[str, Floats]) -> Case:
    """The same on one PE."""
    case = grid.case(index, {**axes, "pe": np.ones(1)}, Strategy("serial"))
    assert case is not None  # its samples fit
    return case


def _draw_objective(grid: Grid, index: Index, case: Case) -> Floats:
    """Seconds of an epoch, or to the target [pe, draw]."""
    times = draw_times(case)
    times = times.reshape(-1, times.shape[-1])
    if case.training is None:
        return times
    answer = answer_case(replace(case, uncertainty=None))
    assert answer.epochs is not None  # the case has a law
    labels = grid.labels
    law = grid.convergences[labels["model"][index[0]], labels["dataset"][index[1]]]
    batches = np.broadcast_to(np.ravel(answer.global_batch), len(times))
    epochs = np.broadcast_to(np.ravel(answer.epochs), len(times))
    trainings: Floats = times * epochs[:, None] * draw_epochs(law, batches)
    return trainings


def _write_count(count: float) -> int | None:
    return int(count) or None


def _thin(counts: Floats, kept: list[int | None]) -> Floats:
    """At most so many PE counts more than those that are kept, evenly by their number."""
    if counts.size <= MOST_COUNTS:
        return counts
    at = np.unique(np.linspace(0, counts.size - 1, MOST_COUNTS).round().astype(int))
    return np.union1d(counts[at], [each for each in kept if each is not None])
