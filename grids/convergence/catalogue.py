"""The measured convergence of the catalogue's models."""

from functools import cache
from pathlib import Path

from grids.convergence.entry import Convergence
from grids.convergence.fit import fit
from grids.convergence.points import Series, is_same_data, read_points
from grids.reading.errors import InputError, shorten, suggest_name

EPOCHS = Path(__file__).parents[1] / "catalogue" / "measured" / "epochs.csv"


def find_convergence(model: str, dataset: str, target: str | None = None) -> Convergence | None:
    """The law of the longest measured series of a model and data set; None where there is none.

    target: None takes the longest of all targets. InputError where nobody measured the target.
    """
    ours = [
        series
        for series in _read_catalogue()
        if len(series.points) > 1  # a law needs two
        and series.model == model
        and is_same_data(dataset, series.dataset)
    ]
    targets = {series.target for series in ours}
    if targets and target is not None and target not in targets:
        raise InputError(
            f"unknown target {shorten(target)} of {shorten(model)} on {shorten(dataset)}",
            advice=suggest_name(target, targets),
        )
    matches = [series for series in ours if target in (None, series.target)]
    # The first of several as long.
    return _fit(max(matches, key=lambda series: len(series.points))) if matches else None


def explain_missing(model: str, dataset: str) -> str:
    """The reason why a pair has no law: nothing was measured, or one batch alone."""
    alone = [
        point.global_batch
        for series in _read_catalogue()
        if series.model == model and is_same_data(dataset, series.dataset)
        for point in series.points
    ]
    if not alone:
        return f"the epochs of {shorten(model)} on {shorten(dataset)} are not known"
    return (
        f"no law follows from the epochs of {shorten(model)} on {shorten(dataset)}, known at one "
        f"global batch, {alone[0]:,}"
    )


@cache
def _read_catalogue() -> tuple[Series, ...]:
    return read_points(EPOCHS)


@cache
def _fit(series: Series) -> Convergence:
    return fit(series)
