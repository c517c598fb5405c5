"""Every published run against what a fit predicts that has not seen its stack, and two baselines.

`python -m benchmarks scoreboard` sums up; `python -m benchmarks.scoreboard > docs/scoreboard.md`
writes the page. Baselines that anyone can reproduce: the median MFU of the same device's runs by
other stacks (of all devices, where there are none), and 6 FLOPs a parameter and token at 40 % MFU.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.layout_runs import DEVICES, Logs, Run
from benchmarks.layout_runs import predict_seconds as predict
from benchmarks.layouts import (
    find_device,
    find_inside,
    find_stack,
    has_experts,
    leave_out,
    measure_accuracy,
    select_timed,
)
from benchmarks.report import Effort, Report, Row, at_least, at_most, tabulate
from grids.entries.transformer_rates import FITTED, find_spread, is_systolic
from kernels.layouts.time import count_model_flops
from kernels.names.stored import PERCENTILES
from sweep.cases.layout_words import list_layouts, write_layout

FIXED_MFU = 0.4


@dataclass(frozen=True)
class Forecast:
    """A run, and the seconds that are predicted: by paradl, and by two baselines."""

    run: Run
    seconds: float
    constant: float
    rule: float

    @property
    def log(self) -> float:
        """ln(predicted / measured)."""
        return float(np.log(self.seconds / self.run.seconds))


def forecast(runs: Sequence[Run], fits: Mapping[str, Mapping[str, float]]) -> list[Forecast]:
    """Each run by the fit without its stack."""
    return [
        Forecast(run, predict(run, fits[run.stack]), take_constant(run, runs), apply_rule(run))
        for run in runs
    ]


def count_peak(run: Run) -> float:
    """The peak of all PEs, of 8 bits where products have such inputs [FLOP/s]."""
    eight = bool(run.training.recipe.peak)
    return DEVICES[run.device].peak * (1 + eight) * int(run.layout.pes[0])


def find_mfu(run: Run) -> float:
    """Model FLOPs over the peak, as measured."""
    return count_model_flops(run.net, run.training) / (run.seconds * count_peak(run))


def take_constant(run: Run, runs: Iterable[Run]) -> float:
    """Seconds at the median MFU of other stacks' runs of such networks, dense or with experts; on
    the same device if there are any."""
    others = [
        other
        for other in runs
        if other.stack != run.stack and has_experts(other) == has_experts(run)
    ]
    alike = [other for other in others if find_device(other) == find_device(run)] or others
    return run.seconds * find_mfu(run) / median(map(find_mfu, alike))


def apply_rule(run: Run) -> float:
    """Seconds of 6 FLOPs an active parameter and token at a fixed MFU (Hoffmann et al. 2022)."""
    idle = sum(
        weights.matrix * (1 - weights.used)
        for kind in run.net.order
        for weights in run.net.kinds[kind].weights
        if weights.is_routed
    )
    flops = 6 * (run.net.parameters - idle) * run.training.batch * run.training.length
    return flops / (count_peak(run) * FIXED_MFU)


def list_logs(forecasts: Iterable[Forecast], name: str = "seconds") -> Logs:
    """ln(predicted / measured)."""
    return np.log([getattr(each, name) / each.run.seconds for each in forecasts])


def measure(effort: Effort) -> Report:
    """Accuracy and coverage with whole stacks left out, and of baselines."""
    runs = select_timed()
    forecasts = forecast(runs, leave_out(runs, find_stack))
    dense = [each for each in forecasts if is_dense(each.run)]
    accuracy, inside = measure_accuracy(list_logs(dense)), hold(dense)
    rows = [
        Row("stacks left out", accuracy, "", goals=(at_least(accuracy, 0.9),)),
        Row(
            *("stacks left out: 80 % intervals hold", inside, ""),
            goals=(at_least(inside, 0.75), at_most(inside, 0.88, "")),
        ),
    ]
    for name, what in (("constant", "median MFU of the device"), ("rule", "6 P at 40 % MFU")):
        rows.append(Row(what, measure_accuracy(list_logs(dense, name)), ""))
    return Report("scoreboard", "published runs of transformers, unseen", tuple(rows))


def is_dense(run: Run) -> bool:
    """Whether it is a run of a dense network on GPUs."""
    return not has_experts(run) and not is_systolic(run.device)


def hold(forecasts: Sequence[Forecast]) -> float:
    """The share of runs whose time the 80 % interval holds."""
    logs = np.array([each.log for each in forecasts])
    return float(np.mean(find_inside([each.run for each in forecasts], logs)))


HEAD = """# Scoreboard: published runs of transformers

<!-- python -m benchmarks.scoreboard -->

