"""Published runs of transformers by layout, and what is predicted of them.

Rows: `layouts.csv`, to which rates are fitted, and `layouts_unseen.csv` of
`grids/catalogue/measured`. Memory: what a framework's allocator hands out; nothing is fitted to it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from benchmarks.clusters import MOST_PES, find_cluster
from paradl.grids.entries.calibration import DRAWN_OF_BLOCKS
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.reserves import RESERVES, find_fit_chance
from paradl.grids.entries.software import SOFTWARE, LayoutFacts
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import FITTED, RATES, find_efficiency, find_peaks
from paradl.grids.inputs.blocks import keep_logits
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.inputs.uncertainty import draw_logarithms
from paradl.grids.inputs.values import NOTHING, RowValues
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.csvfile import Record, read_records
from paradl.grids.reading.errors import InputError, add_place, shorten
from paradl.grids.reading.units import parse_count, parse_quantity
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.oracle.block_times import count_recomputed_flops, time_iteration
from paradl.kernels.oracle.blocks import sum_memory
from paradl.kernels.oracle.uncertainty import PARTS
from paradl.kernels.parallelism.layout import explain_broken
from paradl.kernels.work.block_memory import measure_memory
from paradl.kernels.work.layouts import COLUMNS, Layouts
from paradl.kernels.work.transformer import BLOCK_BY_BLOCK, Training, Transformer

RUNS = CATALOGUE / "measured" / "layouts.csv"
UNSEEN = RUNS.with_name("layouts_unseen.csv")

Logs = NDArray[np.float64]


SIZES = (
    *("sequence", "tensor", "context", "pipeline", "data", "expert", "chunks", "micro"),
    "global_batch",
)
# What names a row: settings that are read from a source or assumed may be read again.
KEY = ("source", "model", "system", *SIZES, "precision", "iteration_s", "memory_gib")


def name_row(row: Record) -> str:
    """A name of twelve hexadecimal digits, in whatever file the row stands."""
    text = "|".join(row[name] for name in KEY)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Software of the table that stacks are, or how theirs differed in their year. Its names are stacks.
MEGATRON, EXPOSED, FSDP, DEEPSPEED = (
    SOFTWARE[name].layouts for name in ("megatron", "megatron-2021", "fsdp", "deepspeed")
)
# They compute the loss as Megatron-LM does.
DEEPSPEED = replace(DEEPSPEED, loss="whole")
BRIDGE = replace(MEGATRON, overlap_experts=False)  # until 26.06 (assumption, by its experts' times)
# Assumption, by these rows' times: experts one by one (TransformerEngine's GroupedLinear).
UNGROUPED = replace(BRIDGE, grouped_experts=False)
OTHER = replace(
    DEEPSPEED,
    overlap_gradients=True,
    grouped_experts=True,
    stops_at_blocks=False,
    unsharded=BLOCK_BY_BLOCK,
    reserve=RESERVES["unknown"],
)
STACKS: Mapping[str, LayoutFacts] = {
    **{name: facts.layouts for name, facts in SOFTWARE.items()},
    "Megatron-LM 2021": EXPOSED,
    "Megatron-LM 2022": EXPOSED,
    "Megatron-LM on V100": EXPOSED,
    "Megatron-LM on B200": replace(EXPOSED, grouped_experts=False, messages="buckets"),
    "NeMo": BRIDGE,
    "Megatron-Bridge 25": UNGROUPED,
    "Megatron-Bridge 26.02": UNGROUPED,
    "Megatron-Bridge 26.04": BRIDGE,
    "Megatron-Bridge 26.06": MEGATRON,
    "llm-foundry": replace(FSDP, loss="whole"),  # flash-attn's cross entropy, in place
    "torchtitan, full recomputation": FSDP,
    "torchtitan, per-op checkpoints": FSDP,
    "torchtitan, asynchronous tensor parallelism": replace(FSDP, overlap_tensor=True),
    "Megatron-DeepSpeed": DEEPSPEED,
    # Its compiler launches whole graphs.
    "Megatron-DeepSpeed on Gaudi": replace(DEEPSPEED, stops_at_blocks=False),
    "DeepSpeed 2021": DEEPSPEED,
    "GPT-NeoX": replace(DEEPSPEED, overlap_gradients=True),
    "JAX": SOFTWARE["jax"].layouts,
    "MaxText": SOFTWARE["jax"].layouts,
    "InternEvo": OTHER,
    "OneFlow": OTHER,
    "nanotron": replace(OTHER, overlap_gradients=False, overlap_tensor=True),
}
NEVER_PAUSES = ("JAX", "MaxText", "jax")  # an iteration is one program


@dataclass(frozen=True, eq=False)
class Run:
    """A published run: its layout, and what was measured (0: not).

    key: names the row, as in tables of predictions. collection: of rows that were once unseen.
    network: the family and its settings. assumed: settings that its source does not state.
    """

    key: str
    collection: str
    stack: str
    source: str
    model: str
    system: System
    network: str
    net: Transformer
    layout: Layouts
    training: Training
    precision: str
    seconds: float
    memory: float
    memory_kind: str
    assumed: tuple[str, ...]

    @property
    def device(self) -> str:
        """The device of the system's PEs."""
        return self.system.pe.device


