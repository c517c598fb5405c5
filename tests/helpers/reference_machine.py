"""The machine oracle for one configuration in plain float64 Python: the second opinion.

From docs/machine.md alone, written apart from the kernels: no arrays, a function a formula; the
terms of communication are the reference's, with the bytes of a precision. b samples a pass through
a replica of p2 PEs, A passes an iteration, p1 replicas, B = A b p1; layer l takes s_l seconds a
sample and f_l a pass, forward and backward. What is divided, factors, stages are given. SI units.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import reference
from reference import Triple

Values = dict[str, float]

UPDATE_BYTES = {"none": 0.0, "sgd": 20.0, "adam": 28.0}  # moved for a weight, in every precision
STATE_BYTES = {"none": 8.0, "sgd": 12.0, "adam": 16.0}  # held for a weight, in every precision
POINT: Triple = (1, 1, 1)


@dataclass(frozen=True)
class Layer:
    """A layer; `divided` is m_l of filter and channel, s_l of a spatial group's communication."""

    x: float
    y: float
    w: float
    bias: float
    flops: float
    kind: Literal["conv2d", "conv3d", "matmul", "other"]
    kept_items: float = 0.0  # of a bytes, for the backward pass
    kept_bytes: float = 0.0  # of masks and indices, whose size no precision changes
    extents_x: Triple = POINT
    extents_y: Triple = POINT
    kernel: Triple = POINT
    channels: float = 1.0
    filters: float = 1.0
    divided: bool = False


@dataclass(frozen=True)
class Machine:
    """A system in one precision; `slowdown` is a profile's factor on every s_l and f_l."""

    peak: float
    memory_bandwidth: float
    memory_capacity: float
    pes_per_node: int
    levels: Sequence[tuple[float, float, float]]  # (PEs spanned, latency, bandwidth)
    a: float = 4.0  # bytes of an item and of a weight while computing
    g: float = 4.0  # bytes of a gradient on the wire
    state_bytes: Mapping[str, float] = field(default_factory=lambda: STATE_BYTES)
    efficiency: float = 1.0
    efficiencies: Mapping[str, float] = field(default_factory=dict)  # by kind, 1 where not named
    elementwise_passes: float = 1.0
    layer_overhead: float = 0.0
    reserved: float = 0.0
    input_rate: float = math.inf
    slowdown: float = 1.0
    links_per_node: int = 1
    staging: tuple[float, float] | None = None
    phi_halo: float = 1.0
    phi_gather: float = 1.0


@dataclass(frozen=True)
class Run:
    """What is asked; a pipeline's stages stop before the layers of `ends`, the last at G."""

    group: Literal["none", "spatial", "filter", "channel", "pipeline"] = "none"
    p1: int = 1
    p2: int = 1
    factors: Triple = POINT  # p2 = pd ph pw
    ends: tuple[int, ...] = ()
    segments: int = 1
    b: float = 1.0
    accumulate: int = 1
    samples: float = 1.0
    optimizer: Literal["none", "sgd", "adam"] = "sgd"
    recompute: bool = False
    iterations: Literal["exact", "ceil"] = "exact"
    algorithm: Literal["ring", "tree", "best"] = "ring"
    allreduce: Literal["ring", "hierarchical"] = "ring"
    phi: float | None = None

    @property
    def global_batch(self) -> float:
        """B = A b p1."""
        return self.accumulate * self.b * self.p1


# One layer on one PE.


def layer_pass(layer: Layer, machine: Machine) -> tuple[float, float]:
    """s_l, seconds a sample, and f_l, seconds a pass, of forward and backward together."""
    traffic = (layer.x + layer.y) * machine.a / machine.memory_bandwidth
    if layer.kind == "other":
        s = machine.elementwise_passes * traffic
    else:
        reached = machine.efficiency * machine.efficiencies.get(layer.kind, 1.0)
        s = 3 * max(layer.flops / (machine.peak * reached), traffic)
    weights = 3 * (layer.w + layer.bias) * machine.a / machine.memory_bandwidth
    return machine.slowdown * s, machine.slowdown * (weights + machine.layer_overhead)


def update_seconds(layer: Layer, machine: Machine, optimizer: str) -> float:
    """u_l, seconds an iteration."""
    return UPDATE_BYTES[optimizer] * (layer.w + layer.bias) / machine.memory_bandwidth


