"""Transformers by layout against published runs: time, with stacks left out, and memory.

Times: five numbers, shared by all devices and stacks, are fitted to all rows, and again without
each stack, whose rows that fit then predicts. Memory: nothing is fitted, and what a framework's
allocator hands out is predicted; what it reserves, and what a card shows, is more.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least, at_most
from grids.entries.precision import RECIPES
from grids.entries.transformer_rates import FITTED, SPREAD, make_rates
from grids.models.architecture import Architecture
from grids.models.transformers import read_transformer
from grids.names import CATALOGUE
from kernels.layouts.memory import measure_memory
from kernels.layouts.time import time_iteration
from kernels.layouts.transformer import RECOMPUTE, Layouts, Training, Transformer
from kernels.machine.network import Network
from kernels.names.stored import PERCENTILES

RUNS = CATALOGUE / "measured" / "layouts.csv"
DEGREES = ("tensor", "context", "pipeline", "data", "expert", "chunks", "micro")

Logs = NDArray[np.float64]


@dataclass(frozen=True)
class Device:
    """Dense 16-bit peak [FLOP/s], memory [B/s], node's and adapter's links [B/s], adapters."""

    peak: float
    memory: float
    inside: float
    link: float
    links: int = 8


# Data sheets of NVIDIA; adapters as the rows' sources state them. A node has eight.
DEVICES: Mapping[str, Device] = {
    "v100": Device(125e12, 0.9e12, 150e9, 12.5e9, 4),
    "a100-40gb": Device(312e12, 1.555e12, 300e9, 25e9, 8),
    "a100-80gb": Device(312e12, 2.039e12, 300e9, 25e9),
    "a100-jean-zay": Device(312e12, 2.039e12, 300e9, 12.5e9, 4),
    "h100": Device(989e12, 3.35e12, 450e9, 50e9),
    "h100-96gb": Device(989e12, 2.4e12, 450e9, 50e9),
    "b200": Device(2250e12, 8e12, 900e9, 50e9),
}
LATENCIES = (3.4e-6, 14e-6)  # [s] NCCL, src/graph/tuning.cc: NVLink, a network
# Where the fit begins, and how far a value may be from there: standard deviations of its logarithm.
CENTRES = {"reach": 0.7, "ridges": 2.0, "attention": 0.35, "passes": 2.5, "rail": 0.8}
SPREADS = {"reach": 0.2, "ridges": 0.5, "attention": 0.4, "passes": 0.4, "rail": 0.3}
ROW_SPREAD = 0.15
MOST_ROWS = 12  # of one stack and device that are fitted, evenly chosen: they are alike


@dataclass(frozen=True)
class Run:
    """A published run: its layout, and what was measured (0: not)."""

    stack: str
    source: str
    model: str
    device: str
    net: Transformer
    layout: Layouts
    training: Training
    seconds: float
    memory: float
    memory_kind: str


@cache
def read_runs() -> tuple[Run, ...]:
    """The published runs."""
    with RUNS.open(newline="") as file:
        return tuple(map(_read_run, csv.DictReader(file)))


def _read_run(row: Mapping[str, str]) -> Run:
    degrees = [int(row[name]) for name in DEGREES]
    settings = RECOMPUTE.get(row["recompute"], 0), int(row["zero"]), int(row["sequence_parallel"])
    training = Training(
        int(row["global_batch"]),
        int(row["sequence"]),
        RECIPES[row["precision"]],
        context_by="all_to_all",
        fused_attention=row["attention"] == "fused",
    )
    layout = Layouts.from_rows(np.array([[*degrees, *settings]]))
    seconds, memory = float(row["iteration_s"] or 0), float(row["memory_gib"] or 0) * 2**30
    return Run(
        row["stack"],
        row["source"],
        row["model"],
        row["device"],
        _read_network(row["network"]),
        layout,
        training,
        seconds,
        memory,
        row["memory_kind"],
    )


def select_timed(experts: bool = False) -> list[Run]:
    """The timed runs of dense networks, or of mixtures of experts."""
    return [run for run in read_runs() if run.seconds and bool(run.net.experts) == experts]


@cache
def _read_network(text: str) -> Transformer:
    family = yaml.safe_load(text)
    model = Architecture(name="published", title="", source=(), rank=1, family=family)
    return read_transformer(model)


def predict_memory(run: Run) -> float:
    """Bytes on a PE of the fullest stage."""
    parts, _ = measure_memory(run.net, run.layout, run.training)
    return float(sum(part[0] for part in parts.values()))


def predict_seconds(run: Run, values: Mapping[str, float]) -> float:
    """Seconds of an iteration."""
    device = DEVICES[run.device]
    rates = make_rates(device.peak, device.memory, values)
    network = Network(
        span=np.array([8.0, 1e5]),
        latency=np.array(LATENCIES),
        bandwidth=np.array([device.inside, device.link]),
        pes_per_node=8.0,
        links_per_node=device.links,
        staging_latency=0.0,
        staging_bandwidth=np.inf,
        phi_halo=1.0,
        phi_gather=1.0,
    )
    terms = time_iteration(run.net, run.layout, run.training, rates, network)
    return float(sum(seconds[0] for seconds in terms.values()))


def compare_times(runs: Sequence[Run], values: Mapping[str, float]) -> Logs:
    """ln(predicted / measured) of each run."""
    return np.log([predict_seconds(run, values) / run.seconds for run in runs])


def fit(runs: Sequence[Run]) -> dict[str, float]:
    """The five values, by robust least squares; each stack and device has the same weight."""
    series = [(run.stack, run.device) for run in runs]
    weights = 1 / np.sqrt([series.count(key) for key in series]) / ROW_SPREAD
    centres, spreads = np.log([*CENTRES.values()]), np.array([*SPREADS.values()])

    def residuals(logs: Logs) -> Logs:
        errors = compare_times(runs, dict(zip(CENTRES, np.exp(logs), strict=True)))
        return np.concatenate([weights * np.arctan(2 * errors) / 2, (logs - centres) / spreads])

    solved = least_squares(residuals, centres, max_nfev=6)
    return dict(zip(CENTRES, map(float, np.exp(solved.x)), strict=True))


def choose_rows(runs: Sequence[Run]) -> list[Run]:
    """At most MOST_ROWS of each stack and device."""
    chosen = []
    for _, group in groupby(sorted(runs, key=_find_series), _find_series):
        rows = [*group]
        chosen += rows[:: -(-len(rows) // MOST_ROWS)]
    return chosen


def _find_series(run: Run) -> tuple[str, str]:
    return run.stack, run.device


def measure_accuracy(logs: Logs) -> float:
    """Mean of 1 - |predicted / measured - 1|."""
    return float(1 - np.mean(np.abs(np.exp(logs) - 1)))


def measure(effort: Effort) -> Report:
    """Times as shipped, by stack and left out; memory by stack: the same at any effort."""
    timed = select_timed()
    rows = [*_fit_all(timed), *_list_stacks(timed), *_judge_mixtures(), *_compare_memory()]
    note = "Spreads are standard deviations of ln(predicted / measured)."
    return Report("layouts", "transformers by layout against published runs", tuple(rows), note)


def _fit_all(timed: Sequence[Run]) -> list[Row]:
    values = fit(choose_rows(timed))
    shipped = compare_times(timed, FITTED)
    note = f"{len(timed)} runs; spread {np.sqrt(np.mean(shipped**2)):.2f}"
    return [
        *(
            Row(name, value, "", note=f"shipped {FITTED[name]:.3g}")
            for name, value in values.items()
        ),
        Row("times, as shipped", measure_accuracy(shipped), "", note=note),
    ]


def _list_stacks(timed: Sequence[Run]) -> list[Row]:
    """Times of each stack by a fit without it."""
    rows, errors = [], []
    for stack in sorted({run.stack for run in timed}):
        values = fit(choose_rows([run for run in timed if run.stack != stack]))
        logs = compare_times([run for run in timed if run.stack == stack], values)
        errors.append(logs)
        note = f"{len(logs)} runs; median predicted/measured {np.exp(np.median(logs)):.2f}"
        rows.append(Row(f"times of {stack}, left out", measure_accuracy(logs), "", note=note))
    logs = np.concatenate(errors)
    inside = float(np.mean(np.abs(logs) <= PERCENTILES[90] * SPREAD))
    goals = at_least(inside, 0.75, ""), at_most(inside, 0.88, "")
    note = f"spread {np.sqrt(np.mean(logs**2)):.2f}"
    return [
        *rows,
        Row("times of stacks left out", measure_accuracy(logs), "", note=note),
        Row("times of stacks left out: in 80 % intervals", inside, "", goals=goals),
    ]


def _judge_mixtures() -> list[Row]:
    """Times of mixtures of experts, which no fit has seen, by stack."""
    rows = []
    for stack, group in groupby(sorted(select_timed(experts=True), key=_find_series), _find_stack):
        logs = compare_times([*group], FITTED)
        note = f"{len(logs)} runs; median predicted/measured {np.exp(np.median(logs)):.2f}"
        rows.append(Row(f"mixtures of experts, {stack}", measure_accuracy(logs), "", note=note))
    return rows


def _find_stack(run: Run) -> str:
    return run.stack


def _compare_memory() -> list[Row]:
    """The median of predicted / measured memory of each stack, and its range."""
    measured = sorted((run for run in read_runs() if run.memory), key=_find_series)
    rows = []
    for (stack, kind), group in groupby(measured, lambda run: (run.stack, run.memory_kind)):
        ratios = np.array([predict_memory(run) / run.memory for run in group])
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        note = f"{len(ratios)} runs, {kind}; eight of ten from {low:.2f} to {high:.2f}"
        rows.append(Row(f"memory of {stack}", float(middle), "", note=note))
    return rows