# Columns of whole numbers: the least and the largest.
COUNTS = {
    **dict.fromkeys(SIZES, (1, MOST_PES)),
    **dict.fromkeys(("shard", "expert_tensor"), (0, MOST_PES)),
    "zero": (0, 3),
    "sequence_parallel": (0, 1),
}
REQUIRED = (
    *(*KEY, "stack", "network", "zero", "shard", "sequence_parallel", "recompute", "attention"),
    *("memory_kind", "assumed", "note"),
)
OPTIONAL = ("set", "expert_tensor")


@cache
def read_runs(path: Path = RUNS) -> tuple[Run, ...]:
    """The published runs of a file. InputError: a mistake, or no such run exists by the rules of
    layouts."""
    return tuple(_read_run(row, where) for where, row in read_records(path, REQUIRED, OPTIONAL))


def _read_run(row: Record, where: str) -> Run:
    recompute = {"none": 0, **RECOMPUTE}
    _check_words(row, "recompute", recompute, where)
    _check_words(row, "precision", RECIPES, where)
    _check_words(row, "attention", ("fused", "unfused"), where)
    if row["iteration_s"]:
        _check_words(row, "stack", STACKS, where)
    numbers = {name: _read_count(row, name, where) for name in COUNTS if name in row}
    # A row's `sequence` is its length.
    columns = {name: numbers[name] for name in {*COLUMNS} & {*numbers} - {"sequence"}}
    columns |= {
        "recompute": recompute[row["recompute"]],
        "sequence": numbers["sequence_parallel"],
    }
    facts = STACKS.get(row["stack"], LayoutFacts())
    training = Training(
        numbers["global_batch"],
        numbers["sequence"],
        RECIPES[row["precision"]],
        fused_attention=row["attention"] == "fused",
        unsharded=facts.unsharded,
    )
    with add_place(where):
        run = Run(
            name_row(row),
            row.get("set", ""),
            row["stack"],
            row["source"],
            row["model"],
            find_cluster(row["system"]),
            row["network"],
            _read_network(row["network"]),
            Layouts.from_names([columns]),
            keep_logits(training, facts.loss),
            row["precision"],
            seconds=_read_number(row, "iteration_s"),
            memory=_read_number(row, "memory_gib") * 2**30,
            memory_kind=row["memory_kind"],
            assumed=tuple(row["assumed"].split()),
        )
        find_peaks(run.system, run.precision)
    _check_rules(run, where)
    return _fit_in_memory(run) if "recompute" in run.assumed else run


def _fit_in_memory(run: Run) -> Run:
    """Return the run with the cheapest modules that it must recompute to fit."""
    *modules, _ = RECOMPUTE.values()  # blocks save as much as `full` where stages have few
    bits = np.unique(
        [np.bitwise_or.reduce(some) for some in product(*((0, bit) for bit in modules))]
    )
    layouts = run.layout.select(np.zeros(len(bits), int))
    layouts = replace(layouts, recompute=bits)
    flops = count_recomputed_flops(run.net, layouts, run.training)
    memory = sum_memory(run.net, layouts, run.training)
    order = np.lexsort((np.bitwise_count(bits), flops))
    fits = memory[order] <= run.system.pe.memory_capacity
    chosen = order[np.argmax(fits)] if fits.any() else np.argmin(memory)
    return replace(run, layout=layouts.select(np.array([chosen])))


def _check_words(row: Record, column: str, words: Iterable[str], where: str) -> None:
    if row[column] not in words:
        raise InputError.unknown(column, row[column], words, where=where)


def _read_count(row: Record, column: str, where: str) -> int:
    count, (least, most) = parse_count(row[column], f"{where}: {column}"), COUNTS[column]
    if not least <= count <= most:
        what = f"expected {least} to {most:,}, got {count}"
        raise InputError(what, where=f"{where}: {column}")
    return count


def _read_number(row: Record, column: str) -> float:
    """A positive number of a row, or 0 of an empty field."""
    number = parse_quantity(row[column], "1", column, "12.5") if row[column] else 0.0
    if row[column] and number <= 0:
        raise InputError(f"expected more than 0, got {shorten(row[column])}", where=column)
    return number


def _check_rules(run: Run, where: str) -> None:
    broken = explain_broken(run.net, run.layout, run.training)
    if broken:
        what = f"{run.model} on {int(run.layout.pes[0])} PEs, {run.source}: no such layout"
        needs = "; ".join(f"{reason.replace('_', ' ')}: {need}" for reason, need in broken.items())
        raise InputError(f"{what}; {needs}", where=where)