def profile_slowdown(layers: Sequence[Layer], machine: Machine, t0: float, b0: float) -> float:
    """What makes sum_l T_l(b0) the t0 seconds a sample that were measured with b0 samples."""
    passes = [layer_pass(layer, replace(machine, slowdown=1.0)) for layer in layers]
    return t0 * b0 / sum(b0 * s + f for s, f in passes)


# What a group divides.


def parts(layer: Layer, factors: Triple) -> int:
    """q_l: the parts in which a spatial group holds a layer."""
    triples = zip(factors, layer.extents_x, layer.extents_y, strict=True)
    return math.prod(min(triple) for triple in triples)


def weight_share(layer: Layer, run: Run) -> float:
    """m_l/p2 + 1 - m_l of filter and channel."""
    return 1 / run.p2 if run.group in ("filter", "channel") and layer.divided else 1.0


def item_share(layer: Layer, run: Run) -> float:
    """1/q_l of a spatial group."""
    return 1 / parts(layer, run.factors) if run.group == "spatial" else 1.0


def group_pass(layer: Layer, machine: Machine, run: Run) -> tuple[float, float]:
    """s_l and f_l of a PE's part of the layer; biases and overhead are not divided."""
    share = weight_share(layer, run)
    s, f = layer_pass(replace(layer, w=layer.w * share), machine)
    again = 4 / 3 if run.recompute else 1.0
    return again * s * share * item_share(layer, run), again * f


def stages(layers: Sequence[Layer], run: Run) -> list[range]:
    """The layers of each stage; all of them where there is no pipeline."""
    ends = run.ends if run.group == "pipeline" else (len(layers),)
    return [range(start, end) for start, end in zip((0, *ends[:-1]), ends, strict=True)]


# Terms, seconds an iteration.


def compute_terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """What one iteration computes."""
    passes = [group_pass(layer, machine, run) for layer in layers]
    updates = [
        update_seconds(layer, machine, run.optimizer) * weight_share(layer, run) for layer in layers
    ]
    slowest = max(sum(passes[i][0] for i in stage) for stage in stages(layers, run))
    fixed = max(sum(passes[i][1] for i in stage) for stage in stages(layers, run))
    piped = run.group == "pipeline"
    forward_backward = run.accumulate * run.b * slowest
    return {
        "forward_backward": forward_backward,
        "pipeline_bubble": (run.p2 - 1) / run.segments * forward_backward if piped else 0.0,
        "layer_overhead": run.accumulate * (run.p2 + run.segments - 1 if piped else 1) * fixed,
        "weight_update": max(sum(updates[i] for i in stage) for stage in stages(layers, run)),
    }


def _row(layer: Layer) -> reference.Layer:
    sizes = (layer.x, layer.y, layer.w, layer.bias, layer.flops, layer.channels, layer.filters)
    return reference.Layer(
        "layer", layer.kind, *sizes, layer.extents_x, layer.extents_y, layer.kernel
    )


def _cell(layers: Sequence[Layer], machine: Machine, run: Run, delta: float) -> reference.Cell:
    return reference.Cell(
        layers=[_row(layer) for layer in layers],
        machine=reference.Machine(
            peak_flops=machine.peak,
            efficiency=machine.efficiency,
            memory_capacity=machine.memory_capacity,
            memory_bandwidth=machine.memory_bandwidth,
            pes_per_node=machine.pes_per_node,
            links_per_node=machine.links_per_node,
            levels=machine.levels,
            staging=machine.staging,
            phi_halo=machine.phi_halo,
            phi_gather=machine.phi_gather,
        ),
        setup=reference.Setup(
            strategy=run.group,
            p=run.p1 * run.p2,
            batch=run.b,
            samples=run.samples,
            segments=run.segments,
            delta=delta,
            phi=run.phi,
            algorithm=run.algorithm,
            allreduce=run.allreduce,
        ),
        kind=run.group,
        p1=run.p1,
        p2=run.p2,
        b=run.b,
        global_batch=run.global_batch,
        split=tuple(layer.divided for layer in layers),
        stages=stages(layers, run),
        defined=True,
        factors=run.factors,
    )


IN_GROUP: dict[str, Callable[[reference.Cell], float]] = {
    "halo_exchange": reference.halo_exchange,
    "layer_collectives": reference.layer_collectives,
    "split_gather": reference.split_gather,
    "point_to_point": reference.stage_transfers,
}


