"""Calibrate: fit a machine to a file of measured runs, as `paradl calibrate` does."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grids.entries.calibration import ASSUMED, CalibrationFile
from sweep.calibration.cross_validation import FITTED, leave_out, predict_fitted
from sweep.calibration.layouts import is_layout, observe_layouts
from sweep.calibration.model_error import find_model_error, find_residuals, rate_schemes
from sweep.calibration.observations import Observations, expect_one_system, observe
from sweep.calibration.posterior import calibrate_machine
from sweep.engine.compile_cache import keep_programs
from sweep.measured.runs import MeasuredRun, read_runs


def calibrate(
    path: str | Path, *, system: str = "abci", cross_validation: bool = True
) -> CalibrationFile:
    """Return parameters fitted to a CSV file of runs, with their uncertainty and accuracy.

    Runs of transformers' layouts give one factor on their times, other runs the machine's
    parameters. system: of rows that name none. Without cross-validation, the model's errors are
    assumed, and the accuracy is that of the fit. InputError: a mistake in the file, with its line.
    RunError: there is no fit.
    """
    keep_programs()
    runs = read_runs(Path(path))
    layouts = [run for run in runs if is_layout(run)]
    others = [run for run in runs if not is_layout(run)]
    observed = observe_layouts(layouts, system) if layouts else None
    if not others:
        assert observed
        file = observed.calibrate()
    else:
        observations = observe(others, system)
        file = _fit(observations, cross_validation)
        if observed:
            names = {others[0]: file.name, layouts[0]: observed.system.name}
            first = [run for run in runs if run in names]  # in the order of the file
            expect_one_system(first, [names[run] for run in first])
            file = observed.add_to(file)
    return file.model_copy(
        update={
            "title": f"{file.name}, calibrated from {len(runs)} measured runs",
            "source": (_name_sources(Path(path), runs),),
        }
    )


def _fit(observations: Observations, cross_validation: bool) -> CalibrationFile:
    """Fit the machine's parameters to runs of other strategies than layouts."""
    file = calibrate_machine(observations, np.ones(len(observations), bool), ASSUMED)
    left = leave_out(observations) if cross_validation else []
    residuals = find_residuals(observations, [*predict_fitted(observations, file), *left])
    of_left = residuals.select(residuals.schemes != FITTED)
    error = find_model_error(of_left) if left else ASSUMED
    return file.model_copy(
        update={"error": error, "accuracy": rate_schemes(residuals, error)},
    )


def _name_sources(path: Path, runs: Sequence[MeasuredRun]) -> str:
    """Name the file, and count its runs by source."""
    counts = Counter(run.source for run in runs if run.source)
    return ", ".join([path.name, *(f"{count} of {name}" for name, count in counts.items())])
