"""The machine oracle for one configuration in plain float64 Python: the second opinion.

From docs/machine.md alone, written apart from the kernels: no arrays, a function a formula; the
terms of communication are the reference's, with the bytes of a precision. b samples a pass through
a replica of p2 PEs, A passes an iteration, p1 replicas, B = A b p1; layer l takes s_l seconds a
sample and f_l a pass, forward and backward. What is divided, factors, stages are given. SI units.
A PE's own part of a layer is a layer.
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
    kept_items: float = 0.0  # of a bytes, for the backward pass; the sample is the first layer's
    kept_bytes: float = 0.0  # of masks and indices, whose size no precision changes
    extents_x: Triple = POINT
    extents_y: Triple = POINT
    kernel: Triple = POINT
    channels: float = 1.0  # C_l, in
    filters: float = 1.0  # N_l, out
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
    half_channels: float = 0.0
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

    @property
    def piped(self) -> bool:
        """Whether there are several stages: one alone is not cut into segments."""
        return self.group == "pipeline" and self.p2 > 1


def samples_of_a_pass(batch: float, scaling: str, accumulate: int, p1: int) -> float:
    """b: `batch` itself under weak scaling, B / (A p1) under strong scaling."""
    return batch / (accumulate * p1) if scaling == "strong" else batch


# One layer on one PE.


def width_efficiency(layer: Layer, machine: Machine) -> float:
    """g_l: half for each of C_l and N_l that is `half_channels`, all of it for many."""
    half = machine.half_channels
    return math.prod(n / (n + half) for n in (layer.channels, layer.filters))


def layer_pass(layer: Layer, machine: Machine) -> tuple[float, float]:
    """s_l, seconds a sample, and f_l, seconds a pass, of forward and backward together."""
    traffic = (layer.x + layer.y) * machine.a / machine.memory_bandwidth
    if layer.kind == "other":
        s = machine.elementwise_passes * traffic
    else:
        reached = machine.efficiency * machine.efficiencies.get(layer.kind, 1.0)
        reached *= width_efficiency(layer, machine)
        s = 3 * max(layer.flops / (machine.peak * reached), traffic)
    weights = 3 * (layer.w + layer.bias) * machine.a / machine.memory_bandwidth
    return machine.slowdown * s, machine.slowdown * (weights + machine.layer_overhead)


def update_seconds(layer: Layer, machine: Machine, optimizer: str) -> float:
    """u_l, seconds an iteration."""
    return UPDATE_BYTES[optimizer] * (layer.w + layer.bias) / machine.memory_bandwidth


def profile_slowdown(
    layers: Sequence[Layer],
    machine: Machine,
    t0: float,
    b0: float,
    measured: Sequence[Layer] | None = None,
) -> float:
    """What makes sum_l T_l(b0) the t0 seconds a sample that were measured with b0 samples.

    `measured` is the network as it was measured, where its samples had another size.
    """
    passes = [layer_pass(layer, replace(machine, slowdown=1.0)) for layer in layers]
    grown = 1.0
    if measured is not None:
        grown = sum(layer.flops for layer in layers) / sum(layer.flops for layer in measured)
    return t0 * grown * b0 / sum(b0 * s + f for s, f in passes)


# What a PE of a group has of a layer.


def rows(items: float, extents: Triple, factors: Triple) -> float:
    """The fullest PE's part of `items`: ceil(X / f) of X rows in each dimension."""
    held = [math.ceil(n / f) for n, f in zip(extents, factors, strict=True)]
    return items * math.prod(held) / math.prod(extents)


def own_part(layer: Layer, run: Run) -> Layer:
    """What a PE computes, as a layer: its share of whatever the group divides."""
    if run.group == "spatial":
        return replace(
            layer,
            x=rows(layer.x, layer.extents_x, run.factors),
            y=rows(layer.y, layer.extents_y, run.factors),
            flops=rows(layer.flops, layer.extents_y, run.factors),
            kept_items=rows(layer.kept_items, layer.extents_y, run.factors),
            kept_bytes=rows(layer.kept_bytes, layer.extents_y, run.factors),
        )
    if run.group in ("filter", "channel") and layer.divided:
        part = replace(layer, flops=layer.flops / run.p2, w=layer.w / run.p2)
        if run.group == "filter":
            return replace(part, y=layer.y / run.p2)
        return replace(part, x=layer.x / run.p2)
    return layer


def group_pass(layer: Layer, machine: Machine, run: Run) -> tuple[float, float]:
    """s_l and f_l of the own part; the forward pass, a third, twice where it is recomputed."""
    s, f = layer_pass(own_part(layer, run), machine)
    again = 4 / 3 if run.recompute else 1.0
    return again * s, again * f


def balanced_ends(layers: Sequence[Layer], machine: Machine, p2: int) -> tuple[int, ...]:
    """The stages whose largest sum of s_l is the least, whatever the batch."""
    costs = [layer_pass(layer, machine)[0] for layer in layers]
    return tuple(stage.stop for stage in reference.partition(costs, p2))


