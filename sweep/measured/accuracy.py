"""Accuracy of predictions on measured runs, by row and averaged.

accuracy = 1 - |predicted - measured| / measured, at least 0, as in Kahira et al. (HPDC 2021),
section 5. It is stated for total, compute and communication, since errors can cancel in the total.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

from sweep.measured.runs import PARTS

Row = dict[str, Any]

RATED = (*PARTS, "memory")
WITHIN = {"total": "within", "comp": "within_comp", "comm": "within_comm"}


def rate_prediction(predicted: float | None, measured: float | None) -> float | None:
    """Return the accuracy of a prediction; None if either value is unknown.

    1 is exact; 0 is off by the measured value or more.
    """
    # A single PE communicates for 0 s, which has no relative error.
    if predicted is None or not measured:
        return None
    return max(0.0, 1 - abs(predicted - measured) / measured)


def summarise_accuracy(rows: Sequence[Row]) -> dict[str, Any]:
    """Return average accuracies of all rows, of each strategy and of each model.

    `strategies_mean` averages the strategies' means, so that each counts once however many rows it
    has. It leaves out serial runs, as Kahira et al. (HPDC 2021) do for their 86.74 %.
    """
    by_strategy = _average_by("strategy", rows)
    parallel = [averages for name, averages in by_strategy.items() if name != "serial"]
    return {
        "overall": average_rows(rows),
        "strategies_mean": {
            part: _average_known(averages[part]["mean"] for averages in parallel) for part in PARTS
        },
        "by_strategy": by_strategy,
        "by_model": _average_by("model", rows),
    }


def _average_by(key: str, rows: Sequence[Row]) -> dict[str, Any]:
    names = dict.fromkeys(row[key] for row in rows)
    return {name: average_rows([row for row in rows if row[key] == name]) for name in names}


def average_rows(rows: Sequence[Row]) -> dict[str, Any]:
    """Return mean and median of each part over the rows that have both values.

    `n` counts all rows, `unpredicted` those without a prediction. `authors` averages the
    predictions that came with the rows, and ours of the same rows. `coverage` is the share of
    measured times within their 80 % intervals.
    """
    return {
        "n": len(rows),
        "unpredicted": sum(row["predicted_total"] is None for row in rows),
        **{part: _average_values(row[f"accuracy_{part}"] for row in rows) for part in RATED},
        "authors": {part: _average_authors(part, rows) for part in PARTS},
        "coverage": {part: _average_known(row[WITHIN[part]] for row in rows) for part in PARTS},
    }


def _average_values(values: Iterable[float | None]) -> dict[str, float | int | None]:
    """Return number, mean and median of the known values; None if there are none."""
    numbers = [value for value in values if value is not None]
    return {
        "n": len(numbers),
        "mean": fmean(numbers) if numbers else None,
        "median": median(numbers) if numbers else None,
    }


def _average_known(values: Iterable[float | None]) -> float | None:
    return _average_values(values)["mean"]


def _average_authors(part: str, rows: Sequence[Row]) -> dict[str, float | int | None]:
    """Return the authors' accuracies, and `ours` on the rows that they predicted."""
    # Rows that came without a prediction of their authors compare nothing.
    theirs = [row for row in rows if row[f"authors_accuracy_{part}"] is not None]
    return {
        **_average_values(row[f"authors_accuracy_{part}"] for row in theirs),
        "ours": _average_known(row[f"accuracy_{part}"] for row in theirs),
    }
