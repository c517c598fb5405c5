"""Published runs of transformers by layout, and what is predicted of them.

Rows: `layouts.csv`, to which rates are fitted, and `layouts_unseen.csv` of
`grids/catalogue/measured`. Memory: what a framework's allocator hands out; nothing is fitted to it.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from paradl.grids.entries.calibration import DRAWN_OF_BLOCKS
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.reserves import RESERVES, find_fit_chance
from paradl.grids.entries.software import SOFTWARE, LayoutFacts
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import FITTED, RATES, find_efficiency
from paradl.grids.inputs.blocks import keep_logits
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.inputs.uncertainty import draw_logarithms
from paradl.grids.inputs.values import NOTHING, RowValues
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.oracle.block_times import count_recomputed_flops, time_iteration
from paradl.kernels.oracle.blocks import sum_memory
from paradl.kernels.oracle.uncertainty import PARTS
from paradl.kernels.parallelism.layout import find_reasons
from paradl.kernels.work.block_memory import measure_memory
from paradl.kernels.work.layouts import COLUMNS, Layouts
from paradl.kernels.work.transformer import BLOCK_BY_BLOCK, Training, Transformer

# [PEs] More than any published run has: clusters outgrow the reference designs of the catalogue.
MOST_PES = 2**20


@dataclass(frozen=True)
class Cluster:
    """A system of the catalogue, and what a cluster has instead; None: the same.

    links: adapters of a node. inside, beyond: bandwidth between the PEs of a node, and of an
    adapter [B/s]. memory: bandwidth of a PE's memory [B/s]. capacity: its memory. fp8: peak
    [FLOP/s].
    """

    system: str
    links: int | None = None
    inside: float | None = None
    beyond: float | None = None
    memory: float | None = None
    capacity: str | None = None
    fp8: float | None = None


# As the sources of the rows say. MLPerf's runs on TPUs multiply matrices in int8, which has the
# bytes of fp8 and a peak of its own (Google Cloud's pages of v5e, v5p and v6e). Logs of torchtitan
# state memory and its share, and so the capacity of H100 with 96 GB.
CLUSTERS: Mapping[str, Cluster] = {
    "v100-oneflow": Cluster("dgx1-v100", links=1),
    "a100-jean-zay": Cluster("dgx-a100-80gb", links=4, beyond=12.5e9),
    "a100-roce": Cluster("dgx-a100-80gb", links=4, beyond=12.5e9),
    "a800": Cluster("dgx-a100-80gb", inside=200e9),
    "h100-a3": Cluster("dgx-h100", links=4, beyond=25e9),
    "h100-96gb": Cluster("grand-teton", memory=2.4e12, capacity="95 GiB"),
    "tpu-v5e-int8": Cluster("tpu-v5e", fp8=394e12),
    "tpu-v5p-int8": Cluster("tpu-v5p", fp8=918e12),
    "tpu-v6e-int8": Cluster("tpu-v6e", fp8=1836e12),
}


@cache
def find_cluster(name: str) -> System:
    """Return the system that has this name here or in the catalogue, with room for any run."""
    cluster = CLUSTERS.get(name, Cluster(name))
    entry: dict[str, Any] = find("system", cluster.system, Path()).definition()
    pe, (node, *others) = entry["pe"], entry["levels"]
    node |= _keep({"bandwidth": cluster.inside})
    others = [level | _keep({"bandwidth": cluster.beyond}) for level in others]
    others[-1] |= {"pes": MOST_PES}
    peaks = pe.get("tensor_peaks", {}) | _keep({"fp8": cluster.fp8})
    of_memory = {"memory_bandwidth": cluster.memory, "memory_capacity": cluster.capacity}
    changes = {
        "name": name,
        "size": MOST_PES,
        "levels": [node, *others],
        "pe": pe | _keep(of_memory) | {"tensor_peaks": peaks},
        **_keep({"links_per_node": cluster.links}),
    }
    return System.from_definition(entry | changes)


def _keep(values: Mapping[str, float | str | None]) -> dict[str, float | str]:
    return {key: value for key, value in values.items() if value is not None}


RUNS = CATALOGUE / "measured" / "layouts.csv"
UNSEEN = RUNS.with_name("layouts_unseen.csv")

Logs = NDArray[np.float64]


# Software of the table that stacks are, or how theirs differed in their year.
MEGATRON, FSDP, DEEPSPEED = (SOFTWARE[name].layouts for name in ("megatron", "fsdp", "deepspeed"))
# They compute the loss as Megatron-LM does.
DEEPSPEED = replace(DEEPSPEED, loss="whole")
EXPOSED = replace(  # one message, after the passes
    SOFTWARE["plain"].layouts, native_attention=True, loss="whole", reserve=MEGATRON.reserve
)
BRIDGE = replace(MEGATRON, hides_experts=False)  # until 26.06 (assumption, by its experts' times)
# Assumption, by these rows' times: experts one by one (TransformerEngine's GroupedLinear).
UNGROUPED = replace(BRIDGE, groups_experts=False)
OTHER = replace(
    DEEPSPEED,
    hides_gradients=True,
    groups_experts=True,
    stops_at_blocks=False,
    unsharded=BLOCK_BY_BLOCK,
    reserve=RESERVES["unknown"],
)
STACKS: Mapping[str, LayoutFacts] = {
    "Megatron-LM 2021": EXPOSED,
    "Megatron-LM 2022": EXPOSED,
    "Megatron-LM on V100": EXPOSED,
    "Megatron-LM on B200": replace(EXPOSED, groups_experts=False, messages="buckets"),
    "NeMo": BRIDGE,
    "Megatron-Bridge 25": UNGROUPED,
    "Megatron-Bridge 26.02": UNGROUPED,
    "Megatron-Bridge 26.04": BRIDGE,
    "Megatron-Bridge 26.06": MEGATRON,
    "llm-foundry": replace(FSDP, loss="whole"),  # flash-attn's cross entropy, in place
    "torchtitan, full recomputation": FSDP,
    "torchtitan, per-op checkpoints": FSDP,
    "torchtitan, asynchronous tensor parallelism": replace(FSDP, hides_tensor=True),
    "Megatron-DeepSpeed": DEEPSPEED,
    # Its compiler launches whole graphs.
    "Megatron-DeepSpeed on Gaudi": replace(DEEPSPEED, stops_at_blocks=False),
    "DeepSpeed 2021": DEEPSPEED,
    "GPT-NeoX": replace(DEEPSPEED, hides_gradients=True),
    "JAX": SOFTWARE["jax"].layouts,
    "MaxText": SOFTWARE["jax"].layouts,
    "InternEvo": OTHER,
    "OneFlow": OTHER,
    "nanotron": replace(OTHER, hides_gradients=False, hides_tensor=True),
}
NEVER_PAUSES = ("JAX", "MaxText")  # an iteration is one program


@dataclass(frozen=True, eq=False)
class Run:
    """A published run: its layout, what was measured (0: not), the collection if it is unseen.

    assumed: settings that its source does not state.
    """

    collection: str
    stack: str
    source: str
    model: str
    system: System
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


@cache
def read_runs(path: Path = RUNS) -> tuple[Run, ...]:
    """The published runs of a file. InputError: no such run exists, by the rules of layouts."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        return tuple(_read_run(row, f"{path.name}:{rows.line_num}") for row in rows)


