"""Elasticities by differences: of answers that numpy gives, and of one cell's.

A step goes up only, so that at a kink the slope is that towards more of a parameter. Times have 16
digits, which leaves nine for slopes.
"""

import numpy as np

from paradl.kernels.arrays import Cells, xp
from paradl.kernels.names.arrays import Floats

# Step of a parameter: curvature and rounding each add an error of about 3e-11 to a slope.
STEP = 1.00001
# Slopes that a cube stores are rounded to multiples of this, so that one that is 0 but for rounding
# is 0 however the cells are cut into tiles. It is the resolution of single precision at 1.
RESOLUTION = 2.0**-24
# A parameter's factors; the second one cancels the curvature.
STEPS = (STEP, STEP**2)


def find_elasticity(near: Floats, far: Floats) -> Floats:
    """Return d log y / d log x of the ratios of y after each of STEPS to that before."""
    slopes: Floats = (4 * np.log(near) - np.log(far)) / (2 * np.log(STEP))
    return slopes


def round_elasticity(slope: Cells) -> Cells:
    """Round slopes to multiples of RESOLUTION; 0 and not -0, which is another bit."""
    steps = xp.round(slope / RESOLUTION)
    return xp.where(steps == 0, 0.0, steps * RESOLUTION)
