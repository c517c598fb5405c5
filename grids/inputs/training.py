"""Training of a case: its law of epochs, and the largest global batch."""

from dataclasses import replace

import numpy as np

from grids.convergence.entry import Convergence
from grids.convergence.table import draw_curve
from grids.inputs.values import Values
from kernels.configuration.case import EpochLaw
from kernels.names.arrays import Floats


def build_training(convergence: Convergence | None, values: Values) -> EpochLaw | None:
    """Return the law of a model and data set; None if there is none."""
    if convergence is None:
        return None
    curve, cells = draw_curve(convergence), (1,) * values.rank
    return EpochLaw(
        curve=replace(
            curve, knots=curve.knots.reshape(-1, *cells), bends=curve.bends.reshape(-1, *cells)
        ),
        law=convergence.law,
        converges_to=np.asarray(convergence.converges_to or np.inf, float),
    )


def find_largest_batch(convergence: Convergence | None, values: Values) -> Floats | None:
    """Return the largest global batch that converges or that the user allows; None if unlimited."""
    converges_to = None if convergence is None else convergence.converges_to
    if "max_global_batch" not in values:
        return None if converges_to is None else np.full((1,) * values.rank, float(converges_to))
    return np.minimum(values.get("max_global_batch"), converges_to or np.inf)
