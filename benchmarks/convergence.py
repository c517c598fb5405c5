"""Measure how well convergence laws predict epochs at batches that their fits have not seen.

Each published series is fitted to its two, three ... smallest batches, and predicts the larger
ones. Rows called "last" predict the largest batch from all the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.report import Effort, Report, Row, at_least, at_most
from paradl.grids.convergence.catalogue import EPOCHS
from paradl.grids.convergence.entry import Convergence, interpolate_epochs
from paradl.grids.convergence.fit import fit, fit_law
from paradl.grids.convergence.points import read_points
from paradl.kernels.configuration.convergence import Law, count_epochs, spread_epochs
from paradl.kernels.names.arrays import Floats

# Used where only steps were published; any number will do, since the law does not depend on it.
SAMPLES = 10**5
LEAST_POINTS = 3
NEAR = 2.0  # times the largest batch of the fit
INSIDE = 1.2816  # spreads: 80 % of a normal distribution

MOST_ERROR = 0.15
LEAST_COVERED, MOST_COVERED = 0.7, 0.9


@dataclass(frozen=True)
class LeftOut:
    """A batch that a fit has not seen. ratio: to the largest fitted one, or 1 between others."""

    model: str
    series: str
    points: int  # in the fit
    batch: float
    ratio: float
    measured: float  # epochs
    predicted: float
    spread: float
    last: bool

    @property
    def error(self) -> float:
        """ln(predicted / measured)."""
        return float(np.log(self.predicted / self.measured))

    @property
    def covered(self) -> bool:
        """True if the 80 % interval contains the measured value."""
        return abs(self.error) <= INSIDE * self.spread


def fit_series() -> tuple[Convergence, ...]:
    """Fit the catalogue's series of three or more points."""
    return tuple(
        fit(series, SAMPLES) for series in read_points(EPOCHS) if len(series.points) >= LEAST_POINTS
    )


def leave_large_out(entries: Sequence[Convergence]) -> tuple[LeftOut, ...]:
    """Predict every batch by each fit to two or more smaller ones."""
    rows = []
    for entry in entries:
        batches, epochs = list_points(entry)
        for count in range(2, len(batches)):
            law = fit_law(batches[:count], epochs[:count])
            for n in range(count, len(batches)):
                row = meet(entry, law, n, batches[n])
                last = count == len(batches) - 1
                ratio = float(batches[n] / batches[count - 1])
                rows.append(replace(row, points=count, ratio=ratio, last=last))
    return tuple(rows)


def leave_inner_out(entries: Sequence[Convergence]) -> tuple[tuple[LeftOut, ...], Floats]:
    """Predict every batch between others by a fit without it; and ln(interpolated / measured)."""
    rows, tables = [], []
    for entry in entries:
        batches, epochs = list_points(entry)
        for n in range(1, len(batches) - 1) if len(batches) > LEAST_POINTS else ():
            law = fit_law(np.delete(batches, n), np.delete(epochs, n))
            rows.append(meet(entry, law, n, batches[n]))
            others = entry.model_copy(update={"points": entry.points[:n] + entry.points[n + 1 :]})
            tables.append(np.log(interpolate_epochs(others, batches[n]) / epochs[n]))
    return tuple(rows), np.array(tables)


def list_points(entry: Convergence) -> tuple[Floats, Floats]:
    """Return batches and epochs [n]."""
    pairs = [(point.global_batch, point.epochs) for point in entry.points]
    batches, epochs = np.array(pairs, dtype=np.float64).T
    return batches, epochs


def meet(entry: Convergence, law: Law, n: int, batch: float) -> LeftOut:
    """Predict point n, at `batch`, by a law fitted to others."""
    point = entry.points[n]
    return LeftOut(
        model=entry.model,
        series=f"{entry.model}, {entry.optimizer}, {_name_source(entry)}",
        points=len(entry.points) - 1,
        batch=point.global_batch,
        ratio=1.0,
        measured=point.epochs,
        predicted=float(count_epochs(law, batch)),
        spread=float(spread_epochs(law, batch)),
        last=False,
    )


def _name_source(entry: Convergence) -> str:
    """Name the file or submitter of a series."""
    return entry.source[0].removeprefix("mlcommons/").split(" (")[0]


def median_error(errors: Sequence[float] | Floats) -> float:
    """Return the median of |predicted / measured - 1| from logarithms."""
    return float(np.median(np.abs(np.expm1(errors))))


def root_mean_square(errors: Sequence[float] | Floats) -> float:
    """Return the root mean square of logarithms."""
    return float(np.sqrt(np.mean(np.square(errors))))


def share_covered(rows: Sequence[LeftOut]) -> float:
    """Return the share of rows whose 80 % interval contains the measured value."""
    return float(np.mean([row.covered for row in rows]))


def select(rows: Sequence[LeftOut], *, near: bool, last: bool = False) -> list[LeftOut]:
    """Select rows up to NEAR times the largest fitted batch, or those beyond."""
    return [row for row in rows if (row.ratio <= NEAR) == near and (row.last or not last)]


def measure(effort: Effort) -> Report:
    """Compute every error and interval; independent of the effort."""
    entries = fit_series()
    rows = leave_large_out(entries)
    inner, tables = leave_inner_out(entries)
    shown = [
        *(
            _show_errors(rows, near, last, bool(near and last))
            for last in (True, False)
            for near in (True, False)
        ),
        *(_show_coverage(select(rows, near=near), _name(near, False)) for near in (True, False)),
        _show_coverage(inner, "a batch between others"),
        Row("median error, a batch between others", median_error([r.error for r in inner]), ""),
        Row("the same, interpolated", median_error(tables), ""),
    ]
    note = (
        "Left out are the largest batch (last), or all but the two, three ... smallest. Ratios are "
        "predicted / measured. Epochs of BERT, GPT-3, Llama and Stable Diffusion are 100,000 "
        "samples."
    )
    lasts = [_show_row(row) for row in rows if row.last]
    return Report("convergence", "epochs at batches not in the fit", (*shown, *lasts), note)


def _name(near: bool, last: bool) -> str:
    """Describe a selection of rows."""
    distance = f"up to {NEAR:g} x the largest fitted" if near else "beyond"
    return f"{'last, ' if last else 'all, '}{distance}"


def _show_errors(rows: Sequence[LeftOut], near: bool, last: bool, goal: bool) -> Row:
    errors = [row.error for row in select(rows, near=near, last=last)]
    median = median_error(errors)
    return Row(
        f"median error, {_name(near, last)}",
        median,
        "",
        goals=(at_most(median, MOST_ERROR, ""),) if goal else (),
        note=f"{len(errors)} rows, root mean square {root_mean_square(errors):.3f}",
    )


def _show_coverage(rows: Sequence[LeftOut], what: str) -> Row:
    share = share_covered(rows)
    goals = at_least(share, LEAST_COVERED), at_most(share, MOST_COVERED, "")
    return Row(f"in 80 % interval, {what}", share, "", goals=goals, note=f"{len(rows)} rows")


def _show_row(row: LeftOut) -> Row:
    """Make the row of a largest batch that was left out."""
    inside = "inside" if row.covered else "outside"
    return Row(
        f"{row.series}: batch {row.batch:,.0f}",
        row.measured,
        "epochs",
        row.predicted / row.measured,
        "measured",
        note=f"{row.points} points, {row.ratio:.3g} x the largest of them; {inside}",
    )
