"""Measured epochs to a target, from the catalogue or a user's CSV file.

A row is a global batch and the epochs, or optimizer steps, until the target was first reached;
`never` if it was not. Columns are described in grids/catalogue/measured/README.md.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from paradl.grids.entries.entry import Name, Record, take_quantity
from paradl.grids.reading.csvfile import read_records
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.yamlfile import validate

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

MOST_POINTS = 1000  # of a series; fitting them takes 0.2 s and 130 MB
Number = take_quantity("1", "32768")


class MeasuredPoint(Record):
    """One row: epochs, steps or both until the target was reached; neither if it never was.

    global_batch: samples of an iteration. epochs, steps: until the target. optimizer: its name.
    """

    where: SkipJsonSchema[str]  # file and line
    model: Name
    dataset: Name
    target: Name
    # float64 is exact up to here; beyond the other bounds are slips.
    global_batch: Annotated[int, Field(ge=1, le=2**53), Number]
    epochs: Annotated[float, Field(ge=1e-9, le=1e9), Number] | None = None
    steps: Annotated[float, Field(ge=1e-15, le=1e15), Number] | None = None
    source: str = ""
    optimizer: str = ""
    note: str = ""

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
        point = _read_point(where, record)
        labels = point.source, point.model, point.dataset, point.target, point.optimizer
        groups[labels].append(point)
    if not groups:
        raise InputError("expected a row for each global batch, got none", where=str(path))
    return tuple(Series(*labels, _order_points(points)) for labels, points in groups.items())


def _read_point(where: str, record: Mapping[str, str]) -> MeasuredPoint:
    given = {column: text for column, text in record.items() if text}
    if not {"epochs", "steps"} & {*given}:
        raise InputError(
            "epochs: expected a number, got nothing",
            where=where,
            advice=f"give epochs or steps; {NEVER!r} if the target was not reached",
        )
    if NEVER in (given.get(column, "").casefold() for column in ("epochs", "steps")):
        given = {column: given[column] for column in given if column not in ("epochs", "steps")}
    return validate(MeasuredPoint, {"where": where, **given}, where)


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
        what = f"expected at most {MOST_POINTS:,} batches of a series, got {len(by_batch):,}"
        raise InputError(what, where=points[0].where)
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
        pairs = dict.fromkeys((one.target, one.dataset) for one in ours)
        listed = ", ".join(f"{shorten(target)} on {shorten(data)}" for target, data in [*pairs][:5])
        raise InputError(
            f"{len(ours)} series of {shorten(model)}: expected one",
            where=str(path),
            advice=f"choose a target and a data set: {listed}; or keep the rows of one source",
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
