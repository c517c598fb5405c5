"""Fit: the most probable parameters of a machine, and their uncertainty.

`kernels.derivatives.density` has the density and the coordinates. The covariance is Laplace's: the
inverse of the curvature of the log-posterior at its mode.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import Bounds, minimize

from paradl.grids.entries.calibration import (
    DETERMINED,
    CalibrationFile,
    FittedParameter,
    FittedSeries,
    ModelError,
    SerialTime,
)
from paradl.kernels.compiled import put_on_device
from paradl.kernels.derivatives.density import FitData, apply_parameters, find_surprise, log_times
from paradl.kernels.names.arrays import Floats
from paradl.sweep.calibration.observations import Mask, Observations
from paradl.sweep.errors import RunError
from paradl.sweep.measured.runs import PARTS, MeasuredRun

# Spreads of a model's time on one PE: around its profile, since software and day differ, or around
# the roofline, which ignores the layers' efficiency.
PROFILE = 0.15
ROOFLINE = 0.17
# Spread of the machine's factor: clocks, software and input, which all networks share. Assumed,
# within the 0.15 by which published profiles differ from other runs on the device.
MACHINE = 0.13

# Small errors leave several modes. One search begins with large errors, which leave few; the others
# begin at random points around the priors' medians.
BROADER = (8.0, 4.0, 2.0)
STARTS = 4
AROUND = 0.7  # spread of these points, in spreads of the prior
# All may take a network's runs for outliers: a single run 2.5 times as long as predicted changed
# nothing, though a factor of 2.5 on the network is more probable. So if the best mode leaves the
# median run of one further off than this (in log time; ABCI's fits are within 0.02), a last search
# begins where none is.
UNEXPLAINED = 0.3
# Of the finite differences for the curvature, in spreads of the prior. ABCI's 86 fits, with all
# folds, end where the density is smooth. But 11 of 44 fits of clusters.csv end at the kink where
# `rail` takes over from `flow`: there the narrow step finds curvatures of 60 to 66,000, and the
# wide one of 1 to 8. The wide one gives smooth parameters up to 30 % too much spread.
STEP, WIDE_STEP = 1e-5, 0.1


@dataclass(frozen=True, eq=False)
class Posterior:
    """Parameters, the covariance of their logarithms, and factors on the time on one PE.

    serial: of the models that ran. profiled, roofline: of others, with a profile and without.
    """

    values: Floats
    covariance: Floats
    serial: dict[str, SerialTime]
    profiled: SerialTime
    roofline: SerialTime


@dataclass(frozen=True, eq=False)
class PriorScale:
    """Priors of parameters and models: ln median, and bounds of the coordinates.

    root [parameter and model, coordinate]: square root of the covariance.
    """

    median: Floats
    root: Floats
    bounds: Bounds


def fit(observations: Observations, train: Mask, starts: int = STARTS) -> Posterior:
    """Return the posterior given the runs in `train`. RunError: there is none.

    starts: number of random starts of the search.
    """
    scale = _find_scale(observations)
    counted = observations.counted & train
    data = put_on_device(  # once, instead of at each step
        FitData(
            broader=np.ones(()),
            median=scale.median,
            root=scale.root,
            case=observations.case,
            layers=observations.layers,
            of_model=observations.of_model,
            logs=np.log(np.where(counted, observations.seconds, 1.0)),
            weights=counted.astype(float),
            names=tuple(observations.priors),
        )
    )
    size = len(observations.priors)
    mode = _find_best_mode(scale, data, starts)
    mode = _meet_runs(mode, scale, data, observations, counted)
    at = mode[1]
    logs = scale.median + scale.root @ at
    values = np.exp(logs)
    # Inverted by eigenvalues: in directions that runs do not constrain, or at a bound, the
    # curvature may be anything. At least 1, that of the prior: runs never add uncertainty.
    curvature, axes = np.linalg.eigh(_find_curvature(at, data))
    of_coordinates = np.asarray((axes / np.maximum(curvature, 1.0)) @ axes.T)
    covariance = scale.root @ of_coordinates @ scale.root.T
    machine = float(at[size]), float(of_coordinates[size, size])
    return Posterior(
        values[:size],
        covariance[:size, :size],
        _list_serial_times(observations, train, values[size:], np.diag(covariance)[size:] ** 0.5),
        profiled=predict_unseen(PROFILE, *machine),
        roofline=predict_unseen(ROOFLINE, *machine),
    )


def _meet_runs(
    mode: tuple[float, Floats],
    scale: PriorScale,
    data: FitData,
    observations: Observations,
    counted: Mask,
) -> tuple[float, Floats]:
    """Return the mode, or a better one near the point where every network's runs are met."""
    off = _find_unexplained(observations, counted, scale.median + scale.root @ mode[1])
    if np.abs(off).max() <= UNEXPLAINED:
        return mode
    off = _find_unexplained(observations, counted, scale.median)
    size = len(observations.priors)
    start = np.append(np.zeros(size + 1), off / np.diag(scale.root[size:, size + 1 :]))
    return min(mode, _find_mode(start, scale.bounds, data), key=lambda mode: mode[0])


