"""Every published run against what a fit predicts that has not seen its stack, and two baselines.

Baselines: the median MFU of other runs on the same device (of all devices where there are none),
and 6 FLOPs per parameter and token at 40 % MFU. `python -m benchmarks scoreboard` sums up;
`python -m benchmarks.scoreboard > docs/scoreboard.md` writes the page.
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
    leave_out,
    measure_accuracy,
    select_timed,
)
from benchmarks.report import Effort, Report, Row, at_least, at_most, tabulate
from paradl.grids.entries.layout_words import write_layout
from paradl.grids.entries.transformer_rates import FITTED, find_peaks, find_spread, is_systolic
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.oracle.block_times import count_model_flops
from paradl.kernels.work.transformer import Family

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


def measure_unseen(effort: Effort) -> Report:
    """Accuracy, coverage and baselines of each part of the runs that no fit has seen."""
    lines = []
    for name, rows in divide(forecast_runs()):
        pairs = zip(SUMS, sum_up(name, rows), strict=True)
        note = "; ".join(f"{what} {value}" for what, value in pairs if what not in ("", "accuracy"))
        lines.append(Row(name, measure_accuracy(list_logs(rows)), "", note=note))
    return Report("unseen", "published runs of transformers that no fit has seen", tuple(lines))


def measure(effort: Effort) -> Report:
    """Accuracy and coverage with whole stacks left out, and of baselines."""
    runs = select_timed()
    forecasts = forecast_stacks(runs, leave_out(runs, find_stack))
    dense = [row for row in forecasts if is_dense(row.run)]
    accuracy, inside = measure_accuracy(list_logs(dense)), measure_coverage(dense)
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


def forecast_stacks(runs: Sequence[Run], fits: Mapping[str, Mapping[str, float]]) -> list[Forecast]:
    """Each run by the fit without its stack, beside the MFU of other stacks' runs."""
    return [
        forecast(run, fits[run.stack], [other for other in runs if other.stack != run.stack])
        for run in runs
    ]


HEAD = """# Scoreboard: published runs of transformers

<!-- python -m benchmarks.scoreboard -->

Seconds per iteration of published runs, stated or derived (`grids/catalogue/measured/README.md`),
compared with the prediction of a fit that has not seen the run's stack: eleven numbers shared by
all stacks, devices and networks. The 80 % interval is {} times
the prediction on V100, A100 and H100 in 16 bits and {} on the others, for mixtures of experts
{} and {} (docs/transformers.md, Intervals, has the rule).

Baselines that anyone can reproduce: *constant MFU*, the median of the same device's runs by other
software (of any device where it has no other); *6 P*, six FLOPs per parameter that a token uses
(C = 6 P x tokens, Hoffmann et al. 2022) at {fixed:.0%} of the peak. Accuracy is that of
[accuracy.md](accuracy.md#what-accuracy-means).

Other tools report accuracy on runs of their own choice: Calculon 96.35 % on 8 rows of one paper;
SimuMax 94.4 % on 43 rows of one machine that it had measured; learned operator models 95.0 and
90.6 % on two machines (arXiv 2509.22832). Their runs were not left out by stack, so these figures
are not comparable.
"""


UNSEEN_PART = """
## Runs that no fit has seen

`grids/catalogue/measured/layouts_unseen.csv`, predicted with the shipped rates, and by the median
MFU of all fitted runs on the same device; int8 counts as fp8. Parts of a collection overlap.
"""


def write_page() -> str:
    """docs/scoreboard.md."""
    runs = select_timed()
    fits = leave_out(runs, find_stack)
    forecasts = forecast_stacks(runs, fits)
    families: tuple[Family, ...] = ("dense", "experts")
    kinds = [(device, family) for family in families for device in ("a100", "b200")]
    spreads = [find_spread(device, "bf16", family) for device, family in kinds]
    intervals = [
        f"{np.exp(PERCENTILES[10] * spread):.2f} to {np.exp(PERCENTILES[90] * spread):.2f}"
        for spread in spreads
    ]
    values = [[stack, *(f"{fit[name]:.6g}" for name in FITTED)] for stack, fit in fits.items()]
    sections = [
        HEAD.format(*intervals, fixed=FIXED_MFU),
        "## By stack, device, size and precision\n",
        tabulate([SUMS, *summarise(forecasts)]),
        UNSEEN_PART,
        tabulate([SUMS, *(sum_up(*part) for part in divide(forecast_runs()))]),
        "\n## Fits without each stack\n",
        tabulate([["without", *FITTED], *values]),
        "\n## Every run\n",
        tabulate([COLUMNS, *map(describe, forecasts)]),
    ]
    return "\n".join(sections) + "\n"


COLUMNS = (
    *("stack", "network", "system", "PEs", "precision", "layout", "sequences", "tokens"),
    *("measured s", "predicted s", "ratio", "constant MFU", "6 P", "source"),
)


def summarise(forecasts: Sequence[Forecast]) -> Iterator[list[str]]:
    """Lines of SUMS: dense runs on GPUs, by stack, device, size and precision; others."""
    dense = [row for row in forecasts if is_dense(row.run)]
    yield sum_up("all dense, on GPUs", dense)
    for find in (find_stack, find_device):
        for name in sorted({find(row.run) for row in dense}):
            yield sum_up(name, [row for row in dense if find(row.run) == name])
    for low, high in ((0, 1e9), (1e9, 1e10), (1e10, 1e11), (1e11, 1e13)):
        rows = [row for row in dense if low <= row.run.net.parameters < high]
        yield sum_up(f"{low / 1e9:g} to {high / 1e9:,g} billion parameters", rows)
    for eight, title in ((False, "16 bits"), (True, "fp8")):
        yield sum_up(title, [row for row in dense if bool(row.run.training.recipe.peak) == eight])
    mixed = [row for row in forecasts if has_experts(row.run)]
    for stack in sorted({row.run.stack for row in mixed}):
        rows = [row for row in mixed if row.run.stack == stack]
        yield sum_up(f"mixtures of experts, {stack}", rows)
    yield sum_up("mixtures of experts", mixed)
    yield sum_up("TPUs", [row for row in forecasts if is_systolic(row.run.device)])


def describe(row: Forecast) -> list[str]:
    """A line of COLUMNS."""
    run = row.run
    (columns,) = run.layout.to_names()
    ratios = (value / run.seconds for value in (row.seconds, row.constant, row.rule))
    return [
        *(run.stack, run.model, run.system.name, str(int(run.layout.pes[0]))),
        *(run.training.recipe.peak or "16 bits", write_layout(columns)),
        *(str(run.training.batch), str(run.training.length)),
        *(f"{run.seconds:.4g}", f"{row.seconds:.4g}", *(f"{ratio:.2f}" for ratio in ratios)),
        run.source,
    ]


if __name__ == "__main__":
    print(write_page(), end="")
