"""Epochs by global batch: which measured series is taken, and its epochs with their draws."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grids.convergence.catalogue import explain_missing, find_convergence
from grids.convergence.entry import Convergence
from grids.convergence.fit import fit
from grids.convergence.points import pick_series, read_points
from grids.convergence.table import interpolate_epochs
from grids.library import find
from grids.models.layers import Floats
from grids.names import list_names
from grids.reading.errors import InputError, shorten
from kernels.configuration.convergence import Law, count_epochs


def choose_convergence(
    reference: str | Path,
    model: str,
    dataset: str | None,
    target: str | None,
    samples: int | None = None,
) -> Convergence:
    """The law of a model: from a user's file, or from the catalogue (auto).

    dataset: None takes the file's only one. samples: of an epoch; None where unknown.
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
    """Samples of an epoch of a data set in the catalogue; None: it has no such data set."""
    return find("dataset", dataset, Path()).samples if dataset in list_names("dataset") else None


def draw_epochs(
    convergence: Convergence, batches: Floats, normals: Floats, stays: NDArray[np.bool_]
) -> Floats:
    """Epochs [draw, batch] at batches [batch]; infinite beyond the largest that converges.

    Measured points count as they are (`interpolate_epochs`), and move with draws as the law does.
    stays [draw]: whether batches below the smallest measured one need as many epochs as it does.
    """
    laws = convergence.draw_laws(normals)
    drawn = Law(laws.epochs_min[:, None], laws.critical_batch[:, None])
    counted = np.where(
        stays[:, None], np.maximum(batches, float(convergence.smallest or 0)), batches
    )
    moved = count_epochs(drawn, counted) / count_epochs(convergence.law, counted)
    epochs = interpolate_epochs(convergence, counted) * moved
    wall = convergence.converges_to or np.inf
    return np.where(batches > wall, np.inf, epochs)
