"""Probability that one configuration is faster than another, percentiles of times, and draws.

Both configurations are evaluated with the same draws of uncertain parameters, so a slowdown of both
alike does not count. Errors of the oracle itself are independent of each other.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist, fmean

import numpy as np
from jax import Array

from paradl.grids.grid import Grid
from paradl.kernels.arrays import xp
from paradl.kernels.blocks.outputs import compute_outputs
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.convergence import spread_ratio
from paradl.kernels.names.statistics import Objective
from paradl.kernels.names.stored import FREEDOM
from paradl.kernels.oracle.uncertainty import draw_times, percentiles
from paradl.sweep.answers.numbers import PERCENTS, finite, name_percentiles, number
from paradl.sweep.answers.objectives import Aim
from paradl.sweep.answers.types.questions import PickedRow, RankingRanges
from paradl.sweep.configurations.row_cases import build_row_case

Ranked = tuple[int | None, PickedRow, float | None]


def list_chances(grid: Grid, ranked: Sequence[Ranked], aim: Aim) -> list[RankingRanges]:
    """10th and 90th percentiles of each row's time [s], and `faster_than_next` of the first row.

    It is the probability of taking less time than the next rank. Times are those to the target if
    the rows have one, else those per epoch. ranked: ranks, rows, and the spreads of the logarithms
    of times, where known.
    """
    unsure, objective = grid.ask_intervals(), find_objective(ranked)
    # Rows of one rank choose the same layout, so the rival is the first of the next rank.
    first_of_rank = {rank: row for rank, row, _ in reversed(ranked) if row["feasible"]}
    rivals = [first_of_rank[rank] for rank in sorted(filter(None, first_of_rank))[:2]]
    by_time = len(rivals) == 2 and aim.summarised is not None
    first = find_chance(grid, rivals[0], rivals[1], objective) if by_time else None
    return [
        _name_ranges(
            objective, _list_percentiles(unsure, row, spread, objective), None if n else first
        )
        for n, (_, row, spread) in enumerate(ranked)
    ]


def list_nothing(ranked: Sequence[Ranked]) -> list[RankingRanges]:
    """The keys of `list_chances`, with None as values."""
    return [_name_ranges(find_objective(ranked), (None, None), None) for _ in ranked]


def find_objective(ranked: Sequence[Ranked]) -> Objective:
    """The time of rows whose percentiles they have."""
    return "train_time" if any(row.get("epochs") for _, row, _ in ranked) else "epoch_time"


def _name_ranges(
    objective: Objective, ends: tuple[float | None, float | None], chance: float | None
) -> RankingRanges:
    low, high = ends
    if objective == "train_time":
        return {"train_time_p10": low, "train_time_p90": high, "faster_than_next": chance}
    return {"epoch_time_p10": low, "epoch_time_p90": high, "faster_than_next": chance}


def _list_percentiles(
    grid: Grid, row: PickedRow, spread: float | None, objective: Objective
) -> tuple[float | None, float | None]:
    names = name_percentiles(objective)
    time = row.get(objective)
    if time is None:
        return None, None
    values = (
        compute_outputs(build_row_case(grid, row), names=names)
        if spread is None
        else dict(zip(names, (percentiles(time, spread)[at] for at in PERCENTS), strict=True))
    )
    low, high = (finite(number(values[name])) for name in names)
    return low, high


def find_chance(
    grid: Grid, first: PickedRow, second: PickedRow, objective: Objective = "epoch_time"
) -> float:
    """Mean over draws of the probability that `first` takes less time than `second`."""
    cases = [build_row_case(grid.ask_intervals(), row) for row in (first, second)]
    unsure = 0.0  # spread of the ratio of their epochs
    if objective == "epoch_time":
        cases = [replace(case, training=None) for case in cases]
    else:
        law = grid.convergences[first["model"], first["dataset"]].law
        unsure = spread_ratio(law, *(number(case.run.global_batch) for case in cases))
    # An error that both share does not change their order.
    beside = all(case.uncertainty and case.uncertainty.beside is not None for case in cases)
    times = [draw_sample_times(case, beside=beside) for case in cases]
    (time, error), (other, error_of_other) = times
    apart = np.log(np.asarray(other / time)) / np.sqrt(error**2 + error_of_other**2 + unsure**2)
    return fmean(map(NormalDist().cdf, np.ravel(apart).tolist()))


@compiled("beside", numpy=True)
def draw_sample_times(case: Case, *, beside: bool = False) -> tuple[Array, Array]:
    """Time per sample over all epochs [draw], and the spread of the oracle's own error.

    beside: of one run beside another of the same network, whose error is partly the same.
    """
    times, error = draw_times(case, beside=beside)
    samples = xp.reshape(xp.asarray(case.run.global_batch), ())
    epochs = 1.0 if case.training is None else case.training.count_epochs(samples)
    seconds = xp.ravel(times) / samples * xp.ravel(xp.asarray(epochs))
    return seconds, xp.reshape(error, ())


def find_odds(spreads: float) -> float:
    """Return the probability of a logarithm at most so many spreads above its expected value."""
    from scipy.special import stdtr  # late: takes 0.1 s

    return float(stdtr(FREEDOM, spreads))


def find_spreads(odds: float) -> float:
    """Return the number of spreads that is not exceeded with this probability."""
    from scipy.special import stdtrit  # late: takes 0.1 s

    return float(stdtrit(FREEDOM, odds))
