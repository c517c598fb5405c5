"""Accuracy of a calibration, by what was left out of it, and how often its intervals hold.

1 - |predicted - measured| / measured, at least 0, averaged, as in `sweep.measured.accuracy`.
"""

import numpy as np

from grids.entries.calibration import ModelError
from grids.models.layers import Floats
from sweep.calibration.model_error import Residuals
from sweep.measured.runs import PARTS


def rate_schemes(residuals: Residuals, error: ModelError) -> dict[str, dict[str, float]]:
    """By scheme: `rows`, the mean accuracy of each part, the share in its interval."""
    within = residuals.within(error)
    with np.errstate(over="ignore"):  # of a prediction that is too long beyond measure: accuracy 0
        accuracy = np.maximum(0.0, 1 - np.abs(np.exp(-residuals.off) - 1))
    return {
        str(scheme): {
            "rows": int(np.sum(residuals.schemes == scheme)),
            **_average_parts("", accuracy[:, residuals.schemes == scheme]),
            **_average_parts("_in_interval", within[:, residuals.schemes == scheme]),
        }
        for scheme in dict.fromkeys(residuals.schemes.tolist())
    }


def _average_parts(suffix: str, values: Floats) -> dict[str, float]:
    """The mean of each part that was measured."""
    return {
        f"{part}{suffix}": float(np.nanmean(row))
        for part, row in zip(PARTS, values, strict=True)
        if np.isfinite(row).any()
    }
