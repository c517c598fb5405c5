"""Epochs of each global batch: which measured series counts, and what it says with its draws."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from grids.convergence.catalogue import MEASURED_AS, find_convergence
from grids.convergence.entry import Convergence
from grids.convergence.fit import fit
from grids.convergence.points import Series, read_points
from grids.convergence.table import interpolate_epochs
from grids.library import find, list_names
from grids.models.layers import Floats
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.convergence import Law, count_epochs


def choose_convergence(
    path: Path | None,
    model: str,
    dataset: str | None,
    target: str | None,
    samples: int | None = None,
) -> Convergence:
    """The convergence of a model: of a user's file, or of the catalogue where there is none.

    dataset: None takes the file's only one. samples: of an epoch; None where they are not known.
    """
    if path is not None:
        series = _pick_series(path, model, dataset, target)
        return fit(series, samples or count_samples(dataset or series.dataset))
    convergence = None if dataset is None else find_convergence(model, dataset, target)
    if convergence is None:
        where = "without a --dataset" if dataset is None else f"on {shorten(dataset)}"
        raise InputError(
            f"no epochs of {shorten(model)} {where} are known",
            where="--model",
            advice="give measured ones: --epochs FILE.csv (columns model, dataset, target, "
            "global_batch, epochs)",
        )
    return convergence


def _pick_series(path: Path, model: str, dataset: str | None, target: str | None) -> Series:
    """The only series of a file that the names choose."""
    ours = _pick("model", model, read_points(path), path)
    if dataset is not None:
        measured = MEASURED_AS.get(dataset, dataset)
        named = any(each.dataset == dataset for each in ours)
        ours = _pick("dataset", dataset if named else measured, ours, path)
    if target is not None:
        ours = _pick("target", target, ours, path)
    if len(ours) > 1:
        raise InputError(
            f"{len(ours)} series of {shorten(model)}: expected one",
            where=str(path),
            advice=_tell_apart(ours),
        )
    return ours[0]


def _pick(kind: str, name: str, series: Iterable[Series], path: Path) -> tuple[Series, ...]:
    """The series of that model, dataset or target; InputError where there are none."""
    listed = tuple(series)
    matches = tuple(each for each in listed if getattr(each, kind) == name)
    if not matches:
        names = {str(getattr(each, kind)) for each in listed}
        raise InputError(
            f"unknown {kind} {shorten(name)}", where=str(path), advice=suggest_name(name, names)
        )
    return matches


def _tell_apart(series: tuple[Series, ...]) -> str:
    """Advice: the first label by which several series differ, and its values."""
    for kind, option in (("target", "--target"), ("dataset", "--dataset")):
        names = sorted({getattr(each, kind) for each in series})
        if len(names) > 1:
            return f"choose by {option}: {', '.join(map(shorten, names[:5]))}"
    return "keep the rows of one source and optimizer"


def count_samples(dataset: str) -> int | None:
    """Samples of an epoch of one of the catalogue's data sets, None of any other."""
    return find("dataset", dataset, Path()).samples if dataset in list_names("dataset") else None


def draw_epochs(convergence: Convergence, batches: Floats, normals: Floats) -> Floats:
    """Epochs [draw, batch] at batches [batch]; infinite beyond the largest that converges.

    Measured points count as they are (`interpolate_epochs`), and move with draws as the law does.
    """
    laws = convergence.draw_laws(normals)
    drawn = Law(laws.epochs_min[:, None], laws.critical_batch[:, None])
    moved = count_epochs(drawn, batches) / count_epochs(convergence.law, batches)
    epochs = interpolate_epochs(convergence, batches) * moved
    wall = convergence.converges_to or np.inf
    return np.where(batches > wall, np.inf, epochs)