def stages(layers: Sequence[Layer], run: Run) -> list[range]:
    """The layers of each stage; all of them where there is no pipeline."""
    ends = run.ends if run.piped else (len(layers),)
    return [range(start, end) for start, end in zip((0, *ends[:-1]), ends, strict=True)]


# Terms, seconds an iteration.


def compute_terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """What one iteration computes."""
    passes = [group_pass(layer, machine, run) for layer in layers]
    updates = [update_seconds(own_part(layer, run), machine, run.optimizer) for layer in layers]
    slowest = max(sum(passes[i][0] for i in stage) for stage in stages(layers, run))
    fixed = max(sum(passes[i][1] for i in stage) for stage in stages(layers, run))
    forward_backward = run.accumulate * run.b * slowest
    return {
        "forward_backward": forward_backward,
        "pipeline_bubble": (run.p2 - 1) / run.segments * forward_backward if run.piped else 0.0,
        "pass_overhead": run.accumulate * (run.p2 + run.segments - 1 if run.piped else 1) * fixed,
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


def samples_of_a_node(machine: Machine, run: Run) -> float:
    """N, of an iteration: the fullest node's share, or whole samples where a group needs them."""
    shared = run.global_batch / max(1.0, run.p1 * run.p2 / machine.pes_per_node)
    if run.group in ("filter", "channel", "pipeline"):
        return max(shared, run.accumulate * run.b)
    return shared


def input_wait(machine: Machine, run: Run, busy: float) -> float:
    """What a node's hosts take for its samples beyond all else of the iteration."""
    return max(0.0, samples_of_a_node(machine, run) / machine.input_rate - busy)


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

SAMPLED = ("others", "received", "peak")


def checkpointed_runs(count: int) -> list[range]:
    """R = round(sqrt(G)) runs of ceil(G/R) layers, the last with what is left."""
    length = math.ceil(count / round(math.sqrt(count)))
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def kept_bytes(layer: Layer, machine: Machine) -> float:
    """What the backward pass reads, bytes a sample."""
    return layer.kept_items * machine.a + layer.kept_bytes


def peak_bytes(layers: Sequence[Layer], machine: Machine) -> float:
    """The most that is there in one pass, bytes a sample: all kept so far, and two gradients."""
    most = kept = 0.0
    for layer in layers:
        kept += kept_bytes(layer, machine)
        most = max(most, kept + (layer.x + layer.y) * machine.a)
    return most


def segments_memory(held: Sequence[Layer], machine: Machine, run: Run, first: bool) -> Values:
    """A stage of several, bytes a sample: one segment goes backward, the others wait."""
    inputs = held[0].x * machine.a
    if run.recompute:
        kept = inputs if first else 0.0
    else:
        kept = sum(kept_bytes(layer, machine) for layer in held)
    return {
        "others": kept * (1 - 1 / run.segments),
        "received": 0.0 if first else inputs,
        "peak": peak_bytes(held, machine) / run.segments,
    }


def network_memory(held: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """All layers on a PE, bytes a sample: at once, or from checkpoint to checkpoint if less."""
    peak = peak_bytes(held, machine)
    whole = {"others": 0.0, "received": 0.0, "peak": peak}
    if not run.recompute:
        return whole
    runs = checkpointed_runs(len(held))
    checkpoints = sum(held[each.start].x * machine.a for each in runs)
    one = max(peak_bytes(held[each.start : each.stop], machine) for each in runs)
    return whole | {"others": checkpoints, "peak": one} if checkpoints + one < peak else whole


def stage_memory(layers: Sequence[Layer], machine: Machine, run: Run, stage: range) -> Values:
    """The parts of a stage's PE: SAMPLED ones in bytes a sample, and the states of its layers."""
    parts = [own_part(layers[i], run) for i in stage]
    # Filter and channel groups divide weights alone: gathered outputs are whole.
    held = parts if run.group == "spatial" else [layers[i] for i in stage]
    if run.piped:
        sampled = segments_memory(held, machine, run, first=stage.start == 0)
    else:
        sampled = network_memory(held, machine, run)
    weights = sum(layer.w + layer.bias for layer in parts)
    return sampled | {"states": weights * machine.state_bytes[run.optimizer]}


def memory(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """The parts of the fullest PE with b samples, and their total."""
    pes = []
    for stage in stages(layers, run):
        held = stage_memory(layers, machine, run, stage)
        held |= {name: run.b * held[name] for name in SAMPLED}
        held["reserved"] = machine.reserved
        pes.append(held | {"total": sum(held.values())})
    return max(pes, key=lambda held: held["total"])


def exceeds_memory(layers: Sequence[Layer], machine: Machine, run: Run) -> bool:
    """Whether the cell is forbidden."""
    return memory(layers, machine, run)["total"] > machine.memory_capacity


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
