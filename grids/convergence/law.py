"""Fit of a law of convergence: E_min and B_c, with their uncertainty.

Given B_c, ln E_min is a mean and the error of the runs is a sample variance. One unknown is left,
whose posterior is summed on a grid: no starting point, no local minimum, the same result each time.
Form and prior were chosen by leaving out large batches (docs/convergence.md).
"""

from dataclasses import dataclass

import numpy as np

from paradl.kernels.configuration.convergence import Law
from paradl.kernels.names.arrays import Floats


@dataclass(frozen=True)
class LawPrior:
    """Expectations of a series before it is measured."""

    ratio: float  # mean of ln(critical batch / largest measured batch)
    spread: float  # standard deviation of the same
    error: float  # spread of runs around their law
    count: float  # number of runs that would determine the error as well as this prior


# Measurements usually end where epochs begin to rise: the critical batch is e times the largest
# measured one, within a factor of 4.5 either way, and runs scatter by 5 %.
PRIOR = LawPrior(ratio=1.0, spread=1.5, error=0.05, count=3)
STEP = 0.01  # of the grid, in ln B_c
MARGIN = 8.0  # of the grid around the measured batches, in ln B_c: 5 spreads of the prior


def fit_law(batches: Floats, epochs: Floats, prior: LawPrior = PRIOR) -> Law:
    """Fit the law of measured epochs [n] at global batches [n] of at least two sizes."""
    logs = np.log(batches)
    largest = logs.max()
    critical = np.arange(logs.min() - MARGIN, largest + MARGIN, STEP)  # candidates of ln B_c
    residuals = np.log(epochs) - np.log1p(np.exp(logs - critical[:, None]))
    least = residuals.mean(axis=1)  # ln E_min, given B_c
    errors = _find_errors(residuals - least[:, None], prior)
    weights = _weigh(errors, critical - largest, len(logs), prior)
    middle = int(np.searchsorted(np.cumsum(weights), 0.5))  # the median
    epochs_error = least - least[middle]  # of the logarithms, as below
    batch_error = critical - critical[middle]
    return Law(
        epochs_min=float(np.exp(least[middle])),
        critical_batch=float(np.exp(critical[middle])),
        epochs_variance=float(weights @ epochs_error**2 + errors[middle] ** 2 / len(logs)),
        covariance=float(weights @ (epochs_error * batch_error)),
        batch_variance=float(weights @ batch_error**2),
        error=float(errors[middle]),
    )


def _find_errors(residuals: Floats, prior: LawPrior) -> Floats:
    """Spread of the runs around each candidate's law [critical], from residuals [critical, n].

    E_min takes one degree of freedom.
    """
    squares = (residuals**2).sum(axis=1) + prior.count * prior.error**2
    spread: Floats = np.sqrt(squares / (residuals.shape[1] - 1 + prior.count))
    return spread


def _weigh(errors: Floats, ratios: Floats, count: int, prior: LawPrior) -> Floats:
    """Posterior probabilities of the candidates [critical], marginal in E_min and the error."""
    likelihood = -(count - 1 + prior.count) * np.log(errors)
    logs = likelihood - ((ratios - prior.ratio) / prior.spread) ** 2 / 2
    likelihoods = np.exp(logs - logs.max())
    weights: Floats = likelihoods / likelihoods.sum()
    return weights