def _read_run(row: Mapping[str, str], where: str) -> Run:
    recompute = {"none": 0, **RECOMPUTE}[row["recompute"]]
    # A row's `sequence` is its length.
    names = {*COLUMNS} & {*row} - {"recompute", "sequence"}
    columns = {name: int(row[name]) for name in names}
    columns |= {"recompute": recompute, "sequence": int(row["sequence_parallel"])}
    layout = Layouts.from_names([columns])
    training = Training(
        int(row["global_batch"]),
        int(row["sequence"]),
        RECIPES[row["precision"]],
        fused_attention=row["attention"] == "fused",
        unsharded=STACKS[row["stack"]].unsharded,
    )
    run = Run(
        row.get("set", ""),
        row["stack"],
        row["source"],
        row["model"],
        find_cluster(row["system"]),
        _read_network(row["network"]),
        layout,
        keep_logits(training, STACKS[row["stack"]].loss),
        row["precision"],
        seconds=float(row["iteration_s"] or 0),
        memory=float(row["memory_gib"] or 0) * 2**30,
        memory_kind=row["memory_kind"],
        assumed=tuple(row["assumed"].split()),
    )
    _check_rules(run, where)
    return _fit_in_memory(run) if "recompute" in row["assumed"].split() else run


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


def _check_rules(run: Run, where: str) -> None:
    reasons = find_reasons(run.net, run.layout, run.training)
    broken = [name for name, mask in reasons.items() if mask.any()]
    if broken:
        what = f"{run.model} on {int(run.layout.pes[0])} PEs, {run.source}"
        raise InputError(f"{what}: no such layout, {', '.join(broken)}", where=where)


