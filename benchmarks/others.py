"""Predictions of other tools for published runs, from a CSV that says how each was made."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.forecasts import Forecast, list_logs
from benchmarks.layouts import measure_accuracy
from paradl.grids.reading.csvfile import read_records
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_quantity

COLUMNS = ("tool", "version", "command", "key", "seconds")
HEAD = ("", "runs", "accuracy", "median of ratios", "paradl", "constant MFU", "6 P")


@dataclass(frozen=True)
class Prediction:
    """What a tool predicts of the run with this key [s]."""

    tool: str
    version: str
    key: str
    seconds: float


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions of a file. InputError: a mistake, with its line."""
    return [
        Prediction(row["tool"], row["version"], row["key"], _read_seconds(row["seconds"], where))
        for where, row in read_records(path, COLUMNS, ())
    ]


def _read_seconds(text: str, where: str) -> float:
    seconds = parse_quantity(text, "1", f"{where}: seconds", "12.5")
    if seconds <= 0:
        raise InputError(f"expected more than 0, got {shorten(text)}", where=f"{where}: seconds")
    return seconds


def compare(
    predictions: Iterable[Prediction], forecasts: Sequence[Forecast]
) -> Iterator[list[str]]:
    """Lines of HEAD: each tool beside paradl and baselines on the same runs, and by software."""
    of_key = {row.run.key: row for row in forecasts}
    tools: dict[str, list[tuple[Prediction, Forecast]]] = {}
    for one in predictions:
        if one.key in of_key:
            tools.setdefault(f"{one.tool} {one.version}", []).append((one, of_key[one.key]))
    for tool, pairs in tools.items():
        yield _sum_up(tool, pairs)
        for stack in sorted({row.run.stack for _, row in pairs}):
            yield _sum_up(
                f"{tool}: {stack}", [pair for pair in pairs if pair[1].run.stack == stack]
            )


def _sum_up(title: str, pairs: Sequence[tuple[Prediction, Forecast]]) -> list[str]:
    rows = [row for _, row in pairs]
    logs = np.log([one.seconds / row.run.seconds for one, row in pairs])
    named = (measure_accuracy(list_logs(rows, name)) for name in ("seconds", "constant", "rule"))
    return [
        *(title, str(len(rows)), f"{measure_accuracy(logs):.1%}", f"{np.exp(np.median(logs)):.2f}"),
        *(f"{accuracy:.1%}" for accuracy in named),
    ]
