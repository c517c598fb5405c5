"""Factors on compute time: from networks that ran to the machine, and to networks that did not run.

The logarithm of a network's factor is the machine's (normal) plus the network's own deviation
(Student's t), so that a single network that is far off, because of slow input say, does not move
the machine's factor.
"""

import math

import numpy as np

from grids.entries.calibration import SerialTime
from kernels.names.arrays import Floats

# Spread of the machine's factor: clocks, software and input, which all networks share. Assumed,
# within the 0.15 by which published profiles differ from other runs on the device.
MACHINE = 0.13


def build_root(spreads: Floats) -> Floats:
    """Return log factors per coordinate [model, 1 + model]: the machine's, then each model's.

    spreads [model]: of the models' log factors in total.
    """
    return np.hstack([np.full((len(spreads), 1), MACHINE), np.diag(_subtract_machine(spreads))])


def predict_unseen(spread: float, at: float, variance: float) -> SerialTime:
    """Return the factor of a network that did not run, whose prior has `spread`.

    at, variance: of the machine's coordinate; 0 and 1 before any run.
    """
    deviation = float(_subtract_machine(np.asarray(spread)))
    return SerialTime(
        factor=math.exp(MACHINE * at), spread=math.hypot(MACHINE * math.sqrt(variance), deviation)
    )


def _subtract_machine(spreads: Floats) -> Floats:
    """Return the part of the spreads that the networks do not share."""
    return np.asarray(np.sqrt(np.square(spreads) - MACHINE**2))
