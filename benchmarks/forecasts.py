"""Seconds of published runs by a fit that has not seen them, and by two baselines.

Baselines: the median MFU of other runs on the same device (of all devices where there are none),
and 6 FLOPs per parameter and token at 40 % MFU (Hoffmann et al. 2022).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.layout_runs import Logs, Run, predict_seconds
from benchmarks.layouts import find_device, find_spreads, fit, has_experts
from paradl.grids.entries.transformer_rates import FITTED, find_peaks, is_systolic
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.oracle.block_times import count_model_flops

FIXED_MFU = 0.4


@dataclass(frozen=True, eq=False)
class Forecast:
    """A run, and the seconds that are predicted: by paradl, and by two baselines.

    left_out: the stack that the fit has not seen; "" for the shipped fit. spread: of ln(predicted /
    measured).
    """

    run: Run
    left_out: str
    values: Mapping[str, float]
    seconds: float
    spread: float
    constant: float
    rule: float

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 80 % interval [s]."""
        low, high = (self.seconds * np.exp(PERCENTILES[at] * self.spread) for at in (10, 90))
        return float(low), float(high)


def forecast_runs(runs: Iterable[Run], fitted: Sequence[Run]) -> list[Forecast]:
    """Predict runs with a time by the shipped fit, or by one without the stack of a fitted run."""
    timed = [run for run in runs if run.seconds]
    seen = {run.key for run in fitted}
    stacks = sorted({run.stack for run in timed if run.key in seen})
    others = {stack: [run for run in fitted if run.stack != stack] for stack in stacks}
    fits = {stack: fit(rows) for stack, rows in others.items()}
    return [
        forecast(run, run.stack, fits[run.stack], others[run.stack])
        if run.key in seen
        else forecast(run, "", FITTED, fitted)
        for run in timed
    ]


def forecast(
    run: Run, left_out: str, values: Mapping[str, float], references: Iterable[Run]
) -> Forecast:
    """Predict a run by a fit; references: the runs that show which MFU is usual."""
    return Forecast(
        run,
        left_out,
        values,
        predict_seconds(run, values),
        float(find_spreads([run], is_drawn=True)[0]),
        take_constant(run, references),
        apply_rule(run),
    )


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
    """Seconds of 6 FLOPs per active parameter and token at a fixed MFU."""
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


def measure_coverage(forecasts: Sequence[Forecast]) -> float:
    """The share of runs whose time the 80 % interval holds."""
    spreads = np.array([row.spread for row in forecasts])
    return float(np.mean(np.abs(list_logs(forecasts)) <= PERCENTILES[90] * spreads))


def is_dense(run: Run) -> bool:
    """Whether it is a run of a dense network on GPUs."""
    return not has_experts(run) and not is_systolic(run.device)
