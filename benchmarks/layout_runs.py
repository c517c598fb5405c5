"""Published runs of transformers by layout, and what is predicted of them.

Rows: `grids/catalogue/measured/layouts.csv`. Memory: what a framework's allocator hands out;
nothing is fitted to it.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from grids.entries.names import CATALOGUE
from grids.entries.precision import RECIPES
from grids.entries.software import SOFTWARE, LayoutFacts
from grids.entries.transformer_rates import make_rates
from grids.library import find
from grids.models.architecture import Architecture
from grids.models.transformers import read_transformer
from kernels.layouts.memory import measure_memory
from kernels.layouts.time import time_iteration
from kernels.layouts.transformer import Layouts, Training, Transformer
from kernels.machine.network import Network
from kernels.names.parallelisms import RECOMPUTE

RUNS = CATALOGUE / "measured" / "layouts.csv"
DEGREES = ("tensor", "context", "pipeline", "data", "expert", "chunks", "micro")

Logs = NDArray[np.float64]


@dataclass(frozen=True)
class Device:
    """Dense 16-bit and fp32 peaks [FLOP/s], memory [B/s], node's and adapter's links [B/s].

    links: adapters of a node, which has `node` PEs. eight_bits: whether it has a peak of twice that
    in 8 bits.
    """

    peak: float
    vector: float
    memory: float
    inside: float
    link: float
    links: int = 8
    node: int = 8
    eight_bits: bool = False


# Data sheets of NVIDIA and Google; adapters as the rows' sources state them.
DEVICES: Mapping[str, Device] = {
    "v100": Device(125e12, 15.7e12, 0.9e12, 150e9, 12.5e9, 1),
    "a100-40gb": Device(312e12, 19.5e12, 1.555e12, 300e9, 25e9),
    "a100-80gb": Device(312e12, 19.5e12, 2.039e12, 300e9, 25e9),
    "a100-jean-zay": Device(312e12, 19.5e12, 2.039e12, 300e9, 12.5e9, 4),
    "a100-roce": Device(312e12, 19.5e12, 2.039e12, 300e9, 12.5e9, 4),
    "h100": Device(989e12, 67e12, 3.35e12, 450e9, 50e9, eight_bits=True),
    "h100-96gb": Device(989e12, 67e12, 2.4e12, 450e9, 50e9, eight_bits=True),
    "h100-a3": Device(989e12, 67e12, 3.35e12, 450e9, 25e9, 4, eight_bits=True),
    "h200": Device(989e12, 67e12, 4.8e12, 450e9, 50e9, eight_bits=True),
    "b200": Device(2250e12, 80e12, 8e12, 900e9, 50e9, eight_bits=True),
    "gb200": Device(2500e12, 80e12, 8e12, 900e9, 50e9, 4, 72, eight_bits=True),
    "b300": Device(2250e12, 80e12, 8e12, 900e9, 100e9, eight_bits=True),
    "gb300": Device(2500e12, 80e12, 8e12, 900e9, 100e9, 4, 72, eight_bits=True),
    # Rings on the axes of a torus: three of v5p, two of v5e, whose slices of 256 share 3.1 GB/s of
    # the data centre's network a chip (assumption).
    "tpu-v5p": Device(459e12, 76.5e12, 2.765e12, 300e9, 300e9),
    "tpu-v5e": Device(197e12, 32.8e12, 0.819e12, 100e9, 3.1e9, 256, 256),
}
LATENCIES = (3.4e-6, 14e-6)  # [s] NCCL, src/graph/tuning.cc: NVLink, a network
# Software of the table that stacks are, or how theirs differs.
MEGATRON, FSDP, DEEPSPEED = (SOFTWARE[name].layouts for name in ("megatron", "fsdp", "deepspeed"))
EXPOSED = LayoutFacts(hides_gradients=False, hides_weights=False)
OTHER = LayoutFacts(hides_weights=False, native_attention=False)
STACKS: Mapping[str, LayoutFacts] = {
    "Megatron-LM 2021": EXPOSED,
    "Megatron-LM 2022": EXPOSED,
    "Megatron-LM on V100": EXPOSED,
    "Megatron-LM on B200": EXPOSED,
    "NeMo": MEGATRON,
    "Megatron-Bridge 25": MEGATRON,
    "Megatron-Bridge 26.02": MEGATRON,
    "Megatron-Bridge 26.04": MEGATRON,
    "Megatron-Bridge 26.06": MEGATRON,
    "llm-foundry": FSDP,
    "torchtitan, full recomputation": FSDP,
    "torchtitan, per-op checkpoints": FSDP,
    "Megatron-DeepSpeed": DEEPSPEED,
    "DeepSpeed 2021": DEEPSPEED,
    "GPT-NeoX": replace(DEEPSPEED, hides_gradients=True),
    "JAX": SOFTWARE["jax"].layouts,
    "MaxText": SOFTWARE["jax"].layouts,
    "InternEvo": OTHER,
    "OneFlow": OTHER,
    "nanotron": replace(OTHER, hides_gradients=False),
}


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
    precision: str
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
    shard = 0, 0, int(row["shard"])
    training = Training(
        int(row["global_batch"]),
        int(row["sequence"]),
        RECIPES[row["precision"]],
        context_by="all_to_all",
        fused_attention=row["attention"] == "fused",
    )
    layout = Layouts.from_rows(np.array([[*degrees, *settings, *shard]]))
    seconds, memory = float(row["iteration_s"] or 0), float(row["memory_gib"] or 0) * 2**30
    return Run(
        row["stack"],
        row["source"],
        row["model"],
        row["device"],
        _read_network(row["network"]),
        layout,
        training,
        row["precision"],
        seconds,
        memory,
        row["memory_kind"],
    )


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


def predict_seconds(run: Run, values: Mapping[str, float]) -> float:
    """Seconds of an iteration."""
    return float(predict_columns(run, {name: np.array([values[name]]) for name in values})[0])


def predict_columns(run: Run, values: Mapping[str, Logs]) -> Logs:
    """Seconds of an iteration of several fits at once [fits]; values: of each fit [fits]."""
    device = DEVICES[run.device]
    narrow = bool(run.training.recipe.peak)
    speeds = device.peak * (1 + narrow), device.peak, device.vector, device.memory
    rates = make_rates(speeds, values, STACKS[run.stack], run.device)
    network = Network(
        span=np.array([device.node, 1e5]),
        latency=np.array(LATENCIES),
        bandwidth=np.array([device.inside, device.link]),
        pes_per_node=float(device.node),
        links_per_node=device.links,
        staging_latency=0.0,
        staging_bandwidth=np.inf,
        phi_halo=1.0,
        phi_gather=1.0,
    )
    alike = run.layout.select(np.zeros(len(next(iter(values.values()))), int))
    terms = time_iteration(run.net, alike, run.training, rates, network)
    seconds: Logs = np.sum([*terms.values()], axis=0)
    return seconds