@cache
def _read_network(text: str) -> Transformer:
    entry = write_network(text)
    images = find("dataset", "imagenet", Path()) if entry["rank"] == 2 else None
    return read_transformer(find("model", entry, Path()), images)


def write_network(text: str) -> dict[str, Any]:
    """A file of the network with these settings, as a mapping."""
    try:
        family = yaml.safe_load(text)
        rank = 2 if family["name"] == "vit" else 1
    except (yaml.YAMLError, TypeError, KeyError):
        what = f"expected settings of a family, got {shorten(text)}"
        raise InputError(
            what, where="network", advice="write {name: gpt, blocks: 24, ...}"
        ) from None
    return {"name": "published", "title": "", "source": (), "rank": rank, "family": family}


def predict_memory(run: Run) -> float:
    """Bytes on a PE of the fullest stage."""
    parts, _ = measure_memory(run.net, run.layout, run.training)
    return float(sum(part[0] for part in parts.values()))


def find_fits(run: Run) -> float:
    """The probability that it fits in memory."""
    reserved = find_reserved(run)
    memory, reserve = predict_memory(run) + reserved, STACKS[run.stack].reserve
    return find_fit_chance(memory, run.system.pe.memory_capacity, reserve, reserved)


def find_reserved(run: Run) -> float:
    """Bytes of context and workspaces."""
    return Machine(run.system).reserved


def predict_seconds(run: Run, values: Mapping[str, float]) -> float:
    """Seconds of an iteration."""
    return float(predict_columns(run, {name: np.array([values[name]]) for name in values})[0])


def predict_columns(run: Run, values: Mapping[str, Logs]) -> Logs:
    """Seconds of an iteration of several fits at once [fits]; values: of each fit [fits]."""
    count = len(next(iter(values.values())))
    return _time_columns(run, RowValues(set_parameters(run, values)), count)


def set_parameters(run: Run, values: Mapping[str, Logs]) -> dict[str, Logs]:
    """The parameters that several fits set for a run [fits]."""
    given = {name: values[name] for name in RATES if name in values}
    given["efficiency_blocks"] = find_efficiency(run.system, run.precision, values)
    return given | ({"host_pause": 0 * given["host_pause"]} if run.stack in NEVER_PAUSES else {})


def look_up_usual(run: Run) -> dict[str, float]:
    """The shipped values of parameters that are drawn."""
    machine = Machine(run.system)
    usual = {name: machine.look_up(name, NOTHING).item() for name in DRAWN_OF_BLOCKS}
    usual["efficiency_blocks"] = find_efficiency(run.system, run.precision)
    return usual | {"host_pause": 0.0 if run.stack in NEVER_PAUSES else FITTED["host_pause"]}


@cache
def find_elasticities(run: Run) -> Logs:
    """d ln time / d ln parameter of a run, by DRAWN_OF_BLOCKS."""
    usual, step = look_up_usual(run), 1e-3
    factors = 1 + np.expm1(step) * np.eye(len(usual) + 1, len(usual), -1)
    moved = {name: value * factors[:, n] for n, (name, value) in enumerate(usual.items())}
    logs = np.log(_time_columns(run, RowValues(moved), len(factors)))
    slopes: Logs = (logs[1:] - logs[0]) / step
    return slopes


@cache
def find_drawn_spread(run: Run) -> float:
    """Spread of the logarithm of a run's time over draws of the parameters."""
    return float(np.log(draw_seconds(run, FITTED)).std())


def draw_seconds(run: Run, values: Mapping[str, float]) -> Logs:
    """Seconds of an iteration for draws of the parameters around a fit [draws]."""
    logs, usual = draw_logarithms(run.system, None, NOTHING, DRAWN_OF_BLOCKS), look_up_usual(run)
    fits = {name: np.array([value]) for name, value in values.items()}
    usual |= {name: float(value[0]) for name, value in set_parameters(run, fits).items()}
    drawn = {name: usual[name] * np.exp(log) for name, log in logs.items()}
    # Shares stay within 1, as in cases (`kernels.oracle.uncertainty`).
    drawn |= {name: np.minimum(drawn[name], 1.0) for name in PARTS}
    return _time_columns(run, RowValues(drawn), DRAWS)


def _time_columns(run: Run, values: RowValues, count: int) -> Logs:
    """Seconds of an iteration with each of some rows of parameters [rows]."""
    stack = Stack(Machine(run.system), run.precision, software=STACKS[run.stack])
    rates, fabric = stack.find_speeds(values)
    alike = run.layout.select(np.zeros(count, int))
    terms = time_iteration(run.net, alike, run.training, rates, fabric)
    seconds: Logs = np.sum([*terms.values()], axis=0)
    return seconds
