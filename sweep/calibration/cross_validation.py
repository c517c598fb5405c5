"""Cross-validation: every run predicted by a calibration that saw neither it nor its like."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import jax
import numpy as np
from numpy.typing import NDArray

from grids.entries.calibration import CalibrationFile, ModelError
from grids.inputs.calibrated import Calibrated
from kernels.arrays import Cells
from kernels.calibration import Calibration
from kernels.uncertainty import Uncertainty
from sweep.calibration.observations import Inputs, Mask, Observations
from sweep.calibration.posterior import machine

# What is left out at a time: all runs that have these columns in common.
SCHEMES = {
    "configuration": ("model", "dataset", "strategy", "p"),
    "scale": ("p",),
    "series": ("model", "dataset", "strategy"),
    "model": ("model",),
}
LARGEST, ALL_BUT_ONE = "largest scales", "all but one scale"
SCALES = 3  # of a series with at least so many scales, one part in so many are its largest

# Errors of size one; a doubt is linear in their squares.
UNSEEN = ModelError(serial=1, group=1, reduce=1, exchange=1, unseen=1, distance=0)
DISTANT = UNSEEN.model_copy(update={"unseen": 0, "distance": 1})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Unseen:
    """Runs [..., run], each with the calibration that did not see it.

    doubt: with errors of 1, not widened; unseen, away: what `ModelError`'s widen it by.
    """

    inputs: Inputs
    known: Calibration
    doubt: Uncertainty
    unseen: Cells
    away: Cells


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The runs that each scheme left out, one scheme after the other. rows: which runs."""

    schemes: NDArray[np.str_]
    rows: NDArray[np.int64]
    cases: Unseen


def schemes(seen: Observations) -> dict[str, list[Mask]]:
    """The runs to leave out at a time; no scheme that would leave none to learn from."""
    found = {name: _alike(seen.labels(*columns)) for name, columns in SCHEMES.items()}
    found[LARGEST] = [_largest(seen)]
    found[ALL_BUT_ONE] = list(_all_but_one(seen))
    return {
        name: kept
        for name, folds in found.items()
        if (kept := [each for each in folds if each.any() and not each.all()])
    }


def left_out(seen: Observations) -> LeftOut | None:
    """Predictions of all that is left out; None where there are too few runs to leave any out."""
    folds = [(name, held) for name, some in schemes(seen).items() for held in some]
    if not folds:
        return None
    cases = [_of_fold(seen, held) for _, held in folds]
    rows = [np.flatnonzero(held) for _, held in folds]
    names = np.repeat([name for name, _ in folds], list(map(len, rows)))
    return LeftOut(names, np.concatenate(rows), _together(list(chain(*cases))))


def fitted(seen: Observations, found: CalibrationFile) -> LeftOut:
    """The same of a calibration that saw all runs, to tell how well it fits."""
    rows = np.arange(len(seen))
    cases = list(_cases(seen, found, rows))
    return LeftOut(np.repeat("fit", rows.size), rows, _together(cases))


def _of_fold(seen: Observations, held: Mask) -> list[Unseen]:
    found = machine(seen, ~held, UNSEEN)
    return list(_cases(seen, found, np.flatnonzero(held)))


def _together(cases: list[Unseen]) -> Unseen:
    stacked: Unseen = jax.tree.map(lambda *each: np.stack(each, axis=-1), *cases)
    return stacked


def _alike(labels: list[tuple[object, ...]]) -> list[Mask]:
    return [np.array([each == label for each in labels]) for label in dict.fromkeys(labels)]


def _largest(seen: Observations) -> Mask:
    """The largest scales of every series that has several."""
    held = np.zeros(len(seen), bool)
    for own, scales in _series(seen):
        at = np.unique(scales[own])
        held |= own & np.isin(scales, at[at.size - at.size // SCALES :])
    return held


def _all_but_one(seen: Observations) -> Iterator[Mask]:
    """Of each series that has several scales all but the one in the middle."""
    for own, scales in _series(seen):
        at = np.unique(scales[own])
        if at.size >= SCALES:
            yield own & (scales != at[at.size // 2])


def _series(seen: Observations) -> Iterator[tuple[Mask, NDArray[np.int64]]]:
    """Each series' runs, and the number of PEs of all runs."""
    scales = np.array([each.p for each in seen.runs])
    for own in _alike(seen.labels(*SCHEMES["series"])):
        yield own, scales


def _cases(seen: Observations, found: CalibrationFile, rows: NDArray[np.int64]) -> Iterator[Unseen]:
    factors = [
        found.serial[run.model].factor if run.model in found.serial else 1.0 for run in seen.runs
    ]
    slower = seen.inputs.slower(np.array(factors))
    for row in rows.tolist():
        inputs: Inputs = jax.tree.map(lambda leaf, row=row: leaf[..., row], slower)
        doubt, distant = (_doubt(seen, found, row, error) for error in (UNSEEN, DISTANT))
        yield Unseen(
            inputs=inputs,
            known=jax.tree.map(np.asarray, found.make_calibration()),
            doubt=doubt,
            unseen=doubt.widening - 1,
            away=distant.widening - 1,
        )


def _doubt(seen: Observations, found: CalibrationFile, row: int, error: ModelError) -> Uncertainty:
    run = seen.runs[row]
    file = found.model_copy(update={"error": error})
    calibrated = Calibrated(file, run.model, run.dataset, bool(seen.profiled[row]))
    return calibrated.doubt(seen.strategies[row], np.asarray(float(run.p)))
