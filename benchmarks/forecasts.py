"""Predicted times of published runs, two baselines that anyone can reproduce, and their accuracy.

Baselines: the median MFU of other runs on the same device (of all devices where there are none),
and 6 FLOPs per parameter and token at 40 % MFU.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.layout_runs import Logs, Run
from benchmarks.layout_runs import predict_seconds as predict
from benchmarks.layouts import find_device, find_inside, has_experts, measure_accuracy
from paradl.grids.entries.transformer_rates import find_peaks, is_systolic
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
