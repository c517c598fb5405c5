"""Cross-validation: every run predicted by a calibration that saw neither it nor its like."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import jax
import numpy as np
from numpy.typing import NDArray

from grids.entries.calibration import CalibrationFile, ModelError
from grids.inputs.calibrated import Calibrated
from grids.inputs.uncertainty import Unknown, build_uncertainty
from grids.inputs.values import Settings, Values
from grids.models.layers import Floats
from kernels.arrays import Cells
from kernels.compiled import compiled, fetch
from kernels.configuration.case import Case, Uncertainty
from sweep.calibration.layer_work import LayerWork
from sweep.calibration.observations import Mask, Observations, apply_parameters
from sweep.calibration.posterior import calibrate_machine

SERIES = ("model", "dataset", "strategy")
# What is left out at a time: all runs that have these columns in common.
SCHEMES = {
    "configuration": (*SERIES, "p"),
    "scale": ("p",),
    "series": SERIES,
    "model": ("model",),
    "strategy": ("strategy",),
}
# Those of which each run leaves its neighbours in: they flatter.
NEAR = ("configuration", "scale")
FITTED = "fit"  # where none is left out
LARGEST, ALL_BUT_ONE = "largest scales", "all but one scale"
SCALES = 3  # of a series with at least so many scales, one part in so many are its largest

# Errors of size one; an uncertainty is linear in their squares.
UNSEEN = ModelError(serial=1, group=1, reduce=1, exchange=1, unseen=1, distance=0)
DISTANT = UNSEEN.model_copy(update={"unseen": 0, "distance": 1})


@dataclass(frozen=True, eq=False)
class HeldOutRun:
    """A run, predicted by a calibration that did not see it. row: which run.

    case: its uncertainty has errors of 1, not widened. unseen, away: what `ModelError`'s widen
    these by.
    """

    scheme: str
    row: int
    case: Case
    unseen: Cells
    away: Cells


def list_folds(observations: Observations) -> dict[str, list[Mask]]:
    """The runs to leave out at a time, by scheme; no scheme that would leave none to learn from."""
    folds_of = {
        name: _group_alike(observations.labels(*columns)) for name, columns in SCHEMES.items()
    }
    # More PEs than were seen: ABCI's totals are then met to 91.8 %, those of any left-out
    # configuration to 93.6 % (`paradl calibrate grids/catalogue/measured/abci.csv`,
    # docs/accuracy.md).
    folds_of[LARGEST] = [_hold_largest(observations)]
    folds_of[ALL_BUT_ONE] = list(_hold_all_but_one(observations))
    return {
        name: kept
        for name, folds in folds_of.items()
        if (kept := [fold for fold in folds if fold.any() and not fold.all()])
    }


def leave_out(
    observations: Observations,
    schemes: Collection[str] = (*SCHEMES, LARGEST, ALL_BUT_ONE),
    frozen: Mapping[str, float] = {},
) -> list[HeldOutRun]:
    """Predictions of all that these schemes leave out; none where runs are too few for any.

    frozen: as `fit` takes them.
    """
    predictions: list[HeldOutRun] = []
    for scheme, folds in list_folds(observations).items():
        for held in folds if scheme in schemes else ():
            # Sought from fewer places than the calibration itself: there are as many fits as folds.
            file = calibrate_machine(observations, ~held, UNSEEN, starts=1, frozen=frozen)
            predictions += _predict(observations, file, scheme, np.flatnonzero(held))
    return predictions


def predict_fitted(observations: Observations, file: CalibrationFile) -> list[HeldOutRun]:
    """Predictions by a calibration that saw all runs, to tell how well it fits."""
    return list(_predict(observations, file, FITTED, np.arange(len(observations))))


def _group_alike(labels: list[tuple[object, ...]]) -> list[Mask]:
    return [np.array([other == label for other in labels]) for label in dict.fromkeys(labels)]


def _hold_largest(observations: Observations) -> Mask:
    """The largest scales of every series that has several."""
    held = np.zeros(len(observations), bool)
    for series, scales in _list_series(observations):
        at = np.unique(scales[series])
        held |= series & np.isin(scales, at[at.size - at.size // SCALES :])
    return held


def _hold_all_but_one(observations: Observations) -> Iterator[Mask]:
    """All but the middle scale of each series that has several, a series at a time."""
    for series, scales in _list_series(observations):
        at = np.unique(scales[series])
        if at.size >= SCALES:
            yield series & (scales != at[at.size // 2])


def _list_series(observations: Observations) -> Iterator[tuple[Mask, NDArray[np.int64]]]:
    """Each series' runs, and the number of PEs of all runs."""
    scales = np.array([run.p for run in observations.runs])
    for series in _group_alike(observations.labels(*SERIES)):
        yield series, scales


def _predict(
    observations: Observations, file: CalibrationFile, scheme: str, rows: NDArray[np.int64]
) -> Iterator[HeldOutRun]:
    factors = [
        file.serial_time(run.model, bool(profiled)).factor
        for run, profiled in zip(observations.runs, observations.profiled, strict=True)
    ]
    parameters = {name: np.asarray(parameter.value) for name, parameter in file.parameters.items()}
    moved = fetch(_apply(observations.case, observations.layers, parameters, np.array(factors)))
    for row in rows.tolist():
        case: Case = jax.tree.map(lambda leaf, row=row: _take_run(leaf, row), moved)
        uncertainty, distant = (
            _find_uncertainty(observations, file, row, error) for error in (UNSEEN, DISTANT)
        )
        yield HeldOutRun(
            scheme,
            row,
            case=replace(case, uncertainty=uncertainty),
            unseen=uncertainty.widening - 1,
            away=distant.widening - 1,
        )


def _take_run(leaf: Floats, row: int) -> Floats:
    """A run's own of what has runs along its last dimension; a parameter is the same for all."""
    return leaf[..., row] if np.ndim(leaf) else leaf


@compiled(numpy=True)
def _apply(case: Case, layers: LayerWork, parameters: dict[str, Floats], factors: Floats) -> Case:
    return apply_parameters(case, layers, parameters, factors)


def _find_uncertainty(
    observations: Observations, file: CalibrationFile, row: int, error: ModelError
) -> Uncertainty:
    """The uncertainty of a run, were the model's errors those."""
    run, profiled = observations.runs[row], bool(observations.profiled[row])
    assumed = file.model_copy(update={"error": error})
    architecture = observations.architectures[run.model]
    calibrated = Calibrated(assumed, run.model, run.dataset, profiled, architecture=architecture)
    unknown = Unknown(observations.system, profiled, calibrated)
    p, nothing = np.asarray(float(run.p)), Values({}, Settings({}), leading=0)
    return build_uncertainty(unknown, observations.strategies[row], nothing, p)
