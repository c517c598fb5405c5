"""Ranges of needs: between which values of a parameter a goal is met, and whether it can be."""

from collections.abc import Callable
from typing import Any

import numpy as np

from grids.entries.strategies import Strategy
from grids.models.layers import Floats
from kernels.configuration.case import Case
from sweep.answers.numbers import name_percentiles, name_range, pick_range
from sweep.cases.draws import draw_times

Row = dict[str, Any]

RANGES = (*name_percentiles("needed"), "met_probability", *name_percentiles("efficiency"))
# Each draw has a root of its own: between values this near each other a line tells it.
STEPS, ROUNDS = 120, 2


def find_need_ranges(build: Callable[..., Case], values: Floats, goal: float, pe: float) -> Row:
    """The RANGES of a goal's need over draws of what is not known; nothing of Table III.

    build: the case with given values of the parameter, of a strategy in place of the cell's own.
    values: from the worst to the best, with which `efficiency` is reached.
    """
    if build(values[:1]).uncertainty is None:
        return {}
    reached = _draw_efficiencies(build, values, pe)
    best, is_met = reached[-1], reached[-1] >= goal
    for _ in range(ROUNDS):
        low, high = _find_bracket(reached[:, is_met], goal) if is_met.any() else (0, 0)
        if low == high:
            break
        values = np.geomspace(values[low], values[high], STEPS + 1)
        reached = _draw_efficiencies(build, values, pe)
    needed = np.array([_find_root(values, column, goal) for column in reached.T])
    # A goal that no value meets takes more than the best: of a latency less than nothing.
    beyond = np.inf if values[-1] > values[0] else 0.0
    return {
        **pick_range("needed", np.where(is_met, needed, beyond), _write_reachable),
        "met_probability": float(is_met.mean()),
        **name_range("efficiency", best),
    }


def _draw_efficiencies(build: Callable[..., Case], values: Floats, pe: float) -> Floats:
    """The parallel efficiency [value, draw]."""
    parallel, serial = draw_times(build(values)), draw_times(build(values, Strategy("serial")))
    shape = (values.size, parallel.shape[-1])
    serial, parallel = (
        np.broadcast_to(times.reshape(-1, times.shape[-1]), shape) for times in (serial, parallel)
    )
    efficiencies: Floats = serial / parallel / pe
    return efficiencies


def _find_last_below(reached: Floats, goal: float) -> int:
    """The position of the last value with which a draw misses the goal, -1 where none does."""
    below = np.flatnonzero(reached < goal)
    return int(below[-1]) if below.size else -1


def _find_bracket(reached: Floats, goal: float) -> tuple[int, int]:
    """The positions of the values between which every draw's need lies."""
    last = [max(_find_last_below(column, goal), 0) for column in reached.T]
    return min(last), min(max(last) + 1, len(reached) - 1)


def _find_root(values: Floats, reached: Floats, goal: float) -> float:
    """The worst value from which on a draw reaches the goal, between two on a logarithmic line."""
    last = _find_last_below(reached, goal)
    if last < 0:
        return float(values[0])
    if last + 1 == values.size:
        return float(values[-1])
    (first, second), (low, high) = np.log(reached[last : last + 2]), np.log(values[last : last + 2])
    return float(np.exp(low + (high - low) * (np.log(goal) - first) / (second - first)))


def _write_reachable(value: float) -> float | None:
    return value if 0 < value < np.inf else None
