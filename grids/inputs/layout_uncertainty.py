"""Draws of the parameters that layouts depend on, and the spread of times that follows."""

from collections.abc import Callable, Mapping

import numpy as np

from paradl.grids.entries.calibration import LayoutTime
from paradl.grids.entries.layout_parameters import KNOWN
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.transformer_rates import RIVAL_SPREAD, find_system_spread
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.inputs.layout_machine import NOTHING
from paradl.grids.inputs.machine import Machine
from paradl.grids.inputs.uncertainty import NAMES, draw_logarithms
from paradl.grids.inputs.values import Values
from paradl.kernels.configuration.case import Uncertainty
from paradl.kernels.configuration.places import PLACES
from paradl.kernels.machine.software import Software
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.uncertainty import PARTS
from paradl.kernels.work.transformer import Family

# Those whose values priors or runs leave open, but for memory, on which no time depends.
DRAWN = tuple(name for name in KNOWN if PARAMETERS[name].prior and name != "reserved")

# Seconds computing and communicating [draw, layouts], given factors on parameters [draw].
Draw = Callable[[Mapping[str, Floats]], tuple[Floats, Floats]]


def draw_factors(machine: Machine, values: Values, draws: int = DRAWS) -> dict[str, Floats]:
    """Draw a factor on each parameter [draw]; those that are set are not drawn."""
    logs = draw_logarithms(machine.system, machine.calibration, values, DRAWN, draws)
    factors = {name: np.exp(log) for name, log in logs.items()}
    # Shares stay within 1, as in cases (`kernels.oracle.uncertainty`).
    largest = {name: 1 / max(float(machine.look_up(name, NOTHING)), 1e-9) for name in PARTS}
    return factors | {n: np.minimum(factors[n], max(most, 1.0)) for n, most in largest.items()}


def build_layout_uncertainty(
    machine: Machine,
    precision: str,
    family: Family,
    calibrated: LayoutTime | None,
    values: Values,
    draws: int = DRAWS,
) -> Uncertainty:
    """Draw parameters along a leading dimension, and set the error of all terms beside them.

    precision: a recipe. values: parameters that are set.
    """
    # Runs that calibrate scatter by their parameters, too.
    is_drawn = calibrated is None
    error = find_system_spread(machine.system, precision, family, calibrated, is_drawn)
    factors = draw_factors(machine, values, draws) if is_drawn else {}
    shape = (-1, *[1] * values.rank)
    software, kernels = (
        {PLACES[n].field: by.reshape(shape) for n, by in factors.items() if PLACES[n].part == part}
        for part in ("software", "pe")
    )
    one = np.ones((1,) * values.rank)
    whole = np.ones((draws, *one.shape))
    return Uncertainty(
        factors=Software(**dict.fromkeys(NAMES, whole) | software),
        serial=whole,
        **dict.fromkeys(("whole", "group", "reduce", "exchange", "widening"), one),
        kernels=kernels,
        joint=error * one,
        beside=RIVAL_SPREAD * one,
    )


def find_spreads(
    machine: Machine,
    precision: str,
    family: Family,
    calibrated: LayoutTime | None,
    values: Values,
    draw: Draw,
) -> list[Floats]:
    """Return spreads of ln computing, ln communicating and ln of both [layouts].

    They are of draws of parameters, and of what errs beside them. precision: a recipe. values:
    parameters that are set.
    """
    # Runs that calibrate scatter by their parameters, too.
    is_drawn = calibrated is None
    error = find_system_spread(machine.system, precision, family, calibrated, is_drawn)
    if not is_drawn:
        return [np.array(error)] * 3
    computing, communicating = draw(draw_factors(machine, values))
    times = computing, communicating, computing + communicating
    return [np.hypot(_find_spread(time), error) for time in times]


def _find_spread(seconds: Floats) -> Floats:
    """Return the spread of the logarithm [layouts]; 0 of a time of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.log(seconds).std(axis=0)
    return np.where(np.any(seconds == 0, axis=0), 0.0, spread)
