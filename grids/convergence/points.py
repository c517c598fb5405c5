"""Measured epochs to a target, from the catalogue or a user's CSV file.

A row is a global batch and the epochs, or optimizer steps, until the target was first reached;
`never` if it was not. Columns are described in grids/catalogue/measured/README.md.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grids.entries.entry import MOST_NAME
from grids.reading.csvfile import Record, read_records
from grids.reading.errors import InputError, shorten
from grids.reading.units import parse_quantity

REQUIRED = ("model", "dataset", "target", "global_batch")
OPTIONAL = ("epochs", "steps", "source", "optimizer", "note")
NEVER = "never"

# Catalogued data sets, and the measured data set with the same samples, whatever the image size.
# MLPerf's CosmoFlow only has 128^3.
MEASURED_AS = {
    "imagenet": "imagenet",
    "imagenet-226": "imagenet",
    "imagenet-299": "imagenet",
    "cosmoflow-128": "cosmoflow",
}

MOST_BATCH = 2**53  # float64 is exact up to here
MOST_EPOCHS = 1e9
MOST_STEPS = 1e15
MOST_POINTS = 1000  # of a series; fitting them takes 0.2 s and 130 MB


@dataclass(frozen=True)
class MeasuredPoint:
    """One row: epochs, steps or both until the target was reached; neither if it never was."""

    where: str  # file and line
    global_batch: int
    epochs: float | None
    steps: float | None

    @property
    def converged(self) -> bool:
        """True if the target was reached."""
        return self.epochs is not None or self.steps is not None


@dataclass(frozen=True)
class Series:
    """Rows for one law: same source, model, data set, target and optimizer.

    Points are sorted by global batch.
    """

    source: str
    model: str
    dataset: str
    target: str
    optimizer: str
    points: tuple[MeasuredPoint, ...]


def read_points(path: Path) -> tuple[Series, ...]:
    """Return the series of a file, in the order of their first rows; InputError: what is wrong."""
    groups: dict[tuple[str, str, str, str, str], list[MeasuredPoint]] = defaultdict(list)
    for where, record in read_records(path, REQUIRED, OPTIONAL):
        model, dataset, target = (_parse_name(record, column, where) for column in REQUIRED[:3])
        source, optimizer = record.get("source", ""), record.get("optimizer", "")
        groups[source, model, dataset, target, optimizer].append(_parse_point(where, record))
    if not groups:
        raise InputError(
            "expected a row for each global batch, got none",
            where=str(path),
            advice="is it the right file?",
        )
    return tuple(Series(*labels, _order_points(points)) for labels, points in groups.items())


def _parse_name(record: Record, column: str, where: str) -> str:
    name = record[column]
    if not (name and name.isprintable() and len(name) <= MOST_NAME):
        raise InputError(
            f"{column}: expected a name of at most {MOST_NAME} characters, got {shorten(name)}",
            where=where,
        )
    return name


def _parse_point(where: str, record: Record) -> MeasuredPoint:
    """Parse the point of a row at `where`."""
    batch = _parse_number(record["global_batch"], f"{where}: global_batch", MOST_BATCH)
    if not batch.is_integer():
        raise InputError(
            f"expected a whole number of samples, got {shorten(record['global_batch'])}",
            where=f"{where}: global_batch",
        )
    epochs, steps = record.get("epochs", ""), record.get("steps", "")
    if not epochs and not steps:
        raise InputError(
            "epochs: expected a number, got nothing",
            where=where,
            advice=f"give epochs or steps; {NEVER!r} if the target was not reached",
        )
    if epochs.casefold() == NEVER:
        return MeasuredPoint(where, int(batch), None, None)
    return MeasuredPoint(
        where,
        int(batch),
        _parse_number(epochs, f"{where}: epochs", MOST_EPOCHS) if epochs else None,
        _parse_number(steps, f"{where}: steps", MOST_STEPS) if steps else None,
    )


def _parse_number(text: str, where: str, most: float) -> float:
    """Parse a number above 0."""
    try:
        number = parse_quantity(text, "1", where)
    except InputError:
        number = 0.0
    if not 1 / most <= number <= most:
        raise InputError(
            f"expected a number above 0 and at most {most:.3g}, got {shorten(text)}",
            where=where,
            advice="write all digits and no unit, such as 32768",
        )
    return number


def _order_points(points: Sequence[MeasuredPoint]) -> tuple[MeasuredPoint, ...]:
    """Sort points by batch without repetitions; InputError if two of a batch contradict."""
    by_batch: dict[int, MeasuredPoint] = {}
    for point in points:
        other = by_batch.setdefault(point.global_batch, point)
        if (point.epochs, point.steps) != (other.epochs, other.steps):
            raise InputError(
                f"global_batch: {point.global_batch:,} is also in line "
                f"{other.where.rpartition(':')[2]}, with other epochs or steps",
                where=point.where,
                advice="keep one row, such as their mean; name other sources or optimizers",
            )
    if len(by_batch) > MOST_POINTS:
        raise InputError(
            f"expected at most {MOST_POINTS:,} batches of a series, got {len(by_batch):,}",
            where=points[0].where,
        )
    return tuple(by_batch[batch] for batch in sorted(by_batch))


def is_same_data(dataset: str, measured: str) -> bool:
    """True if epochs measured on the data set `measured` hold for `dataset`."""
    return measured in (dataset, MEASURED_AS.get(dataset))


def pick_series(
    series: Iterable[Series], path: Path, model: str, dataset: str | None, target: str | None
) -> Series:
    """Return the only series of `path` with these names; InputError for several, or none."""
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
            advice=_advise_choice(ours),
        )
    return ours[0]


def _pick(kind: str, name: str, series: Iterable[Series], path: Path) -> tuple[Series, ...]:
    """Return the series of a model, dataset or target; InputError if there are none."""
    listed = tuple(series)
    matches = tuple(candidate for candidate in listed if getattr(candidate, kind) == name)
    if not matches:
        names = {str(getattr(candidate, kind)) for candidate in listed}
        raise InputError.unknown(kind, name, names, where=str(path))
    return matches


def _advise_choice(series: tuple[Series, ...]) -> str:
    """Advise on the first label by which the series differ."""
    for kind, option in (("target", "target"), ("dataset", "data set")):
        names = sorted({getattr(candidate, kind) for candidate in series})
        if len(names) > 1:
            return f"choose a {option}: {', '.join(map(shorten, names[:5]))}"
    return "keep the rows of one source and optimizer"
