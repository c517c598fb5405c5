"""Predicted times of published runs, two baselines that anyone can reproduce, and their accuracy.

Baselines: the median MFU of other runs on the same device (of all devices where there are none),
and 6 FLOPs per parameter and token at 40 % MFU.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.layout_runs import UNSEEN, Logs, Run, read_runs
from benchmarks.layout_runs import predict_seconds as predict
from benchmarks.layouts import (
    find_device,
    find_inside,
    find_stack,
    has_experts,
    measure_accuracy,
    select_timed,
)
from benchmarks.report import Effort, Report, Row
from paradl.grids.entries.transformer_rates import FITTED, find_peaks, is_systolic
from paradl.kernels.oracle.block_times import count_model_flops

FIXED_MFU = 0.4


@dataclass(frozen=True)
class Forecast:
    """A run, and the seconds that are predicted: by paradl, and by two baselines."""

    run: Run
    seconds: float
    constant: float
    rule: float


def forecast(run: Run, values: Mapping[str, float], references: Iterable[Run]) -> Forecast:
    """Predict a run by a fit; references: the runs that show which MFU is usual."""
    return Forecast(run, predict(run, values), take_constant(run, references), apply_rule(run))


def count_peak(run: Run) -> float:
    """The peak of all PEs in the products' precision [FLOP/s]."""
    peak: float = find_peaks(run.system, run.precision).products
    return peak * int(run.layout.pes[0])


def find_mfu(run: Run) -> float:
    """Model FLOPs over the peak, as measured."""
    return count_model_flops(run.net, run.training) / (run.seconds * count_peak(run))


def take_constant(run: Run, references: Iterable[Run]) -> float:
    """Seconds at the median MFU of other runs of such networks, dense or with experts; on the same
    device if there are any."""
    similar = [other for other in references if has_experts(other) == has_experts(run)]
    nearest = [other for other in similar if find_device(other) == find_device(run)] or similar
    return run.seconds * find_mfu(run) / median(map(find_mfu, nearest))


def apply_rule(run: Run) -> float:
    """Seconds of 6 FLOPs per active parameter and token at a fixed MFU (Hoffmann et al. 2022)."""
    idle = sum(
        weights.matrix * (1 - weights.used)
        for kind in run.net.order
        for weights in run.net.kinds[kind].weights
        if weights.is_routed
    )
    flops = 6 * (run.net.parameters - idle) * run.training.batch * run.training.length
    return flops / (count_peak(run) * FIXED_MFU)


def list_logs(forecasts: Iterable[Forecast], name: str = "seconds") -> Logs:
    """ln(predicted / measured) [forecasts]; name: who predicts, a field of Forecast."""
    return np.log([getattr(row, name) / row.run.seconds for row in forecasts])


def is_dense(run: Run) -> bool:
    """Whether it is a run of a dense network on GPUs."""
    return not has_experts(run) and not is_systolic(run.device)


def measure_coverage(forecasts: Sequence[Forecast]) -> float:
    """The share of runs whose time the 80 % interval holds."""
    return float(np.mean(find_inside([row.run for row in forecasts], list_logs(forecasts))))


SUMS = (
    *("", "runs", "accuracy", "interval holds", "median of predicted / measured"),
    *("constant MFU", "6 P"),
)


def sum_up(title: str, rows: Sequence[Forecast]) -> list[str]:
    """A line of SUMS."""
    logs = list_logs(rows)
    baselines = (measure_accuracy(list_logs(rows, name)) for name in ("constant", "rule"))
    return [
        *(title, str(len(rows)), f"{measure_accuracy(logs):.1%}", f"{measure_coverage(rows):.0%}"),
        f"{np.exp(np.median(logs)):.2f}",
        *(f"{accuracy:.1%}" for accuracy in baselines),
    ]


LARGE = 1e11  # parameters
WIDE = 15_000  # features of a position
MANY = 1024  # PEs

PARTS: Mapping[str, Callable[[Run], bool]] = {
    "dense": lambda run: not has_experts(run),
    "mixtures of experts": has_experts,
    "below 100 billion parameters": lambda run: run.net.parameters < LARGE,
    "100 billion parameters and more": lambda run: run.net.parameters >= LARGE,
    "more than 15,000 features": lambda run: run.net.hidden > WIDE,
    "up to 1,024 PEs": lambda run: run.layout.pes[0] <= MANY,
    "more than 1,024 PEs": lambda run: run.layout.pes[0] > MANY,
}
LABELS: Sequence[Callable[[Run], str]] = (lambda run: run.precision, find_stack, find_device)


def forecast_runs() -> list[Forecast]:
    """Predict each run with a time that no fit has seen."""
    fitted = select_timed()
    return [forecast(run, FITTED, fitted) for run in read_runs(UNSEEN) if run.seconds]


def divide(forecasts: Sequence[Forecast]) -> Iterator[tuple[str, list[Forecast]]]:
    """Yield each collection of runs and its parts, which overlap, with their names."""
    for collection in dict.fromkeys(row.run.collection for row in forecasts):
        rows = [row for row in forecasts if row.run.collection == collection]
        yield collection, rows
        for name, is_part in PARTS.items():
            part = [row for row in rows if is_part(row.run)]
            if 0 < len(part) < len(rows):
                yield f"{collection}, {name}", part
        for find_label in LABELS:
            for label in sorted({find_label(row.run) for row in rows}):
                yield f"{collection}, {label}", [r for r in rows if find_label(r.run) == label]


def measure(effort: Effort) -> Report:
    """Accuracy, coverage and baselines of each part of the runs that no fit has seen."""
    lines = []
    for name, rows in divide(forecast_runs()):
        pairs = zip(SUMS, sum_up(name, rows), strict=True)
        note = "; ".join(f"{what} {value}" for what, value in pairs if what not in ("", "accuracy"))
        lines.append(Row(name, measure_accuracy(list_logs(rows)), "", note=note))
    return Report("unseen", "published runs of transformers that no fit has seen", tuple(lines))
