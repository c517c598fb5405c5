"""The measured convergence of catalogued models."""

from functools import cache
from pathlib import Path

from paradl.grids.convergence.entry import Convergence
from paradl.grids.convergence.fit import fit
from paradl.grids.convergence.points import MEASURED_AS, Series, is_same_data, read_points
from paradl.grids.reading.errors import InputError, shorten, suggest_name

EPOCHS = Path(__file__).parents[1] / "catalogue" / "measured" / "epochs.csv"


def find_convergence(model: str, dataset: str, target: str | None = None) -> Convergence | None:
    """Return the law of the longest measured series of a model and data set; None if there is none.

    target: None means any target. InputError: the target was not measured.
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
    # `max` takes the first of equally long series.
    return _fit(max(matches, key=lambda series: len(series.points))) if matches else None


def explain_missing(model: str, dataset: str) -> str:
    """Say why a pair has no law: no measurement, or only one batch."""
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


def list_known_pairs(model: str) -> str:
    """List the data sets on which a model's epochs are known; if there are none, all models'."""
    # A measured data set has the name of the first of the catalogue's with its samples.
    names = {measured: name for name, measured in reversed(MEASURED_AS.items())}
    pairs = {
        (series.model, names.get(series.dataset, series.dataset))
        for series in _read_catalogue()
        # A law needs two points, and steps alone are no epochs.
        if len(series.points) > 1 and any(point.epochs for point in series.points)
    }
    ours = {pair for pair in pairs if pair[0] == model}
    return ", ".join(f"{name} on {dataset}" for name, dataset in sorted(ours or pairs))


@cache
def _read_catalogue() -> tuple[Series, ...]:
    return read_points(EPOCHS)


@cache
def _fit(series: Series) -> Convergence:
    return fit(series)
