"""Fit of a measured series to an entry: steps become epochs, and a law (E_min, B_c) is fitted.

Given B_c, ln E_min is a mean and the error of the runs is a sample variance. One unknown is left,
whose posterior is summed on a grid: no starting point, no local minimum, the same result each time.
Form and prior were chosen by leaving out large batches (docs/convergence.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from paradl.grids.convergence.entry import Convergence, Point
from paradl.grids.convergence.points import MeasuredPoint, Series
from paradl.grids.entries.entry import MOST_NAME
from paradl.grids.reading.errors import InputError, shorten
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
    # Spreads of the runs around each candidate's law; E_min takes one degree of freedom.
    squares = ((residuals - least[:, None]) ** 2).sum(axis=1) + prior.count * prior.error**2
    errors: Floats = np.sqrt(squares / (len(logs) - 1 + prior.count))
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


def _weigh(errors: Floats, ratios: Floats, count: int, prior: LawPrior) -> Floats:
    """Posterior probabilities of the candidates [critical], marginal in E_min and the error."""
    likelihood = -(count - 1 + prior.count) * np.log(errors)
    logs = likelihood - ((ratios - prior.ratio) / prior.spread) ** 2 / 2
    likelihoods = np.exp(logs - logs.max())
    weights: Floats = likelihoods / likelihoods.sum()
    return weights


# A law with runs scattered by a factor of e is no law.
MOST_ERROR = 1.0


def fit(series: Series, samples: int | None = None) -> Convergence:
    """Fit the entry of a series. samples: per epoch; None if unknown."""
    for point in series.points:
        if samples is not None and point.global_batch > samples:
            what = f"global_batch: expected at most {samples:,}, the samples of an epoch"
            what += f", got {point.global_batch:,}"
            raise InputError(what, where=point.where, advice="is it the right data set?")
    points = tuple(
        Point(global_batch=point.global_batch, epochs=_find_epochs(point, series, samples))
        for point in series.points
        if point.converged
    )
    _check_count(points, series)
    limit = _find_limit(series)
    law = fit_law(
        np.array([point.global_batch for point in points], dtype=np.float64),
        np.array([point.epochs for point in points]),
    )
    if law.error > MOST_ERROR:
        raise InputError(
            f"epochs: expected values that rise with the batch, got values that scatter by a "
            f"factor of {np.exp(law.error):.3g} around every law",
            where=series.points[0].where,
            advice="check the units, and that all rows are of one series",
        )
    return Convergence(
        name=f"{series.model} on {series.dataset} to {series.target}"[:MOST_NAME],
        source=(series.source,) if series.source else (),
        model=series.model,
        dataset=series.dataset,
        target=series.target,
        optimizer=series.optimizer,
        **vars(law),
        points=points,
        converges_to=limit,
        warnings=tuple(_list_warnings(points, limit)),
    )


def _find_epochs(point: MeasuredPoint, series: Series, samples: int | None) -> float:
    """Return the epochs of a converged point; E = S B / D if only steps are given."""
    if point.epochs is not None:
        return point.epochs
    assert point.steps is not None  # since it converged
    if samples is None:
        what = f"epochs: expected a number: samples of {shorten(series.dataset)} are not known"
        raise InputError(what, where=point.where, advice="give steps x global_batch / samples")
    return point.steps * point.global_batch / samples


def _check_count(points: Sequence[Point], series: Series) -> None:
    if len(points) < 2:
        what = f"expected two global batches that reach {shorten(series.target)}, got {len(points)}"
        raise InputError(what, where=series.points[0].where, advice="add a row of another batch")


def _find_limit(series: Series) -> int | None:
    """Return the largest batch that converged below the smallest that did not; None if all did."""
    failed = [point for point in series.points if not point.converged]
    if not failed:
        return None
    below = [point for point in series.points if point.global_batch < failed[0].global_batch]
    if not below:
        what = f"epochs: no batch below {failed[0].global_batch:,} reaches {shorten(series.target)}"
        raise InputError(what, where=failed[0].where, advice="add one, or remove this row")
    return below[-1].global_batch


def _list_warnings(points: Sequence[Point], limit: int | None) -> Iterator[str]:
    """Warn of epochs that fall with the batch, and of a batch beyond one that never converges."""
    for low, high in pairwise(points):
        if high.epochs < low.epochs:
            yield (
                f"epochs fall from {low.epochs:g} at {low.global_batch:,} to {high.epochs:g} at "
                f"{high.global_batch:,}: noise, or another schedule; the law rises"
            )
    largest = points[-1].global_batch
    if limit is not None and largest != limit:
        yield (
            f"{largest:,} converges and a smaller batch never does: {limit:,} is taken as the last"
        )
