"""From the posterior of a fit to a calibration file."""

import numpy as np

from paradl.grids.entries.calibration import (
    DETERMINED,
    CalibrationFile,
    FittedParameter,
    FittedSeries,
    ModelError,
)
from paradl.sweep.calibration.fit import STARTS, fit
from paradl.sweep.calibration.observations import Mask, Observations
from paradl.sweep.measured.runs import MeasuredRun


def calibrate_machine(
    observations: Observations,
    train: Mask,
    error: ModelError,
    starts: int = STARTS,
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
