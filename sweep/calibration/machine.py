"""A machine's calibration: what was fitted, as the file that `grids.calibration` describes."""

from collections.abc import Mapping

import numpy as np

from grids.calibration import (
    PRIORS,
    CalibrationFile,
    ModelError,
    Parameter,
    Series,
)
from grids.models.layers import Floats
from sweep.calibration.fit import PROFILE, ROOFLINE, Posterior, fit
from sweep.calibration.observations import Mask, Observations

# A parameter is determined where the runs more than halve the spread of its prior.
DETERMINED = 0.5


def machine(seen: Observations, train: Mask, error: ModelError) -> CalibrationFile:
    """The calibration by the runs in `train`."""
    posterior = fit(seen, train)
    spreads = np.sqrt(np.diag(posterior.covariance))
    correlation = posterior.covariance / spreads / spreads[:, None]
    return CalibrationFile(
        name=seen.system,
        system=seen.system,
        parameters=_parameters(posterior, spreads),
        correlation=tuple(tuple(row[: n + 1].tolist()) for n, row in enumerate(correlation)),
        serial=posterior.serial,
        profile_spread=PROFILE,
        roofline_spread=ROOFLINE,
        error=error,
        series=_series(seen, train),
    )


def _parameters(posterior: Posterior, spreads: Floats) -> Mapping[str, Parameter]:
    return {
        name: Parameter(
            value=value, spread=spread, determined=bool(spread < DETERMINED * prior.spread)
        )
        for (name, prior), value, spread in zip(
            PRIORS.items(), posterior.values.tolist(), spreads.tolist(), strict=True
        )
    }


def _series(seen: Observations, train: Mask) -> tuple[Series, ...]:
    """The runs of a model and strategy together, in the order of the rows."""
    labels = [
        (run.model, run.dataset, strategy.base)
        for run, strategy in zip(seen.runs, seen.strategies, strict=True)
    ]
    found = []
    for each in dict.fromkeys(label for label, used in zip(labels, train, strict=True) if used):
        own = [
            run
            for run, label, used in zip(seen.runs, labels, train, strict=True)
            if used and label == each
        ]
        found.append(
            Series(
                model=each[0],
                dataset=each[1],
                strategy=each[2],
                pe=tuple(sorted({run.p for run in own})),
                batch=tuple(sorted({run.samples_per_replica for run in own})),
            )
        )
    return tuple(found)
