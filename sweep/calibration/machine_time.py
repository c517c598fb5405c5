"""A machine's compute time: what networks that ran tell of those that did not.

The logarithm of a network's factor is the machine's plus the network's deviation from it, both
normal: factors of networks on one machine are correlated before any run.
"""

import math

import numpy as np

from grids.entries.calibration import SerialTime
from grids.models.layers import Floats

# The machine's part of the prior's variance: clocks, software and input are the same for all of its
# networks. An assumption: half of the spread is left to each network.
SHARED = 0.75


def build_covariance(spreads: Floats) -> Floats:
    """The prior's covariance [model, model] of the logarithms of factors of these spreads."""
    covariance = SHARED * np.square(np.minimum.outer(spreads, spreads))
    np.fill_diagonal(covariance, np.square(spreads))
    return covariance


def predict_unseen(spread: float, spreads: Floats, logs: Floats, covariance: Floats) -> SerialTime:
    """The factor of a network that did not run, whose prior has `spread`.

    spreads, logs [model], covariance [model, model]: of the networks that ran; their priors', and
    what the runs leave of them.
    """
    shared = SHARED * np.square(np.minimum(spread, spreads))
    weights = np.linalg.solve(build_covariance(spreads), shared)
    variance = spread**2 - shared @ weights + weights @ covariance @ weights
    if logs.size > 1:
        # Networks that differ by more than the prior says leave the others less sure.
        variance += max(0.0, float(np.var(logs, ddof=1)) - (1 - SHARED) * spread**2)
    return SerialTime(factor=math.exp(weights @ logs), spread=math.sqrt(variance))
