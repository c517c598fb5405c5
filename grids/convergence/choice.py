"""The choice of one series of a file by model, data set and target."""

from collections.abc import Iterable
from pathlib import Path

from grids.convergence.catalogue import MEASURED_AS
from grids.convergence.points import Series
from grids.reading.errors import InputError, shorten


def pick_series(
    series: Iterable[Series], path: Path, model: str, dataset: str | None, target: str | None
) -> Series:
    """The only series of `path` with these names; InputError where there are several, or none."""
    ours = _pick("model", model, series, path)
    if dataset is not None:
        measured = MEASURED_AS.get(dataset, dataset)
        named = any(candidate.dataset == dataset for candidate in ours)
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
    matches = tuple(candidate for candidate in listed if getattr(candidate, kind) == name)
    if not matches:
        names = {str(getattr(candidate, kind)) for candidate in listed}
        raise InputError.unknown(kind, name, names, where=str(path))
    return matches


def _tell_apart(series: tuple[Series, ...]) -> str:
    """Advice: the first label by which several series differ, and its values."""
    for kind, option in (("target", "target"), ("dataset", "data set")):
        names = sorted({getattr(candidate, kind) for candidate in series})
        if len(names) > 1:
            return f"choose a {option}: {', '.join(map(shorten, names[:5]))}"
    return "keep the rows of one source and optimizer"
