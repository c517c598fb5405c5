"""Percentiles of an iteration's times, and of a line's least time and best PE counts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from paradl.grids.design_space import ONLY
from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.grid import Grid, Index
from paradl.kernels.blocks.outputs import compute_outputs
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.statistics import BEST, Objective
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.oracle.answer import settle_choices
from paradl.kernels.oracle.uncertainty import percentiles
from paradl.sweep.answers.numbers import finite, name_percentiles, number, pick_ends
from paradl.sweep.answers.types.prediction import Interval, IntervalFields
from paradl.sweep.answers.types.questions import LimitsRanges, LimitsRow
from paradl.sweep.cells.selection import locate_row, read_axis
from paradl.sweep.cells.space import Space, thin_values
from paradl.sweep.configurations.layout_cells import find_cell
from paradl.sweep.configurations.row_cases import answer_expected, build_row_case
from paradl.sweep.cube.variables import find_allowed
from paradl.sweep.uncertainty.draws import draw_times, weigh_draws


def list_intervals(grid: Grid, answer: Answer) -> IntervalFields:
    """Name of the calibration, 10th, 50th and 90th percentiles of the times [s per iteration], and
    notes on how the configuration exceeds the calibrated runs.
    """
    if answer.spread is None:  # Table III
        return {"calibration": None, "intervals": None, "extrapolation": []}
    calibration = grid.calibrations.get(grid.systems[0].name)
    blocks = grid.find_blocks(ONLY)
    if calibration and not (calibration.layouts if blocks else calibration.parameters):
        calibration = None  # its runs were of the other kind
    compute, communication = answer.compute, answer.communication
    times = {
        "iteration_time": (compute + communication, answer.spread.total),
        "iteration_comp_time": (compute, answer.spread.compute),
        "iteration_comm_time": (communication, answer.spread.communication),
    }
    return {
        "calibration": calibration.name if calibration else None,
        "intervals": {
            name: _list_percentiles(number(time) / number(answer.iterations), number(sigma))
            for name, (time, sigma) in times.items()
        }
        | _list_training(answer),
        "extrapolation": [
            # Rates of blocks hold for any machine.
            *(() if blocks else _list_extrapolation(grid, answer)),
            *_list_far_batches(grid, answer),
        ],
    }


def _list_extrapolation(grid: Grid, answer: Answer) -> list[str]:
    """Notes on how a configuration exceeds the calibrated runs."""
    workload, system = grid.workload(0, 0, 0), grid.systems[0]
    assert workload is not None  # there is an answer
    if workload.calibrated is None:
        return [
            f"no calibrated run of {system.machine} in {system.precision} with software "
            f"{system.software}: intervals come from priors"
        ]
    return workload.calibrated.extrapolation(
        grid.strategy(ONLY), float(grid.axes["pe"][0]), number(answer.batch)
    )


def _list_training(answer: Answer) -> dict[str, Interval]:
    """Percentiles of the epochs and of the time to the target [s], if a law is known."""
    if answer.epochs is None or answer.epochs_spread is None or answer.train_spread is None:
        return {}
    epochs = number(answer.epochs)
    time = epochs * number(answer.epoch_time)
    return {
        "epochs": _list_percentiles(epochs, number(answer.epochs_spread)),
        "train_time": _list_percentiles(time, number(answer.train_spread)),
    }


def _list_far_batches(grid: Grid, answer: Answer) -> list[str]:
    """A note if the global batch lies outside the measured range; else empty."""
    law = next(iter(grid.convergences.values()), None)
    batch = number(answer.global_batch)
    if law is None or not law.is_extrapolated(round(batch)):
        return []
    return [f"epochs: a global batch of {batch:,.0f}, measured {law.smallest:,} to {law.largest:,}"]


def _list_percentiles(time: float, sigma: float) -> Interval:
    known = percentiles(time, sigma) if np.isfinite(time) else {}
    p10, p50, p90 = (number(known[at]) if known else None for at in PERCENTILES)
    return {"p10": p10, "p50": p50, "p90": p90}


# Most PE counts of a line that are evaluated with each draw; longer lines are thinned.
MOST_COUNTS = 64


def list_line_ranges(
    space: Space, row: LimitsRow, efficiency: float, objective: Objective
) -> LimitsRanges:
    """10th and 90th percentiles of a row of `limits`: its time [s] and its best PE counts; also the
    layout on the fastest PE count.

    The time has the percentiles of its interval. PE counts have those over draws: the fastest
    allowed count and the largest efficient one, or None. The space needs intervals.
    """
    names = BEST[objective]
    fields: Mapping[str, object] = row
    pe = fields[names["pe"]]
    keys = [key for of in ("time", "pe") for key in name_percentiles(names[of])]
    keys += name_percentiles("efficient_pe")
    index = locate_row(space.grid, fields)
    # An axis of layouts has a number here.
    has_words = bool(space.grid.find_blocks(index)) and LAYOUT not in fields
    if not isinstance(pe, int):
        return cast(LimitsRanges, dict.fromkeys([*keys, LAYOUT] if has_words else keys))
    cell = {name: fields[name] for name in space.grid.dims if name != "pe"}
    times = name_percentiles(objective)
    case = build_row_case(space.grid, cell | {"pe": pe})
    outputs = compute_outputs(case, names=times)
    # The row's own counts stay, so that draws may choose the ones that it states.
    counts = _thin(space.axes["pe"], [row["largest_pe"], pe, row["efficient_pe"]])
    drawn = _draw_counts(space, cell, counts, efficiency, objective)
    ends = [finite(number(outputs[name])) for name in times]
    ends += [end for counts in drawn for end in pick_ends(counts, _write_count)]
    words = {LAYOUT: find_cell(space.grid, case, index).words} if has_words else {}
    return cast(LimitsRanges, dict(zip(keys, ends, strict=True)) | words)


def _draw_counts(
    space: Space,
    cell: Mapping[str, object],
    counts: Floats,
    efficiency: float,
    objective: Objective,
) -> tuple[Floats, Floats]:
    """Fastest PE count of each draw, and the largest efficient one, 0 for none."""
    grid, index = space.grid, locate_row(space.grid, cell)
    values = {name: read_axis(cell, name) for name in grid.axes if name != "pe"}
    case = settle_choices(space.build_case(index, {**values, "pe": counts}))
    alone = space.build_case(index, {**values, "pe": 1.0}, space.grid.find_alone(index))
    if objective == "epoch_time":
        # Without a law, `_draw_objective` gives seconds per epoch.
        case, alone = replace(case, training=None), replace(alone, training=None)
    limit = answer_expected(case).limit
    allowed = find_allowed(np.ravel(limit))
    times, serial = _draw_objective(grid, index, case), _draw_objective(grid, index, alone)
    times = np.where(allowed[:, None] & np.isfinite(times), times, np.inf)
    is_efficient = counts[:, None] * times * efficiency <= serial
    return counts[times.argmin(axis=0)], np.where(is_efficient, counts[:, None], 0).max(axis=0)


def _draw_objective(grid: Grid, index: Index, case: Case) -> Floats:
    """Seconds per epoch, or to the target [pe, draw]."""
    times = draw_times(case)
    objective: Floats = times.reshape(-1, times.shape[-1]) * weigh_draws(grid, index, case)
    return objective


def _write_count(count: float) -> int | None:
    return int(count) or None


def _thin(counts: Floats, kept: list[int | None]) -> Floats:
    """Thin to MOST_COUNTS PE counts, plus those in `kept`."""
    if counts.size <= MOST_COUNTS:
        return counts
    known = [count for count in kept if count is not None]
    return np.union1d(thin_values(counts, MOST_COUNTS), known)