Each run's seconds of an iteration, as published or derived from what was
(`grids/catalogue/measured/README.md`), and as predicted by a fit that has not seen its stack:
twelve numbers shared by all stacks, devices and networks. The 80 % interval is {} times
the prediction on V100, A100 and H100 in 16 bits and {} on the others, for mixtures of experts
{} and {} (docs/transformers.md, Intervals, has the rule).

Baselines that anyone can reproduce: *constant MFU*, the median of the same device's runs by other
software (of any device where it has no other); *6 P*, six FLOPs a parameter that a token uses
(C = 6 P x tokens, Hoffmann et al. 2022) at {fixed:.0%} of the peak. Accuracy is the mean of
1 - |predicted / measured - 1|.

Others state, on runs of their choice: Calculon 96.35 % on 8 rows of one paper; SimuMax 94.4 % on 43
rows of one machine that it had measured; learned operator models 95.0 and 90.6 % on two machines
(arXiv 2509.22832). None of these is of runs left out by stack: the figures do not compare.
"""


def write_page() -> str:
    """docs/scoreboard.md."""
    runs = select_timed()
    fits = leave_out(runs, find_stack)
    forecasts = forecast(runs, fits)
    kinds = (("a100", False), ("b200", False), ("a100", True), ("b200", True))
    spreads = [find_spread(device, "bf16", mixed) for device, mixed in kinds]
    intervals = [
        f"{np.exp(PERCENTILES[10] * spread):.2f} to {np.exp(PERCENTILES[90] * spread):.2f}"
        for spread in spreads
    ]
    values = [[stack, *(f"{fit[name]:.6g}" for name in FITTED)] for stack, fit in fits.items()]
    sections = [
        HEAD.format(*intervals, fixed=FIXED_MFU),
        "## By stack, device, size and precision\n",
        tabulate([SUMS, *summarise(forecasts)]),
        "\n## Fits without each stack\n",
        tabulate([["without", *FITTED], *values]),
        "\n## Every run\n",
        tabulate([COLUMNS, *map(describe, forecasts)]),
    ]
    return "\n".join(sections) + "\n"


SUMS = (
    *("", "runs", "accuracy", "interval holds", "median of predicted / measured"),
    *("constant MFU", "6 P"),
)
COLUMNS = (
    *("stack", "network", "device", "PEs", "precision", "layout", "sequences", "tokens"),
    *("measured s", "predicted s", "ratio", "constant MFU", "6 P", "source"),
)


def summarise(forecasts: Sequence[Forecast]) -> Iterator[list[str]]:
    """Lines of SUMS: dense runs on GPUs, by stack, device, size and precision; others."""
    dense = [each for each in forecasts if is_dense(each.run)]
    yield _sum_up("all dense, on GPUs", dense)
    for find in (find_stack, find_device):
        for name in sorted({find(each.run) for each in dense}):
            yield _sum_up(name, [each for each in dense if find(each.run) == name])
    for low, high in ((0, 1e9), (1e9, 1e10), (1e10, 1e11), (1e11, 1e13)):
        some = [each for each in dense if low <= each.run.net.parameters < high]
        yield _sum_up(f"{low / 1e9:g} to {high / 1e9:,g} billion parameters", some)
    for eight, what in ((False, "16 bits"), (True, "fp8")):
        some = [each for each in dense if bool(each.run.training.recipe.peak) == eight]
        yield _sum_up(what, some)
    mixed = [each for each in forecasts if has_experts(each.run)]
    for stack in sorted({each.run.stack for each in mixed}):
        some = [each for each in mixed if each.run.stack == stack]
        yield _sum_up(f"mixtures of experts, {stack}", some)
    yield _sum_up("mixtures of experts", mixed)
    yield _sum_up("TPUs", [each for each in forecasts if is_systolic(each.run.device)])


def _sum_up(what: str, some: Sequence[Forecast]) -> list[str]:
    logs = list_logs(some)
    baselines = (measure_accuracy(list_logs(some, name)) for name in ("constant", "rule"))
    return [
        *(what, str(len(some)), f"{measure_accuracy(logs):.1%}", f"{hold(some):.0%}"),
        f"{np.exp(np.median(logs)):.2f}",
        *(f"{accuracy:.1%}" for accuracy in baselines),
    ]


def describe(each: Forecast) -> list[str]:
    """A line of COLUMNS."""
    run = each.run
    (columns,) = list_layouts(run.layout)
    ratios = (value / run.seconds for value in (each.seconds, each.constant, each.rule))
    return [
        *(run.stack, run.model, run.device, str(int(run.layout.pes[0]))),
        *(run.training.recipe.peak or "16 bits", write_layout(columns)),
        *(str(run.training.batch), str(run.training.length)),
        *(f"{run.seconds:.4g}", f"{each.seconds:.4g}", *(f"{ratio:.2f}" for ratio in ratios)),
        run.source,
    ]


if __name__ == "__main__":
    print(write_page(), end="")
