"""Accuracy of predictions on measured runs: of each row, and averaged.

accuracy = 1 - |predicted - measured| / measured, at least 0, as Kahira et al. (HPDC 2021), section
5, count it: of total, compute and communication, since errors of the two can cancel in the total.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

from sweep.measured.runs import PARTS

Row = dict[str, Any]

# What is rated of a run: its times, and what one PE held.
RATED = (*PARTS, "memory")
WITHIN = {"total": "within", "comp": "within_comp", "comm": "within_comm"}


def rate_prediction(predicted: float | None, measured: float | None) -> float | None:
    """The accuracy of a prediction: 1 is exact, 0 off by as much as was measured, or more.

    None where one of the two is not known.
    """
    # Of 0 s, as one PE communicates, no error is relative.
    if predicted is None or not measured:
        return None
    return max(0.0, 1 - abs(predicted - measured) / measured)


def summarise_accuracy(rows: Sequence[Row]) -> dict[str, Any]:
    """Accuracies averaged over all rows, those of each strategy, and those of each model.

    `strategies_mean` is the mean of the strategies' means, each counted once however many rows it
    has, without serial runs: as Kahira et al. (HPDC 2021) state 86.74 % for six strategies.
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
    """The averages of the rows of each model, or strategy, in the order of their appearance."""
    names = dict.fromkeys(row[key] for row in rows)
    return {name: average_rows([row for row in rows if row[key] == name]) for name in names}


def average_rows(rows: Sequence[Row]) -> dict[str, Any]:
    """Mean and median of each part over the rows that were measured and predicted.

    `n` counts all rows, `unpredicted` those that no prediction exists for. `authors` averages the
    predictions that came with the rows, beside our own of the same rows. `coverage` is the part of
    the measured times that lie within their 80 % intervals.
    """
    return {
        "n": len(rows),
        "unpredicted": sum(row["predicted_total"] is None for row in rows),
        **{part: _average_values(row[f"accuracy_{part}"] for row in rows) for part in RATED},
        "authors": {part: _average_authors(part, rows) for part in PARTS},
        "coverage": {part: _average_known(row[WITHIN[part]] for row in rows) for part in PARTS},
    }


def _average_values(values: Iterable[float | None]) -> dict[str, float | int | None]:
    """How many of the values there are, their mean and their median; None where there are none."""
    numbers = [value for value in values if value is not None]
    return {
        "n": len(numbers),
        "mean": fmean(numbers) if numbers else None,
        "median": median(numbers) if numbers else None,
    }


def _average_known(values: Iterable[float | None]) -> float | None:
    """The mean of the values that there are; None where there are none."""
    return _average_values(values)["mean"]


def _average_authors(part: str, rows: Sequence[Row]) -> dict[str, float | int | None]:
    """The authors' accuracies, and `ours` on the rows that they predicted."""
    theirs = [row for row in rows if row[f"authors_accuracy_{part}"] is not None]
    return {
        **_average_values(row[f"authors_accuracy_{part}"] for row in theirs),
        "ours": _average_known(row[f"accuracy_{part}"] for row in theirs),
    }
