"""Convergence laws for the models and data sets of a spec."""

import os
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from grids.convergence.catalogue import explain_missing, find_convergence
from grids.convergence.entry import Convergence, Pair
from grids.convergence.fit import fit
from grids.convergence.points import is_same_data, pick_series, read_points
from grids.entries.datasets import Dataset
from grids.library import Reference, find
from grids.reading.errors import InputError, shorten


def look_up_convergences(
    references: tuple[Reference, ...],
    target: str | None,
    models: Iterable[str],
    datasets: Iterable[Dataset],
    base: Path,
) -> dict[Pair, Convergence]:
    """Return the law of each model and data set that has one.

    InputError: a file or an entry fits no pair, or the target was not measured.
    """
    if references == ("none",):
        return {}
    pairs = list(product(models, datasets))
    laws: dict[Pair, Convergence] = {}
    for reference in references:
        laws |= _look_up(reference, target, pairs, base)
    if not laws:
        raise InputError(
            _explain_none(pairs, references),
            advice="give measured ones, 'convergence: ./mine.csv' (docs/convergence.md), or 'none'",
        )
    return laws


def _explain_none(pairs: list[tuple[str, Dataset]], references: tuple[Reference, ...]) -> str:
    """Say why no pair has epochs; for a single pair, the catalogue's reason."""
    if len(pairs) == 1 and references == ("auto",):
        [(model, data)] = pairs
        return explain_missing(model, data.name)
    names = ", ".join(f"{model} on {data.name}" for model, data in pairs)
    return f"the epochs of {shorten(names)} are not known"


def _look_up(
    reference: Reference, target: str | None, pairs: list[tuple[str, Dataset]], base: Path
) -> dict[Pair, Convergence]:
    if reference == "auto":
        shipped = {
            (model, data.name): find_convergence(model, data.name, target) for model, data in pairs
        }
        return {pair: law for pair, law in shipped.items() if law is not None}
    if isinstance(reference, str) and reference.endswith(".csv"):
        # Unlike a shell, Path does not expand "~". `base` does not affect absolute paths.
        return _fit_file(base / os.path.expanduser(reference), target, pairs)
    entry = find("convergence", reference, base)
    if target is not None and target != entry.target:
        raise InputError(
            f"{shorten(entry.name)} is of target {shorten(entry.target)}, got {shorten(target)}",
            advice="leave the target out",
        )
    return {
        (model, data.name): entry
        for model, data in pairs
        if model == entry.model and is_same_data(data.name, entry.dataset)
    }


def _fit_file(
    path: Path, target: str | None, pairs: list[tuple[str, Dataset]]
) -> dict[Pair, Convergence]:
    """Fit the series of a file, one per pair that it covers."""
    series = read_points(path)
    known = {(candidate.model, candidate.dataset) for candidate in series}
    return {
        (model, data.name): fit(pick_series(series, path, model, data.name, target), data.samples)
        for model, data in pairs
        if any(model == name and is_same_data(data.name, measured) for name, measured in known)
    }
