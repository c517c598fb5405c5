"""Roots: the value of a parameter from which on something holds.

A continuous parameter is tried in geometric steps. The step within which it comes to hold is then
divided again and again: with 240 parts of a step of 6 % four times over, to a relative 2e-11.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.models.layers import Floats

STEPS, ROUNDS = 240, 4


def span_values(name: str, low: float, high: float) -> Floats:
    """The values at which a parameter is tried, within its bounds."""
    parameter = PARAMETERS[name]
    return np.geomspace(max(low, parameter.low), min(high, parameter.high), STEPS + 1)


def close_in(
    holds: Callable[[Floats], NDArray[np.bool_]], low: float, high: float, rounds: int = ROUNDS
) -> float:
    """The value from which on something holds that does at `high` and not at `low`.

    holds: of values between both, in that order, which may be a descending one.
    """
    for _ in range(rounds):
        # A parameter may be 0, which is no end of geometric steps.
        spread = np.geomspace if low > 0 else np.linspace
        values = spread(low, high, STEPS + 1)
        at = max(1, int(np.argmax(holds(values))))
        low, high = float(values[at - 1]), float(values[at])
    return high