def _find_scale(observations: Observations) -> PriorScale:
    priors = list(observations.priors.values())
    profiled = (observations.of_model * observations.profiled).any(axis=1)
    models = np.zeros(len(observations.models))
    anywhere = np.full(1 + len(observations.models), np.inf)
    median = np.concatenate([np.log([prior.median for prior in priors]), models])
    spread = np.array([prior.spread for prior in priors])
    of_models = np.where(profiled, PROFILE, ROOFLINE)
    low, high = (
        (np.log([getattr(prior, end) for prior in priors]) - median[: spread.size]) / spread
        for end in ("low", "high")
    )
    bounds = Bounds(np.append(low, -anywhere), np.append(high, anywhere))
    return PriorScale(median, block_diag(np.diag(spread), build_root(of_models)), bounds)


def _find_unexplained(observations: Observations, counted: Mask, logs: Floats) -> Floats:
    """Return ln of measured over fitted time of each model's median run; 0 without a counted run.

    logs: of parameters and models. Of totals and computes, which the model's factor moves.
    """
    values, size = np.exp(logs), len(observations.priors)
    parameters = dict(zip(observations.priors, values[:size], strict=True))
    factors = values[size:] @ observations.of_model
    fitted = apply_parameters(observations.case, observations.layers, parameters, factors)
    off = np.log(observations.seconds) - np.asarray(log_times(fitted))
    timed = counted & (np.array(PARTS) != "comm")[:, None]
    of_runs = [timed & ran for ran in observations.of_model.astype(bool)]
    return np.array([np.median(off[runs]) if runs.any() else 0.0 for runs in of_runs])


def _find_best_mode(scale: PriorScale, data: FitData, starts: int) -> tuple[float, Floats]:
    first = np.zeros(scale.root.shape[1])
    for broader in BROADER:
        _, first = _find_mode(first, scale.bounds, replace(data, broader=np.asarray(broader)))
    # A fixed seed, so that the same runs give the same calibration.
    random = np.random.default_rng(0)
    others = AROUND * random.standard_normal((starts, first.size))
    modes = [_find_mode(start, scale.bounds, data) for start in (first, *others)]
    # Rounded, so that of equal modes the first wins on every machine.
    return min(modes, key=lambda mode: round(mode[0], 6))


def _find_mode(start: Floats, bounds: Bounds, data: FitData) -> tuple[float, Floats]:
    """Return the least surprise near a start, and its coordinates."""
    surprise = find_surprise.bind(start, data)

    def value_and_slope(at: Floats) -> tuple[float, Floats]:
        value, slope = surprise(at, data)
        return float(value), np.asarray(slope)

    inside = np.clip(start, bounds.lb, bounds.ub)
    # Truncated Newton (TNC) takes twice as many slopes (47,580 in ABCI's fits; this 23,674),
    # L-BFGS-B half as many again, and some of its searches end early.
    least = minimize(
        value_and_slope,
        inside,
        jac=True,
        method="SLSQP",
        bounds=bounds,
        options={"ftol": 1e-9, "maxiter": 1000},
    )
    if not np.isfinite(least.fun):
        raise RunError("the fit found no parameters; are the measured times in seconds?")
    return float(least.fun), np.asarray(least.x)


