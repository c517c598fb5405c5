"""A machine's compute time: what networks that ran tell of those that did not.

The logarithm of a network's factor is the machine's, which is normal, plus the network's own
deviation, which follows Student's t: one network that is far off (slow input, say) does not move
what the others tell of the machine.
"""

import math

import numpy as np

from grids.entries.calibration import SerialTime
from grids.models.layers import Floats

# Spread of the machine's factor: its clocks, software and input, which all of its networks share.
# An assumption, within the 0.15 that published profiles differ by from other runs of the device.
MACHINE = 0.13


def build_root(spreads: Floats) -> Floats:
    """Logarithms of factors [model] of these spreads by coordinate: the machine, then each model.

    [model, 1 + model]
    """
    return np.hstack([np.full((len(spreads), 1), MACHINE), np.diag(_subtract_machine(spreads))])


def predict_unseen(spread: float, at: float, variance: float) -> SerialTime:
    """The factor of a network that did not run, whose prior has `spread`.

    at, variance: the machine's coordinate, and its variance: 0 and 1 before any run.
    """
    deviation = float(_subtract_machine(np.asarray(spread)))
    return SerialTime(
        factor=math.exp(MACHINE * at), spread=math.hypot(MACHINE * math.sqrt(variance), deviation)
    )


def _subtract_machine(spreads: Floats) -> Floats:
    """The part of the spreads that is each network's own."""
    return np.asarray(np.sqrt(np.square(spreads) - MACHINE**2))