def communication_terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """The group's exchanges, A times with a bytes an item; the gradients' once, with g a weight."""
    inside = _cell(layers, machine, run, machine.a)
    across = _cell(layers, machine, run, machine.g)
    terms = {name: run.accumulate * term(inside) for name, term in IN_GROUP.items()}
    return terms | {"gradient_exchange": reference.gradient_exchange(across)}


def input_wait(machine: Machine, run: Run, busy: float) -> float:
    """What a node's hosts take for its share of the samples beyond all else of the iteration."""
    nodes = max(1.0, run.p1 * run.p2 / machine.pes_per_node)
    return max(0.0, run.global_batch / (nodes * machine.input_rate) - busy)


def terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """All terms, seconds an iteration."""
    busy = compute_terms(layers, machine, run) | communication_terms(layers, machine, run)
    return busy | {"input_wait": input_wait(machine, run, sum(busy.values()))}


# Terms, seconds an epoch.

PER_SAMPLE = ("forward_backward", "pipeline_bubble")


def iterations(run: Run) -> float:
    """I = D/B, or the next whole number."""
    count = run.samples / run.global_batch
    return math.ceil(count) if run.iterations == "ceil" else count


def epoch(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """All terms of an epoch: each sample is computed once, whatever the number of iterations."""
    return {
        name: seconds * (run.samples / run.global_batch if name in PER_SAMPLE else iterations(run))
        for name, seconds in terms(layers, machine, run).items()
    }


# Memory, bytes.


def checkpointed_runs(count: int) -> list[range]:
    """c = round(sqrt(G)) runs of ceil(G/c) layers, the last with what is left."""
    length = math.ceil(count / round(math.sqrt(count)))
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def kept_and_boundary(
    layers: Sequence[Layer], machine: Machine, run: Run, stage: range
) -> tuple[float, float]:
    """kept r and boundary of a stage, bytes a sample."""
    shares = [item_share(layer, run) for layer in layers]
    inputs = [layer.x * machine.a * q for layer, q in zip(layers, shares, strict=True)]
    kept = [
        (layer.kept_items * machine.a + layer.kept_bytes) * q
        for layer, q in zip(layers, shares, strict=True)
    ]
    if not run.recompute:
        return sum(kept[i] for i in stage), 0.0
    if run.group == "pipeline":
        return sum(kept[i] for i in stage) / run.segments, inputs[stage[0]]
    runs = checkpointed_runs(len(layers))
    return max(sum(kept[i] for i in each) for each in runs), sum(inputs[each[0]] for each in runs)


def stage_memory(layers: Sequence[Layer], machine: Machine, run: Run, stage: range) -> Values:
    """The parts of a stage's PE: kept, boundary and working of one sample, states of the layers."""
    kept, boundary = kept_and_boundary(layers, machine, run, stage)
    rows = [layers[i] for i in stage]
    working = max((row.x + row.y) * machine.a * item_share(row, run) for row in rows)
    weights = sum(row.w * weight_share(row, run) + row.bias for row in rows)
    return {
        "kept": kept,
        "boundary": boundary,
        "working": working / (run.segments if run.group == "pipeline" else 1),
        "states": weights * machine.state_bytes[run.optimizer],
    }


SAMPLED = ("kept", "boundary", "working")


def memory(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """The parts of the fullest PE with b samples, and their total."""
    pes = []
    for stage in stages(layers, run):
        held = stage_memory(layers, machine, run, stage)
        held |= {name: run.b * held[name] for name in SAMPLED}
        held["reserved"] = machine.reserved
        pes.append(held | {"total": sum(held.values())})
    return max(pes, key=lambda held: held["total"])


def largest_batch(layers: Sequence[Layer], machine: Machine, run: Run, capacity: float) -> float:
    """The largest whole b that fits: each stage is affine in b; 0 where none does."""
    fitting = [math.inf]
    for stage in stages(layers, run):
        held = stage_memory(layers, machine, run, stage)
        room = capacity - machine.reserved - held["states"]
        slope = sum(held[name] for name in SAMPLED)
        if room < 0:
            return 0.0
        fitting.append(room // slope if slope else math.inf)
    return min(fitting)


BOUNDLESS = 2.0**60


def search_largest_batch(
    layers: Sequence[Layer], machine: Machine, run: Run, capacity: float
) -> float:
    """The same by trying: doubled until it does not fit, then halved."""

    def fits(b: float) -> bool:
        return memory(layers, machine, replace(run, b=b))["total"] <= capacity

    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, 2 * high
        if high > BOUNDLESS:
            return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