def _find_curvature(at: Floats, data: FitData) -> Floats:
    """Compute second derivatives by central differences of the slope; averages across kinks."""
    narrow, wide = (_difference_slopes(at, data, step) for step in (STEP, WIDE_STEP))
    # At a kink the curvature is infinite, and beside one that of its side alone.
    kinked = np.abs(np.diag(narrow - wide)) > np.maximum(np.diag(wide), 1.0)
    curvature = np.where(kinked[:, None], wide, narrow)
    curvature = np.where(kinked & ~kinked[:, None], curvature.T, curvature)
    return np.asarray((curvature + curvature.T) / 2)


def _difference_slopes(at: Floats, data: FitData, step: float) -> Floats:
    """Return the change of the slope with each coordinate [coordinate, slope]."""
    surprise = find_surprise.bind(at, data)
    # Exact ones take 6 s to compile, as long as the rest of a fit. Differences are exact enough:
    # the slope has a relative error of 1e-14, its difference one of 1e-8.
    ahead, behind = (
        np.array([surprise(at + aside, data)[1] for aside in sign * step * np.eye(at.size)])
        for sign in (1, -1)
    )
    return np.asarray((ahead - behind) / (2 * step))


def _list_serial_times(
    observations: Observations, train: Mask, factors: Floats, spreads: Floats
) -> dict[str, SerialTime]:
    ran = {run.model for run, used in zip(observations.runs, train, strict=True) if used}
    times = zip(observations.models, factors.tolist(), spreads.tolist(), strict=True)
    return {
        model: SerialTime(factor=factor, spread=spread)
        for model, factor, spread in times
        if model in ran
    }


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


def calibrate_machine(
    observations: Observations, train: Mask, error: ModelError, starts: int = STARTS
) -> CalibrationFile:
    """Calibrate with the runs in `train`; starts: as for `fit`."""
    posterior = fit(observations, train, starts)
    spreads = np.sqrt(np.diag(posterior.covariance))
    correlation = posterior.covariance / spreads / spreads[:, None]
    system = observations.system
    ran = zip(observations.multipliers, train, strict=True)
    kinds = {kind for multipliers, used in ran if used for kind in multipliers}
    return CalibrationFile(
        name=system.name,
        system=system.machine,
        oracle="machine",
        precision=system.precision,
        software=system.software,
        switches=system.switches,
        parameters={
            name: FittedParameter(
                value=value, spread=spread, determined=bool(spread < DETERMINED * prior.spread)
            )
            for (name, prior), value, spread in zip(
                observations.priors.items(),
                posterior.values.tolist(),
                spreads.tolist(),
                strict=True,
            )
        },
        # Only the lower triangle of the symmetric matrix, since people read the file.
        correlation=tuple(tuple(row[: n + 1].tolist()) for n, row in enumerate(correlation)),
        serial=posterior.serial,
        architectures={
            model: digest
            for model, digest in observations.architectures.items()
            if model in posterior.serial
        },
        profile_factor=posterior.profiled.factor,
        profile_spread=posterior.profiled.spread,
        roofline_factor=posterior.roofline.factor,
        roofline_spread=posterior.roofline.spread,
        error=error,
        series=_group_series(observations, train),
        layers=tuple(sorted(kinds)),
    )


def _group_series(observations: Observations, train: Mask) -> tuple[FittedSeries, ...]:
    """Group runs by model, data set and strategy, in the order of the rows."""
    groups: dict[tuple[str, str, str], list[MeasuredRun]] = {}
    for run, strategy, used in zip(observations.runs, observations.strategies, train, strict=True):
        if used:
            groups.setdefault((run.model, run.dataset, strategy.base), []).append(run)
    return tuple(
        FittedSeries(
            model=model,
            dataset=dataset,
            strategy=strategy,
            pe=tuple(sorted({run.p for run in runs})),
            batch=tuple(sorted({run.samples_per_replica for run in runs})),
        )
        for (model, dataset, strategy), runs in groups.items()
    )