@cache
def _read_network(text: str) -> Transformer:
    family = yaml.safe_load(text)
    images = find("dataset", "imagenet", Path()) if family["name"] == "vit" else None
    rank = 2 if images else 1
    entry = {"name": "published", "title": "", "source": (), "rank": rank, "family": family}
    return read_transformer(Architecture.model_validate(entry), images)


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
    given = {name: values[name] for name in RATES if name in values}
    given["efficiency_blocks"] = find_efficiency(run.system.pe, values)
    if run.stack in NEVER_PAUSES:
        given["host_pause"] = np.zeros(count)
    return _time_columns(run, RowValues(given), count)


def _look_up_usual(run: Run) -> dict[str, float]:
    machine = Machine(run.system)
    usual = {name: machine.look_up(name, NOTHING).item() for name in DRAWN_OF_BLOCKS}
    return usual | {"host_pause": 0.0 if run.stack in NEVER_PAUSES else FITTED["host_pause"]}


@cache
def find_elasticities(run: Run) -> Logs:
    """d ln time / d ln parameter of a run, by DRAWN_OF_BLOCKS."""
    usual, step = _look_up_usual(run), 1e-3
    factors = 1 + np.expm1(step) * np.eye(len(usual) + 1, len(usual), -1)
    moved = {name: value * factors[:, n] for n, (name, value) in enumerate(usual.items())}
    logs = np.log(_time_columns(run, RowValues(moved), len(factors)))
    slopes: Logs = (logs[1:] - logs[0]) / step
    return slopes


@cache
def find_drawn_spread(run: Run) -> float:
    """Spread of the logarithm of a run's time over draws of the parameters."""
    logs, usual = draw_logarithms(run.system, None, NOTHING, DRAWN_OF_BLOCKS), _look_up_usual(run)
    drawn = {name: usual[name] * np.exp(log) for name, log in logs.items()}
    # Shares stay within 1, as in cases (`kernels.oracle.uncertainty`).
    drawn |= {name: np.minimum(drawn[name], 1.0) for name in PARTS}
    return float(np.log(_time_columns(run, RowValues(drawn), DRAWS)).std())


def _time_columns(run: Run, values: RowValues, count: int) -> Logs:
    """Seconds of an iteration with each of some rows of parameters [rows]."""
    stack = Stack(Machine(run.system), run.precision, software=STACKS[run.stack])
    rates, fabric = stack.find_speeds(values)
    alike = run.layout.select(np.zeros(count, int))
    terms = time_iteration(run.net, alike, run.training, rates, fabric)
    seconds: Logs = np.sum([*terms.values()], axis=0)
    return seconds
