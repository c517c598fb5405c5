"""Convergence: epochs to a target accuracy as a function of the global batch.

    E(B) = E_min (1 + B / B_c)        S(B) = E D / B = S_min (1 + B_c / B)

McCandlish et al., "An Empirical Model of Large-Batch Training", arXiv 1812.06162. E_min: epochs of
the smallest batches; B_c [samples]: the critical batch, which doubles them; D: samples per epoch;
S: steps. Plain arithmetic for floats and arrays of numpy or JAX, which is not imported.

A curve interpolates linearly between measured points, and follows the law beyond them.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = Any  # a number, or an array of cells


@dataclass(frozen=True)
class Law:
    """Epochs by global batch, with (co)variances of logarithms.

    With an infinite critical batch epochs do not depend on the batch.
    """

    epochs_min: Value
    critical_batch: Value  # [samples]
    epochs_variance: Value = 0.0  # of ln E_min
    covariance: Value = 0.0  # of ln E_min and ln B_c
    batch_variance: Value = 0.0  # of ln B_c
    error: Value = 0.0  # spread of ln E of a run about the law


@dataclass(frozen=True)
class Curve:
    """Epochs by global batch, piecewise linear: start + slope B + sum of bends max(0, B - knots).

    knots [knot, ...] [samples]: where lines meet. bends [knot, ...]: change of slope there.
    """

    start: Value
    slope: Value
    knots: Value
    bends: Value


def follow_curve(curve: Curve, global_batch: Value) -> Value:
    """Compute epochs to the target for a global batch [samples] by a curve."""
    epochs = curve.start + curve.slope * global_batch
    for knot, bend in zip(curve.knots, curve.bends, strict=True):
        beyond = global_batch - knot
        epochs = epochs + bend * ((beyond + abs(beyond)) / 2.0)
    return epochs


def count_epochs(law: Law, global_batch: Value) -> Value:
    """Compute epochs to the target for a global batch [samples] by a law."""
    return law.epochs_min * (1.0 + global_batch / law.critical_batch)


def spread_epochs(law: Law, global_batch: Value) -> Value:
    """Compute the spread of the epochs, the standard deviation of ln E.

    d ln E = d ln E_min - w d ln B_c, where w = (B/B_c) / (1 + B/B_c) is the share of the epochs
    due to the batch: beyond the critical batch w tends to 1, and E to S_min B / D.
    """
    share = _find_share(law, global_batch)
    variance = (
        law.epochs_variance - 2.0 * share * law.covariance + share * share * law.batch_variance
    )
    return (variance + law.error * law.error) ** 0.5


def spread_ratio(law: Law, first: float, second: float) -> float:
    """Compute the spread of the ratio of epochs at two batches, where E_min cancels."""
    if first == second:
        return 0.0
    change = _find_share(law, first) - _find_share(law, second)
    return float((change * change * law.batch_variance + 2.0 * law.error * law.error) ** 0.5)


def _find_share(law: Law, global_batch: Value) -> Value:
    """Return w, the share of the epochs due to the batch."""
    ratio = global_batch / law.critical_batch
    return ratio / (1.0 + ratio)
