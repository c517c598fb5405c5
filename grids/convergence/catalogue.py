"""The measured convergence of the catalogue's models."""

from functools import cache
from pathlib import Path

from grids.convergence.entry import Convergence
from grids.convergence.fit import fit
from grids.convergence.points import Series, read_points
from grids.reading.errors import InputError, shorten, suggest_name

EPOCHS = Path(__file__).parents[1] / "catalogue" / "measured" / "epochs.csv"

# The data sets of the catalogue whose samples are those of measured ones, whatever the size of
# their images. MLPerf's CosmoFlow is of 128^3 alone.
MEASURED_AS = {
    "imagenet": "imagenet",
    "imagenet-226": "imagenet",
    "imagenet-299": "imagenet",
    "cosmoflow-128": "cosmoflow",
}


def find_convergence(model: str, dataset: str, target: str | None = None) -> Convergence | None:
    """The law of the longest measured series of a model and data set, None where there is none.

    target: None takes the longest whatever its target; InputError: one that nobody measured.
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
    """Why the catalogue has no law of a pair: nothing was measured, or one batch alone."""
    alone = [
        point.global_batch
        for series in _read_catalogue()
        if series.model == model and is_same_data(dataset, series.dataset)
        for point in series.points
    ]
    if not alone:
        return f"no epochs of {shorten(model)} on {shorten(dataset)} are known"
    return (
        f"no law follows from epochs of {shorten(model)} on {shorten(dataset)} at one global "
        f"batch, {alone[0]:,}"
    )


def is_same_data(dataset: str, measured: str) -> bool:
    """Whether epochs of the data set `measured` are those of a spec's."""
    return measured in (dataset, MEASURED_AS.get(dataset))


@cache
def _read_catalogue() -> tuple[Series, ...]:
    return read_points(EPOCHS)


@cache
def _fit(series: Series) -> Convergence:
    return fit(series)
