"""Measured epochs as a table: straight lines between the points, instead of the law.

Inside the measured batches they miss a point that is left out by less than the law does
(docs/convergence.md), and meet a measured one. Apart from the entry: SciPy takes 0.3 s to import.
"""

import numpy as np
from scipy.optimize import isotonic_regression

from grids.convergence.entry import Convergence
from grids.models.layers import Floats
from kernels.convergence import count_epochs


def find_epochs(convergence: Convergence, global_batch: Floats) -> Floats:
    """Epochs at batches [...], interpolated; NaN beyond the largest batch that converges."""
    epochs = interpolate_epochs(convergence, global_batch)
    never: Floats = np.where(global_batch > (convergence.converges_to or np.inf), np.nan, epochs)
    return never


def interpolate_epochs(convergence: Convergence, global_batch: Floats) -> Floats:
    """Epochs at batches [...]: lines that never fall through the points, which have noise.

    Outside the measured batches they follow the law from the first and the last point; without
    points they are the law's.
    """
    law = convergence.law
    if not convergence.points:
        return np.asarray(count_epochs(law, global_batch), dtype=np.float64)
    batches = np.array([point.global_batch for point in convergence.points], dtype=np.float64)
    epochs = isotonic_regression([point.epochs for point in convergence.points]).x
    inside = np.clip(global_batch, batches[0], batches[-1])
    beyond = count_epochs(law, global_batch) / count_epochs(law, inside)
    table: Floats = np.interp(inside, batches, epochs) * beyond
    return table
