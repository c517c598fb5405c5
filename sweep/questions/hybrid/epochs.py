"""Epochs to the target by global batch: choose a measured series, and draw its epochs."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grids.convergence.catalogue import explain_missing, find_convergence
from grids.convergence.entry import Convergence
from grids.convergence.fit import fit
from grids.convergence.points import pick_series, read_points
from grids.convergence.table import interpolate_epochs
from grids.entries.names import list_names
from grids.library import find
from grids.reading.errors import InputError, shorten
from kernels.configuration.convergence import Law, count_epochs
from kernels.names.arrays import Floats


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
            advice="give measured ones: convergence='FILE.csv' (columns model, dataset, target, "
            "global_batch, epochs)",
        )
    return convergence


def _read_file(
    reference: str, model: str, dataset: str | None, target: str | None, samples: int | None
) -> Convergence:
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
    return find("dataset", dataset, Path()).samples if dataset in list_names("dataset") else None


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
