"""Elasticities by differences: of answers that numpy gives, and of one cell's.

A step goes up only, so that at a kink the slope is that towards more of a parameter. Times have 16
digits, which leaves nine for slopes.
"""

from collections.abc import Callable, Mapping

import numpy as np

from paradl.kernels.arrays import AnyArray, Cells, xp
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import scale_parameters
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.answer import evaluate

# Reads answers by name.
Read = Callable[[Answer], Mapping[str, AnyArray]]

# Step of a parameter: curvature and rounding each add an error of about 3e-11 to a slope.
STEP = 1.00001
# Slopes that a cube stores are rounded to multiples of this, so that one that is 0 but for rounding
# is 0 however the cells are cut into tiles. It is the resolution of single precision at 1.
RESOLUTION = 2.0**-24
# A parameter's factors; the second one cancels the curvature.
STEPS = (STEP, STEP**2)


def compare_answers(
    case: Case, read: Read, here: Mapping[str, AnyArray], parameter: str, factor: float
) -> dict[str, AnyArray]:
    """Return answers with a parameter times a factor over those `here`, by the names of `here`.

    here: the same answers of the case itself; NaN is returned where they are 0.
    """
    moved = read(evaluate(scale_parameters(case, {parameter: xp.asarray(factor)})))
    return {name: moved[name] / xp.where(y > 0, y, xp.nan) for name, y in here.items()}


def find_elasticities(
    case: Case, read: Read, here: Mapping[str, AnyArray], parameter: str
) -> dict[str, AnyArray]:
    """Return d log y / d log parameter by the names of `here`, towards more of the parameter."""
    near, far = (compare_answers(case, read, here, parameter, step) for step in STEPS)
    return {name: find_elasticity(*map(np.asarray, (near[name], far[name]))) for name in here}


def find_elasticity(near: Floats, far: Floats) -> Floats:
    """Return d log y / d log x of the ratios of y after each of STEPS to that before."""
    slopes: Floats = (4 * np.log(near) - np.log(far)) / (2 * np.log(STEP))
    return slopes


def round_elasticity(slope: Cells) -> Cells:
    """Round slopes to multiples of RESOLUTION; 0 and not -0, which is another bit."""
    steps = xp.round(slope / RESOLUTION)
    return xp.where(steps == 0, 0.0, steps * RESOLUTION)
