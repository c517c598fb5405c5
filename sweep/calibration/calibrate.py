"""Calibrate: fit a machine to a file of measured runs, as `paradl calibrate` does."""

from collections import Counter
from pathlib import Path

import numpy as np

from grids.entries.calibration import CalibrationFile
from sweep.calibration.cross_validation import FITTED, leave_out, predict_fitted
from sweep.calibration.model_error import (
    DEFAULT,
    find_model_error,
    find_residuals,
    rate_schemes,
)
from sweep.calibration.observations import Observations, observe
from sweep.calibration.posterior import calibrate_machine
from sweep.engine.compile_cache import keep_programs
from sweep.measured.runs import read_runs


def calibrate(
    path: str | Path, *, system: str = "abci", cross_validation: bool = True
) -> CalibrationFile:
    """Return parameters fitted to a CSV file of runs, with their uncertainty and accuracy.

    system: of rows that name none. Without cross-validation, the model's errors are assumed, and
    the accuracy is that of the fit. InputError: a mistake in the file, with its line. RunError:
    there is no fit.
    """
    keep_programs()
    observations = observe(read_runs(Path(path)), system)
    file = calibrate_machine(observations, np.ones(len(observations), bool), DEFAULT)
    left = leave_out(observations) if cross_validation else []
    residuals = find_residuals(observations, [*predict_fitted(observations, file), *left])
    of_left = residuals.select(residuals.schemes != FITTED)
    error = find_model_error(of_left) if left else DEFAULT
    return file.model_copy(
        update={
            "title": f"{file.name}, calibrated from {len(observations)} measured runs",
            "source": (_name_sources(Path(path), observations),),
            "error": error,
            "accuracy": rate_schemes(residuals, error),
        }
    )


def _name_sources(path: Path, observations: Observations) -> str:
    """Name the file, and count its runs by source."""
    counts = Counter(run.source for run in observations.runs if run.source)
    return ", ".join([path.name, *(f"{count} of {name}" for name, count in counts.items())])
