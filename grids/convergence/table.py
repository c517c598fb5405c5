"""Interpolation of measured epochs: straight lines between the points, instead of the law.

Between measured batches they predict a left-out point better than the law (docs/convergence.md),
and they pass through the measured points.
"""

import numpy as np

from paradl.grids.convergence.entry import Convergence
from paradl.kernels.configuration.convergence import Curve, count_epochs, follow_curve
from paradl.kernels.names.arrays import Floats


def find_epochs(convergence: Convergence, global_batch: Floats) -> Floats:
    """Epochs at batches [...], interpolated; NaN above the largest batch that converges."""
    epochs = interpolate_epochs(convergence, global_batch)
    never: Floats = np.where(global_batch > (convergence.converges_to or np.inf), np.nan, epochs)
    return never


def interpolate_epochs(convergence: Convergence, global_batch: Floats) -> Floats:
    """Epochs at batches [...], on lines through the points that never fall despite noise.

    Outside the measured batches they follow the law, scaled to the first or last point; without
    points they are the law.
    """
    epochs: Floats = np.asarray(follow_curve(draw_curve(convergence), global_batch), float)
    return epochs


def draw_curve(convergence: Convergence) -> Curve:
    """Return the same epochs as a curve of lines; the law is one: E_min + (E_min / B_c) B."""
    law, points = convergence.law, convergence.points
    rise = law.epochs_min / law.critical_batch
    if not points:
        return Curve(law.epochs_min, rise, np.empty(0), np.empty(0))
    from scipy.optimize import isotonic_regression  # 0.6 s to import

    batches = np.array([point.global_batch for point in points], float)
    epochs = isotonic_regression([point.epochs for point in points]).x
    # Outside, the law is scaled to meet the first and the last point.
    first, last = (
        epochs[end] / count_epochs(law, batches[end]) * np.array([law.epochs_min, rise])
        for end in (0, -1)
    )
    slopes = [first[1], *(np.diff(epochs) / np.diff(batches)), last[1]]
    return Curve(float(first[0]), float(first[1]), batches, np.diff(slopes))
