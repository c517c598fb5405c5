"""Every published run against what a fit predicts that has not seen its stack, and two baselines.

`python -m benchmarks scoreboard` sums up; `python -m benchmarks.scoreboard > docs/scoreboard.md`
writes the page. Baselines that anyone can reproduce: the median MFU of the same device's runs by
other stacks (of all devices, where there are none), and 6 FLOPs a parameter and token at 40 % MFU.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.effort import Effort
from benchmarks.layouts import DEVICES, Logs, Run, choose_rows, fit, measure_accuracy, read_runs
from benchmarks.layouts import predict_seconds as predict
from benchmarks.report import Report, Row, at_least, at_most, tabulate
from grids.entries.transformer_rates import FITTED, SPREAD
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
    def holds(self) -> bool:
        """Whether the 80 % interval holds the measured time."""
        return bool(abs(np.log(self.seconds / self.run.seconds)) <= PERCENTILES[90] * SPREAD)


def select_runs() -> list[Run]:
    """The runs with a time, dense ones first."""
    return sorted(
        (run for run in read_runs() if run.seconds), key=lambda run: bool(run.net.experts)
    )


def forecast(runs: Sequence[Run], fits: Mapping[str, Mapping[str, float]]) -> list[Forecast]:
    """Each run by the fit without its stack; mixtures of experts, which none saw, as shipped."""
    return [
        Forecast(
            run,
            predict(run, FITTED if run.net.experts else fits[run.stack]),
            take_constant(run, runs),
            apply_rule(run),
        )
        for run in runs
    ]


def fit_without(runs: Sequence[Run], find: Callable[[Run], str]) -> dict[str, dict[str, float]]:
    """The values fitted to dense runs without each of what `find` names."""
    dense = [run for run in runs if not run.net.experts]
    return {
        name: fit(choose_rows([run for run in dense if find(run) != name]))
        for name in sorted({find(run) for run in dense})
    }


def find_mfu(run: Run) -> float:
    """Model FLOPs over the peak, as measured."""
    peak = DEVICES[run.device].peak * int(run.layout.pes[0])
    return count_model_flops(run.net, run.training) / (run.seconds * peak)


def take_constant(run: Run, runs: Iterable[Run]) -> float:
    """Seconds at the median MFU of other stacks' runs, on the same device if there are any."""
    others = [other for other in runs if other.stack != run.stack]
    alike = [other for other in others if other.device == run.device] or others
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
    return flops / (DEVICES[run.device].peak * int(run.layout.pes[0]) * FIXED_MFU)


def list_logs(forecasts: Iterable[Forecast], name: str = "seconds") -> Logs:
    """ln(predicted / measured)."""
    return np.log([getattr(each, name) / each.run.seconds for each in forecasts])


def measure(effort: Effort) -> Report:
    """Accuracy and coverage with whole stacks, devices and networks left out, and of baselines."""
    runs = select_runs()
    forecasts = forecast(runs, fit_without(runs, find_stack))
    dense = [each for each in forecasts if not each.run.net.experts]
    rows = [
        _sum_accuracy("stacks left out", dense),
        _sum_coverage("stacks left out", dense),
    ]
    for what, find in (("devices", find_device), ("sizes of networks", find_size)):
        fits = fit_without(runs, find)
        logs = np.log(
            [predict(each.run, fits[find(each.run)]) / each.run.seconds for each in dense]
        )
        inside = float(np.mean(np.abs(logs) <= PERCENTILES[90] * SPREAD))
        note = f"80 % intervals hold {inside:.0%}"
        rows.append(Row(f"{what} left out", measure_accuracy(logs), "", note=note))
    for name, what in (("constant", "median MFU of the device"), ("rule", "6 P at 40 % MFU")):
        rows.append(Row(what, measure_accuracy(list_logs(dense, name)), ""))
    return Report("scoreboard", "published runs of transformers, unseen", tuple(rows))


def _sum_accuracy(what: str, forecasts: Sequence[Forecast]) -> Row:
    accuracy = measure_accuracy(list_logs(forecasts))
    return Row(what, accuracy, "", goals=(at_least(accuracy, 0.9),))


def _sum_coverage(what: str, forecasts: Sequence[Forecast]) -> Row:
    inside = float(np.mean([each.holds for each in forecasts]))
    goals = at_least(inside, 0.75), at_most(inside, 0.88, "")
    return Row(f"{what}: 80 % intervals hold", inside, "", goals=goals)


