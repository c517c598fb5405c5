"""Calibrate: a machine's calibration out of a file of measured runs, as `paradl calibrate` does."""

from collections import Counter
from pathlib import Path

import numpy as np

from grids.entries.calibration import CalibrationFile, ModelError
from sweep.calibration.accuracy import accuracies
from sweep.calibration.cross_validation import fitted, left_out
from sweep.calibration.model_error import DEFAULT, model_error, residuals
from sweep.calibration.observations import Observations, observe
from sweep.calibration.posterior import machine
from sweep.engine.compile_cache import keep_programs
from sweep.measured.runs import read_runs


def calibrate(
    path: str | Path, *, system: str = "abci", cross_validation: bool = True
) -> CalibrationFile:
    """The parameters that a CSV file of measured runs tells, how sure they are, and how accurate.

    system: of rows that name none. Without cross-validation, the model's errors are assumed, and
    the accuracy is that of the fit. InputError tells file and line; RunError: there is no fit.
    """
    keep_programs()
    seen = observe(read_runs(Path(path)), system)
    found = machine(seen, np.ones(len(seen), bool), DEFAULT)
    left = left_out(seen) if cross_validation else None
    of_left = None if left is None else residuals(seen, left)
    error: ModelError = DEFAULT if of_left is None else model_error(of_left)
    accuracy = accuracies(residuals(seen, fitted(seen, found)), error)
    if of_left is not None:
        accuracy |= accuracies(of_left, error)
    return found.model_copy(
        update={
            "title": f"{seen.system}, calibrated from {len(seen)} measured runs",
            "source": (_sources(Path(path), seen),),
            "error": error,
            "accuracy": accuracy,
        }
    )


def _sources(path: Path, seen: Observations) -> str:
    """The file, and how many of its runs are from where."""
    counts = Counter(run.source for run in seen.runs if run.source)
    return ", ".join([path.name, *(f"{count} of {name}" for name, count in counts.items())])
