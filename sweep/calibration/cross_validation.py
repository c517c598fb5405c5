"""Cross-validation: every run predicted by a calibration that saw neither it nor similar ones."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import jax
import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.calibration import CalibrationFile, ModelError
from paradl.grids.inputs.calibrated import Calibrated
from paradl.grids.inputs.uncertainty import Unknown, build_uncertainty
from paradl.grids.inputs.values import Settings, Values
from paradl.kernels.compiled import fetch
from paradl.kernels.configuration.case import Case, Uncertainty
from paradl.kernels.derivatives.density import apply_parameters
from paradl.sweep.calibration.fit import calibrate_machine
from paradl.sweep.calibration.observations import Mask, Observations
from paradl.sweep.calibration.residuals import HeldOutRun

# As in `FittedSeries`: a fit that saw `data+filter:group=2` has seen `data+filter:group=4`.
SERIES = ("model", "dataset", "base")
# Runs that agree in these columns are left out together.
SCHEMES = {
    "configuration": ("model", "dataset", "strategy", "p"),
    "scale": ("p",),
    "series": SERIES,
    "model": ("model",),
    "strategy": ("base",),
}
FITTED = "fit"  # nothing is left out
LARGEST, ALL_BUT_ONE = "largest scales", "all but one scale"
SCALES = 3  # scales that a series needs for both; the largest third counts as its largest scales

# Errors of size one: an uncertainty's variance is linear in the squares of the errors.
UNSEEN = ModelError(serial=1, group=1, reduce=1, exchange=1, unseen=1, distance=0)
DISTANT = UNSEEN.model_copy(update={"unseen": 0, "distance": 1})


def list_folds(observations: Observations) -> dict[str, list[Mask]]:
    """Return the runs to leave out together, by scheme, if others remain to fit."""
    folds_of = {
        name: _group_alike(observations.labels(*columns)) for name, columns in SCHEMES.items()
    }
    # Predicting more PEs than were seen is harder: accuracy of ABCI's totals is then 91.8 %, and
    # 93.6 % for left-out configurations (`paradl calibrate grids/catalogue/measured/abci.csv`,
    # docs/accuracy.md).
    scales = np.array([run.p for run in observations.runs])
    largest = np.zeros(len(observations), bool)
    all_but_one = []
    for series in _group_alike(observations.labels(*SERIES)):
        at = np.unique(scales[series])
        largest |= series & np.isin(scales, at[at.size - at.size // SCALES :])
        if at.size >= SCALES:  # all scales but the middle one
            all_but_one.append(series & (scales != at[at.size // 2]))
    folds_of[LARGEST], folds_of[ALL_BUT_ONE] = [largest], all_but_one
    return {
        name: kept
        for name, folds in folds_of.items()
        if (kept := [fold for fold in folds if fold.any() and not fold.all()])
    }


def leave_out(
    observations: Observations, schemes: Collection[str] = (*SCHEMES, LARGEST, ALL_BUT_ONE)
) -> list[HeldOutRun]:
    """Predict all runs that these schemes leave out; empty if there are too few runs."""
    predictions: list[HeldOutRun] = []
    # Schemes may leave the same runs out, as series and strategies of a single model do: 25 fits
    # for 29 folds of twelve of ABCI's runs, 6.8 -> 6.0 s of CPU (four paired runs, 2026-11).
    files: dict[bytes, CalibrationFile] = {}
    for scheme, folds in list_folds(observations).items():
        for held in folds if scheme in schemes else ():
            name = held.tobytes()
            if name not in files:
                # Fewer starts than for the calibration itself, since every fold needs a fit.
                files[name] = calibrate_machine(observations, ~held, UNSEEN, starts=1)
            predictions += _predict(observations, files[name], scheme, np.flatnonzero(held))
    return predictions


def predict_fitted(observations: Observations, file: CalibrationFile) -> list[HeldOutRun]:
    """Predict all runs by a calibration that saw them, to rate the fit."""
    return list(_predict(observations, file, FITTED, np.arange(len(observations))))


def _group_alike(labels: list[tuple[object, ...]]) -> list[Mask]:
    return [np.array([other == label for other in labels]) for label in dict.fromkeys(labels)]


def _predict(
    observations: Observations, file: CalibrationFile, scheme: str, rows: NDArray[np.int64]
) -> Iterator[HeldOutRun]:
    factors = np.array(
        [
            file.serial_time(run.model, bool(profiled)).factor
            for run, profiled in zip(observations.runs, observations.profiled, strict=True)
        ]
    )
    parameters = {name: np.asarray(parameter.value) for name, parameter in file.parameters.items()}
    moved = fetch(apply_parameters(observations.case, observations.layers, parameters, factors))
    for row in rows.tolist():
        # Runs lie along the last dimension; parameters are scalars, the same for all runs.
        case: Case = jax.tree.map(
            lambda leaf, row=row: leaf[..., row] if np.ndim(leaf) else leaf, moved
        )
        uncertainty, distant = (
            _find_uncertainty(observations, file, row, error) for error in (UNSEEN, DISTANT)
        )
        yield HeldOutRun(
            scheme,
            row,
            case=replace(case, uncertainty=uncertainty),
            unseen=uncertainty.widening - 1,
            away=distant.widening - 1,
            is_new=observations.runs[row].model not in file.serial,
        )


def _find_uncertainty(
    observations: Observations, file: CalibrationFile, row: int, error: ModelError
) -> Uncertainty:
    """Return the uncertainty of a run, given the model's errors."""
    run, profiled = observations.runs[row], bool(observations.profiled[row])
    assumed = file.model_copy(update={"error": error})
    architecture = observations.architectures[run.model]
    calibrated = Calibrated(assumed, run.model, run.dataset, profiled, architecture=architecture)
    unknown = Unknown(observations.system, profiled, calibrated)
    p, nothing = np.asarray(float(run.p)), Values({}, Settings({}), leading=0)
    return build_uncertainty(unknown, observations.strategies[row], nothing, p)
