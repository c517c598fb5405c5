"""Epochs to the target by global batch, and joint draws of them, of the machine and of errors.

Draws are the same for every question and shared by all contenders, so ratios are known better than
times. Draw 0 has the expected values.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paradl.grids.convergence.catalogue import explain_missing, find_convergence, list_known_pairs
from paradl.grids.convergence.entry import Convergence, interpolate_epochs
from paradl.grids.convergence.fit import fit
from paradl.grids.convergence.points import pick_series, read_points
from paradl.grids.entries.names import is_path, list_names, split_reference
from paradl.grids.inputs.draws import draw_normals
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.configuration.convergence import Law, count_epochs
from paradl.kernels.names.arrays import Floats

# With 512 draws, chances vary by 1.4 percentage points (standard deviation) between sets of draws,
# 0.9 to 2.1 over nine questions; with 32 draws by 20. A question takes 3.0 s of CPU.
COUNT = 512
# Every question draws errors for this many, so another hybrid does not move the others' intervals.
MOST_CONTENDERS = 14


@dataclass(frozen=True)
class Draws:
    """Standard normal numbers; the first row is 0.

    laws [draw, 2]: for `Convergence.draw_laws`. stays [draw]: whether epochs are constant below the
    smallest measured batch; False: they follow the law, as in the first row. errors [draw,
    contender]: the oracle's own errors, one per contender, whatever its PE count.
    """

    laws: Floats
    stays: NDArray[np.bool_]
    errors: Floats


def make_draws() -> Draws:
    """Make the draws of all questions."""
    contenders = [f"contender {number}" for number in range(MOST_CONTENDERS)]
    names = ("fewest_epochs", "critical_batch", "stays", *contenders)
    drawn = draw_normals(names, COUNT)
    normals = np.concatenate([np.zeros((1, len(names))), drawn])
    # No measurement favours one of the two forms, so each gets half of the draws.
    return Draws(laws=normals[:, :2], stays=normals[:, 2] > 0, errors=normals[:, 3:])


def choose_convergence(
    reference: str | Path,
    model: str,
    dataset: str | None,
    target: str | None,
    samples: int | None = None,
) -> Convergence:
    """Find the convergence law of a model, in a user's file or in the catalogue (auto).

    dataset: None takes the only one in the file. samples: per epoch; None if unknown.
    """
    if str(reference) != "auto":
        return _read_file(str(reference), model, dataset, target, samples)
    convergence = None if dataset is None else find_convergence(model, dataset, target)
    if convergence is None:
        raise InputError(
            f"the epochs of {shorten(model)} without a data set are not known"
            if dataset is None
            else explain_missing(model, dataset),
            where="model",
            advice=f"known: {list_known_pairs(model)}; give measured ones: convergence='FILE.csv' "
            "(columns model, dataset, target, global_batch, epochs)",
        )
    return convergence


def _read_file(
    reference: str, model: str, dataset: str | None, target: str | None, samples: int | None
) -> Convergence:
    if not (reference.endswith(".csv") or is_path(reference)):
        raise InputError(
            f"expected a file of epochs, got {shorten(reference)}",
            where="convergence",
            advice="write auto, FILE.csv or FILE.yaml",
        )
    if not reference.endswith(".csv"):
        entry = find("convergence", reference, Path())
        if entry.model != model:
            raise InputError(
                f"expected epochs of {shorten(model)}, got those of {shorten(entry.model)}",
                where=reference,
            )
        return entry
    path = Path(reference)
    series = pick_series(read_points(path), path, model, dataset, target)
    return fit(series, samples or count_samples(dataset or series.dataset))


def count_samples(dataset: str) -> int | None:
    """Return samples per epoch of a data set; None if the catalogue does not have it."""
    name, _ = split_reference(dataset)
    return find("dataset", dataset, Path()).samples if name in list_names("dataset") else None


def draw_epochs(
    convergence: Convergence, batches: Floats, normals: Floats, stays: NDArray[np.bool_]
) -> Floats:
    """Return epochs [draw, batch] at batches [batch]; infinite beyond the largest that converges.

    Measured points are interpolated (`interpolate_epochs`), and vary over draws as the law does.
    stays [draw]: whether batches below the smallest measured one take as many epochs as it does.
    """
    laws = convergence.draw_laws(normals)
    drawn = Law(laws.epochs_min[:, None], laws.critical_batch[:, None])
    counted = np.where(
        stays[:, None], np.maximum(batches, float(convergence.smallest or 0)), batches
    )
    moved = count_epochs(drawn, counted) / count_epochs(convergence.law, counted)
    epochs = interpolate_epochs(convergence, counted) * moved
    largest = convergence.converges_to or np.inf
    return np.where(batches > largest, np.inf, epochs)