def find_stack(run: Run) -> str:
    """The software that ran it."""
    return run.stack


def find_device(run: Run) -> str:
    """The device, whatever its memory or cluster: a100-80gb is an a100."""
    return run.device.partition("-")[0]


def find_size(run: Run) -> str:
    """The parameters of its network, by powers of the square root of ten."""
    return str(int(2 * np.log10(run.net.parameters)))


HEAD = """# Scoreboard: published runs of transformers

<!-- python -m benchmarks.scoreboard -->

Each run's seconds of an iteration, as published or derived from what was
(`grids/catalogue/measured/README.md`), and as predicted by a fit that has not seen its software:
five numbers shared by all devices and networks. Mixtures of experts are in no fit. The 80 %
interval is {low:.2f} to {high:.2f} times the prediction.

Baselines that anyone can reproduce: *constant MFU*, the median of the same device's runs by other
software (of any device where it has no other); *6 P*, six FLOPs a parameter that a token uses
(C = 6 P x tokens, Hoffmann et al. 2022) at {fixed:.0%} of the peak. Accuracy is the mean of
1 - |predicted / measured - 1|.

Others state, on runs of their choice: Calculon 96.35 % on 8 rows of one paper; SimuMax 94.4 % on 43
rows of one machine that it had measured; learned operator models 95.0 and 90.6 % on two machines
(arXiv 2509.22832). None of these is of runs left out by software: the figures do not compare.
"""


def write_page() -> str:
    """docs/scoreboard.md."""
    runs = select_runs()
    fits = fit_without(runs, find_stack)
    forecasts = forecast(runs, fits)
    low, high = (float(np.exp(PERCENTILES[n] * SPREAD)) for n in (10, 90))
    values = [[name, *(f"{value:.6g}" for value in fits[name].values())] for name in fits]
    sections = [
        HEAD.format(low=low, high=high, fixed=FIXED_MFU),
        "## By software, device and size\n",
        tabulate([SUMS, *summarise(forecasts)]),
        "\n## Fits without each software\n",
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
    *("software", "network", "device", "PEs", "layout", "sequences", "tokens"),
    *("measured s", "predicted s", "ratio", "constant MFU", "6 P", "source"),
)


def summarise(forecasts: Sequence[Forecast]) -> Iterator[list[str]]:
    """Lines of SUMS: all dense runs, by software, by device, mixtures of experts."""
    dense = [each for each in forecasts if not each.run.net.experts]
    yield _sum_up("all dense", dense)
    for find in (find_stack, find_device):
        for name in sorted({find(each.run) for each in dense}):
            yield _sum_up(name, [each for each in dense if find(each.run) == name])
    for low, high in ((0, 1e9), (1e9, 1e10), (1e10, 1e11), (1e11, 1e13)):
        some = [each for each in dense if low <= each.run.net.parameters < high]
        yield _sum_up(f"{low / 1e9:g} to {high / 1e9:,g} billion parameters", some)
    yield _sum_up("mixtures of experts", [each for each in forecasts if each.run.net.experts])


def _sum_up(what: str, some: Sequence[Forecast]) -> list[str]:
    inside = float(np.mean([each.holds for each in some]))
    logs = list_logs(some)
    baselines = (measure_accuracy(list_logs(some, name)) for name in ("constant", "rule"))
    return [
        *(what, str(len(some)), f"{measure_accuracy(logs):.1%}", f"{inside:.0%}"),
        f"{np.exp(np.median(logs)):.2f}",
        *(f"{accuracy:.1%}" for accuracy in baselines),
    ]


def describe(each: Forecast) -> list[str]:
    """A line of COLUMNS."""
    run = each.run
    (columns,) = list_layouts(run.layout)
    ratios = (value / run.seconds for value in (each.seconds, each.constant, each.rule))
    return [
        *(run.stack, run.model, run.device, str(int(run.layout.pes[0])), write_layout(columns)),
        *(str(run.training.batch), str(run.training.length)),
        *(f"{run.seconds:.4g}", f"{each.seconds:.4g}", *(f"{ratio:.2f}" for ratio in ratios)),
        run.source,
    ]


if __name__ == "__main__":
    print(write_page(), end="")
