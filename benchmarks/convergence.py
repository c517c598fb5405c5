"""Measure how well convergence laws predict epochs at batches that their fits have not seen.

Each published series is fitted to its two, three ... smallest batches, and predicts the larger
ones. Rows called "last" predict the largest batch from all the others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.report import Effort, Report, Row, at_least, at_most
from paradl.grids.convergence.catalogue import EPOCHS
from paradl.grids.convergence.entry import Convergence, interpolate_epochs
from paradl.grids.convergence.fit import fit, fit_law
from paradl.grids.convergence.points import read_points
from paradl.kernels.configuration.convergence import count_epochs, spread_epochs
from paradl.kernels.names.arrays import Floats

# Used where only steps were published; any number will do, since the law does not depend on it.
SAMPLES = 10**5
LEAST_POINTS = 3
NEAR = 2.0  # times the largest batch of the fit
INSIDE = 1.2816  # spreads: 80 % of a normal distribution

MOST_ERROR = 0.15
LEAST_COVERED, MOST_COVERED = 0.7, 0.9


def fit_series() -> tuple[Convergence, ...]:
    """Fit the catalogue's series of three or more points."""
    return tuple(
        fit(series, SAMPLES) for series in read_points(EPOCHS) if len(series.points) >= LEAST_POINTS
    )


def leave_large_out(entries: Sequence[Convergence]) -> pd.DataFrame:
    """Predict every batch by each fit to two or more smaller ones.

    points: in the fit. ratio: of the batch to the largest of them. error: ln(predicted / measured).
    """
    return pd.DataFrame(
        _meet(entry, np.arange(count), n)
        for entry in entries
        for count in range(2, len(entry.points))
        for n in range(count, len(entry.points))
    )


def leave_inner_out(entries: Sequence[Convergence]) -> pd.DataFrame:
    """Predict every batch between others by a fit without it; `table`: interpolated."""
    rows = []
    for entry in entries:
        for n in range(1, len(entry.points) - 1) if len(entry.points) > LEAST_POINTS else ():
            others = entry.model_copy(update={"points": entry.points[:n] + entry.points[n + 1 :]})
            batch, epochs = (values[n] for values in _list_points(entry))
            row = _meet(entry, np.delete(np.arange(len(entry.points)), n), n)
            rows.append(row | {"table": np.log(interpolate_epochs(others, batch) / epochs)})
    return pd.DataFrame(rows)


def _list_points(entry: Convergence) -> Floats:
    """Return batches and epochs [2, n]."""
    pairs = [(point.global_batch, point.epochs) for point in entry.points]
    return np.array(pairs, dtype=np.float64).T


def _meet(entry: Convergence, fitted: Any, n: int) -> dict[str, object]:
    """Predict point n by a law of the `fitted` ones."""
    batches, epochs = _list_points(entry)
    law = fit_law(batches[fitted], epochs[fitted])
    predicted = float(count_epochs(law, batches[n]))
    error = float(np.log(predicted / epochs[n]))
    source = entry.source[0].removeprefix("mlcommons/").split(" (")[0]
    return {
        "series": f"{entry.model}, {entry.optimizer}, {source}",
        "points": len(fitted),
        "batch": batches[n],
        "ratio": batches[n] / batches[fitted].max(),
        "measured": epochs[n],
        "predicted": predicted,
        "error": error,
        "covered": abs(error) <= INSIDE * float(spread_epochs(law, batches[n])),
        "last": len(fitted) == len(batches) - 1,
    }


def median_error(errors: Any) -> float:
    """Return the median of |predicted / measured - 1| from logarithms."""
    return float(np.median(np.abs(np.expm1(errors))))


def select(rows: pd.DataFrame, *, near: bool, last: bool = False) -> pd.DataFrame:
    """Select rows up to NEAR times the largest fitted batch, or those beyond."""
    return rows[((rows["ratio"] <= NEAR) == near) & (rows["last"] | (not last))]


def measure(effort: Effort) -> Report:
    """Compute every error and interval; independent of the effort."""
    entries = fit_series()
    rows, inner = leave_large_out(entries), leave_inner_out(entries)
    shown = [_show_errors(rows, near, last) for last in (True, False) for near in (True, False)]
    shown += [
        *(_show_coverage(select(rows, near=near), _name(near, False)) for near in (True, False)),
        _show_coverage(inner, "a batch between others"),
        Row("median error, a batch between others", median_error(inner["error"]), ""),
        Row("the same, interpolated", median_error(inner["table"]), ""),
    ]
    note = (
        "Left out are the largest batch (last), or all but the two, three ... smallest. Ratios are "
        "predicted / measured. Epochs of BERT, GPT-3, Llama and Stable Diffusion are 100,000 "
        "samples."
    )
    lasts = [_show_row(row) for row in rows[rows["last"]].itertuples()]
    return Report("convergence", "epochs at batches not in the fit", (*shown, *lasts), note)


def _name(near: bool, last: bool) -> str:
    """Describe a selection of rows."""
    distance = f"up to {NEAR:g} x the largest fitted" if near else "beyond"
    return f"{'last, ' if last else 'all, '}{distance}"


def _show_errors(rows: pd.DataFrame, near: bool, last: bool) -> Row:
    errors = select(rows, near=near, last=last)["error"]
    median, square = median_error(errors), float(np.sqrt(np.mean(np.square(errors))))
    return Row(
        f"median error, {_name(near, last)}",
        median,
        "",
        goals=(at_most(median, MOST_ERROR, ""),) if near and last else (),
        note=f"{len(errors)} rows, root mean square {square:.3f}",
    )


def _show_coverage(rows: pd.DataFrame, what: str) -> Row:
    share = float(rows["covered"].mean())
    goals = at_least(share, LEAST_COVERED), at_most(share, MOST_COVERED, "")
    return Row(f"in 80 % interval, {what}", share, "", goals=goals, note=f"{len(rows)} rows")


def _show_row(row: Any) -> Row:
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
