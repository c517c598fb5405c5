"""The oracle for one configuration in plain Python floats: an independent reference.

From Table III (Kahira, Nguyen et al., HPDC 2021) and docs/oracle.md, written independently of the
kernels: no arrays, one function per formula. D samples per epoch, B global batch, I = D/B
iterations, p = p1 replicas x p2 PEs of a group, b = B/p1 samples per replica, S segments; a layer
has x, y items per sample, w weights, C channels, F filters, and s = 1 if the group splits it. A
link has alpha [s] and beta [s/B], phi is the contention of a flow. SI units throughout.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Literal

Triple = tuple[int, int, int]  # of depth, height, width
Link = tuple[float, float]  # alpha, beta with its contention

TIE = 1e-9  # relative: sums that differ by less are equal but for rounding
# Passes over the weights in memory: SGD with momentum reads w, g, v and writes w, v.
UPDATE_ACCESSES = {"sgd": 5, "adam": 7, "none": 0}
CONVOLUTIONS = ("conv", "transposed_conv")
WINDOWED = (*CONVOLUTIONS, "maxpool", "avgpool")  # what the authors' spatial groups split
LAYERS = (*WINDOWED, "fc", "linear", "free")  # the table's G; element-wise rows belong to one


@dataclass(frozen=True)
class Layer:
    """Row of the layer table; `seconds` is the measured FW + BW per sample."""

    name: str
    kind: str
    x: float
    y: float
    w: float
    bias: float
    flops: float
    channels: float
    filters: float
    extents_x: Triple
    extents_y: Triple
    kernel: Triple
    seconds: float | None = None
    groups: float = 1.0  # a filter reads C / groups channels
    stride: tuple[float, float, float] = (1.0, 1.0, 1.0)  # transposed convolutions: below 1

    @property
    def parts(self) -> tuple[float, float]:
        """Largest numbers of parts of its filters, and of the channels of a filter."""
        return (1, 1) if self.kind == "free" else (self.filters, self.channels / self.groups)


@dataclass(frozen=True)
class Machine:
    """A system; `levels` are (PEs spanned, latency, bandwidth), the narrowest first."""

    peak_flops: float
    efficiency: float
    memory_capacity: float
    memory_bandwidth: float
    pes_per_node: int
    links_per_node: int
    levels: Sequence[tuple[float, float, float]]
    staging: tuple[float, float] | None = None
    phi_halo: float = 1.0
    phi_gather: float = 1.0


@dataclass(frozen=True)
class Setup:
    """Input of a prediction: `batch` is b under weak scaling and B under strong scaling."""

    strategy: str
    p: int
    batch: float
    samples: float
    group: int | None = None
    segments: int = 4
    delta: float = 4.0
    gamma: float = 1.0
    phi: float | None = None
    scaling: Literal["weak", "strong"] = "weak"
    algorithm: Literal["ring", "tree", "best"] = "ring"
    allreduce: Literal["ring", "hierarchical"] = "ring"
    iterations: Literal["exact", "ceil"] = "exact"
    optimizer: Literal["sgd", "adam", "none"] = "sgd"
    layers: Literal["default", "all"] = "default"
    dims: str | None = None
    conventions: Literal["table", "authors"] = "table"


@dataclass(frozen=True)
class Cell:
    """Configuration with everything that is decided before the table is evaluated."""

    layers: Sequence[Layer]
    machine: Machine
    setup: Setup
    kind: str
    p1: int
    p2: int
    b: float
    global_batch: float
    split: tuple[bool, ...]  # s_l
    stages: list[range]  # all layers are one stage where there is no pipeline
    defined: bool
    factors: Triple = (1, 1, 1)  # p2 = pd ph pw

    @property
    def split_layers(self) -> list[Layer]:
        """The layers of s = 1."""
        return [layer for layer, s in zip(self.layers, self.split, strict=True) if s]

    @property
    def bounding_layers(self) -> list[Layer]:
        """The split layers whose extents bound the factors of a spatial group."""
        return bounding(self.split_layers, self.setup)


# Links and collectives; m is the whole gathered size in bytes.


def link(c: Cell, q: int, phi: float = 1.0) -> Link:
    """The link of a ring of q PEs: the narrowest level that spans them, else the widest one."""
    spanning = (level for level in c.machine.levels if level[0] >= q)
    _, latency, bandwidth = next(spanning, c.machine.levels[-1])
    return latency, phi / bandwidth


def staged_link(c: Cell, phi: float) -> Link:
    """The link of halo and split point: neighbours in a node also go through host memory."""
    alpha, beta = link(c, c.p2, phi)
    latency, bandwidth = c.machine.staging or (0.0, math.inf)
    return max(alpha, latency), max(beta, phi / bandwidth)


def all_gather(c: Cell, q: int, m: float, over: Link) -> float:
    """AG = RS: (q-1)(alpha + m/q beta) in a ring, log2(q)(alpha + m beta) in a tree."""
    alpha, beta = over
    ring = (q - 1) * (alpha + m / q * beta)
    tree = math.log2(q) * (alpha + m * beta)
    return {"ring": ring, "tree": tree, "best": min(ring, tree)}[c.setup.algorithm]


def all_reduce(c: Cell, q: int, m: float, over: Link) -> float:
    """AR(q, m): there and back."""
    return 2 * all_gather(c, q, m, over)


def point_to_point(m: float, over: Link) -> float:
    """P2P(m) = alpha + m beta."""
    alpha, beta = over
    return alpha + m * beta


# Times of a layer.


def forward(c: Cell, layer: Layer) -> float:
    """FW_l, seconds per sample: a third of a measured FW + BW, else a roofline."""
    if layer.seconds is not None:
        return layer.seconds / 3
    traffic = c.setup.delta * (layer.x + layer.y + layer.w) / c.machine.memory_bandwidth
    return max(layer.flops / (c.machine.peak_flops * c.machine.efficiency), traffic)


def backward(c: Cell, layer: Layer) -> float:
    """BW_l: two gradients, each of the work and traffic of the forward pass."""
    return 2 * forward(c, layer)


def update(c: Cell, layer: Layer) -> float:
    """WU_l, seconds per iteration: bound by memory bandwidth."""
    accesses = UPDATE_ACCESSES[c.setup.optimizer]
    return accesses * c.setup.delta * (layer.w + layer.bias) / c.machine.memory_bandwidth


# Split layers and spatial factors.


def halo(channels: float, extents: Triple, rows: Sequence[float], factors: Triple) -> float:
    """Items of a halo: rows x C x the other local extents, for each split dimension."""
    local = [extent / factor for extent, factor in zip(extents, factors, strict=True)]
    return sum(
        rows[i] * channels * math.prod(local[:i] + local[i + 1 :])
        for i in range(3)
        if factors[i] > 1
    )


def halos(layer: Layer, factors: Triple, setup: Setup) -> tuple[float, float]:
    """halo(x_l) and halo(dL/dy_l): (K-1)/2 rows.

    In the table none if neighbours' windows do not overlap: K is at most the stride.
    """
    rows = [
        (k - 1) / 2 if k > max(s, 1 / s) or setup.conventions == "authors" else 0.0
        for k, s in zip(layer.kernel, layer.stride, strict=True)
    ]
    return (
        halo(layer.channels, layer.extents_x, rows, factors),
        halo(layer.filters, layer.extents_y, rows, factors),
    )


def fits(layer: Layer, factors: Triple) -> bool:
    """True if every PE of the group gets a part of the layer's input and output."""
    sides = (layer.extents_x, layer.extents_y)
    return all(f <= n for extents in sides for f, n in zip(factors, extents, strict=True))


def has_rows(layer: Layer, setup: Setup) -> bool:
    """True if there is more than one row, in and out, along a divisible dimension."""
    sides = zip("dhw", layer.extents_x, layer.extents_y, strict=True)
    return any(min(x, y) > 1 and d in (setup.dims or "dhw") for d, x, y in sides)


def bounding(split: Sequence[Layer], setup: Setup) -> list[Layer]:
    """The split layers that bound a spatial group: by the table, those with rows.

    Layers of sequences have none, and are never divided: each of them bounds it, too.
    """
    table = setup.conventions == "table"
    return [x for x in split if not table or x.kind == "linear" or has_rows(x, setup)]


def split_mask(
    layers: Sequence[Layer], setup: Setup, kind: str, factors: Triple
) -> tuple[bool, ...]:
    """s_l: all, or those that have what the group divides."""
    if kind not in ("spatial", "filter", "channel"):
        return (False,) * len(layers)
    if setup.layers == "all":
        return (True,) * len(layers)
    if kind == "spatial" and setup.conventions == "table":
        return tuple(has_rows(layer, setup) for layer in layers)
    if kind == "spatial":
        return tuple(layer.kind in WINDOWED and fits(layer, factors) for layer in layers)
    split = [i for i, layer in enumerate(layers) if layer.kind in (*CONVOLUTIONS, "linear")]
    if kind == "channel":  # a depthwise convolution's filters have one channel each
        split = [i for i in split[1:] if layers[i].groups == 1 or layers[i].parts[1] > 1]
    return tuple(i in split for i in range(len(layers)))


def factorisations(layers: Sequence[Layer], dims: str | None, p2: int) -> list[Triple]:
    """Every (pd, ph, pw) of product p2 over `dims`, by default the dimensions of the sample."""
    rows = [extents for layer in layers for extents in (layer.extents_x, layer.extents_y)]
    allowed = [
        max(n) > 1 if dims is None else d in dims for d, *n in zip("dhw", *rows, strict=True)
    ]
    divisors = [q for q in range(1, p2 + 1) if p2 % q == 0]
    triples = [(d, h, p2 // d // h) for d in divisors for h in divisors if p2 // d % h == 0]
    return [f for f in triples if all(q == 1 or may for q, may in zip(f, allowed, strict=True))]


def spatial_factors(layers: Sequence[Layer], setup: Setup, p2: int) -> Triple | None:
    """The factors that split the most layers, then have the least halo, then are most even."""

    def split_by(factors: Triple) -> list[Layer]:
        mask = split_mask(layers, setup, "spatial", factors)
        return [layer for layer, s in zip(layers, mask, strict=True) if s]

    options = factorisations(layers, setup.dims, p2)
    fitting = {f: sum(fits(bound, f) for bound in bounding(split_by(f), setup)) for f in options}
    widest = [f for f in options if fitting[f] == max(fitting.values())]
    items = {f: sum(sum(halos(layer, f, setup)) for layer in split_by(f)) for f in widest}
    best = [f for f in widest if items[f] <= min(items.values()) * (1 + TIE)]
    return min(best, key=lambda f: (max(f), -f[2], -f[1]), default=None)


# Pipeline stages.


def fill(costs: Sequence[float], p2: int, capacity: float) -> list[range]:
    """p2 stages, each filled up from the left as long as every later one gets a layer."""
    stages, start = [], 0
    for later in reversed(range(1, p2)):
        stop, load = start + 1, costs[start]
        while stop < len(costs) - later and load + costs[stop] <= capacity:
            load += costs[stop]
            stop += 1
        stages.append(range(start, stop))
        start = stop
    return [*stages, range(start, len(costs))]


def bottleneck(costs: Sequence[float], stages: list[range]) -> float:
    """The greatest max(FW + BW); added up as `fill` does, for the two are compared exactly."""
    return max(max(accumulate(costs[stage.start : stage.stop])) for stage in stages)


def partition(costs: Sequence[float], p2: int) -> list[range]:
    """The stages with the least bottleneck T, which is some sum of consecutive layers."""
    sums = sorted({total for i in range(len(costs)) for total in accumulate(costs[i:])})
    enough = bisect_left(sums, True, key=lambda t: bottleneck(costs, fill(costs, p2, t)) <= t)
    return fill(costs, p2, sums[enough] * (1 + TIE))


# The table, per iteration.


def kept(c: Cell, value: Callable[[Cell, Layer], float], *kinds: str) -> list[float]:
    """A value times s/p2 + 1-s, layer by layer: s is that of the groups which divide it."""
    shares = [1 / c.p2 if s and c.kind in kinds else 1.0 for s in c.split]
    return [value(c, layer) * share for layer, share in zip(c.layers, shares, strict=True)]


def largest(c: Cell, values: Sequence[float]) -> float:
    """max_i of the sum over stage Gi."""
    return max(sum(values[i] for i in stage) for stage in c.stages)


def forward_backward(c: Cell) -> float:
    """Sum b (FW + BW)(s/p2 + 1-s); for pipeline b (max_i FW_Gi + max_i BW_Gi)."""
    kinds = ("spatial", "filter", "channel")
    return c.b * (largest(c, kept(c, forward, *kinds)) + largest(c, kept(c, backward, *kinds)))


def pipeline_bubble(c: Cell) -> float:
    """What b (p2+S-1)/S (max FW + max BW) has above b (max FW + max BW)."""
    return (c.p2 - 1) / c.setup.segments * forward_backward(c) if c.kind == "pipeline" else 0.0


def weight_update(c: Cell) -> float:
    """Sum WU (s/p2 + 1-s), where s is that of filter and channel; max_i WU_Gi for pipeline."""
    return largest(c, kept(c, update, "filter", "channel"))


def gradient_phi(c: Cell) -> float:
    """Flows that share a node's link: every PE of a group that splits weights reduces its own."""
    if c.setup.phi is not None:
        return c.setup.phi
    crowded = c.setup.p > c.machine.pes_per_node and c.p1 > 1 and c.p2 > 1
    if not crowded or c.kind not in ("filter", "channel", "pipeline"):
        return 1.0
    return max(1.0, min(c.p2, c.machine.pes_per_node) / c.machine.links_per_node)


def gradient_exchange(c: Cell) -> float:
    """AR(p1, delta sum w (s/p2 + 1-s)); spatial replicates weights, so it reduces over all p."""
    m = c.setup.delta * largest(c, kept(c, lambda _, layer: layer.w, "filter", "channel"))
    across = link(c, c.setup.p, gradient_phi(c))
    if c.kind != "spatial":
        return all_reduce(c, c.p1, m, across)
    if c.setup.allreduce == "ring":
        return all_reduce(c, c.setup.p, m, across)
    return all_reduce(c, c.p2, m, link(c, c.p2)) + all_reduce(c, c.p1, m, across)


def layer_collectives(c: Cell) -> float:
    """Sum over l < G, s = 1 of AG(p2, b delta y) + AR(p2, b delta y)."""
    if c.kind not in ("filter", "channel"):
        return 0.0
    over = link(c, c.p2)
    split = [layer for layer, s in zip(c.layers[:-1], c.split[:-1], strict=True) if s]
    sizes = [c.b * c.setup.delta * layer.y for layer in split]
    return sum(all_gather(c, c.p2, m, over) + all_reduce(c, c.p2, m, over) for m in sizes)


def halo_exchange(c: Cell) -> float:
    """Sum over s = 1 with a halo of 2 P2P(b delta halo(x)) + 2 P2P(b delta halo(dL/dy))."""
    if c.kind != "spatial":
        return 0.0
    over = staged_link(c, c.machine.phi_halo)
    items = [n for layer in c.split_layers for n in halos(layer, c.factors, c.setup) if n > 0]
    return sum(2 * point_to_point(c.b * c.setup.delta * n, over) for n in items)


def split_gather(c: Cell) -> float:
    """2 AG(p2, b delta y) of the last split layer, where the split ends before the last layer."""
    if c.kind != "spatial" or c.split[-1] or not any(c.split):
        return 0.0
    m = c.b * c.setup.delta * c.split_layers[-1].y
    return 2 * all_gather(c, c.p2, m, staged_link(c, c.machine.phi_gather))


def stage_transfers(c: Cell) -> float:
    """2 (p2+S-2) max_{i<p2} P2P(b/S delta y_Gi)."""
    if c.kind != "pipeline" or c.p2 == 1:
        return 0.0
    y = max(c.layers[stage[-1]].y for stage in c.stages[:-1])
    m = c.b / c.setup.segments * c.setup.delta * y
    return 2 * (c.p2 + c.setup.segments - 2) * point_to_point(m, link(c, c.p2))


def memory(c: Cell) -> float:
    """Sum gamma delta (2b(x+y) + 2w + bi); spatial divides x, y, filter and channel divide w."""
    activations = kept(c, lambda c, layer: 2 * c.b * (layer.x + layer.y), "spatial")
    weights = kept(c, lambda _, layer: 2 * layer.w, "filter", "channel")
    biases = [layer.bias for layer in c.layers]
    items = [sum(row) for row in zip(activations, weights, biases, strict=True)]
    return c.setup.gamma * c.setup.delta * largest(c, items)


# Limits.


def widths(c: Cell) -> list[float]:
    """F_l or C_l of the split layers; C of the network's first layer is never divided."""
    if c.kind == "filter":
        return [layer.parts[0] for layer in c.split_layers]
    rows = list(zip(c.layers, c.split, strict=True))[1:]
    return [layer.parts[1] for layer, s in rows if s] if c.kind == "channel" else []


def too_many_pes(c: Cell) -> bool:
    """The column "p2 at most"."""
    too_thin = not all(fits(layer, c.factors) for layer in c.bounding_layers)
    idle = c.kind in ("filter", "channel") and c.p2 > 1 and not any(c.split)
    return not c.defined or too_thin or idle or c.p2 > min(widths(c), default=math.inf)


def uneven(c: Cell) -> bool:
    """True if a division leaves a remainder."""
    sides = [n for layer in c.bounding_layers for n in (layer.extents_x, layer.extents_y)]
    extents = any(n % f for side in sides for n, f in zip(side, c.factors, strict=True))
    segments = c.kind == "pipeline" and c.p2 > 1 and c.b % c.setup.segments > 0
    batch = c.setup.scaling == "strong" and c.global_batch % c.p1 > 0
    return extents or segments or batch or any(width % c.p2 for width in widths(c))


def limits(c: Cell) -> set[str]:
    """The names of limits and marks of the cell."""
    fewest = c.setup.segments if c.kind == "pipeline" and c.p2 > 1 else 1  # one stage: uncut
    raised = {
        "memory": c.defined and memory(c) > c.machine.memory_capacity,
        "too_many_pes": too_many_pes(c),
        "batch_too_small": c.b < fewest,
        "uneven": uneven(c),
        "batch_exceeds_dataset": c.global_batch > c.setup.samples,
    }
    return {name for name, holds in raised.items() if holds}


# One configuration.

PER_SAMPLE = {"forward_backward": forward_backward, "pipeline_bubble": pipeline_bubble}
COMPUTE = PER_SAMPLE | {"weight_update": weight_update, "split_overhead": lambda _: 0.0}
COMMUNICATION = {
    "gradient_exchange": gradient_exchange,
    "layer_collectives": layer_collectives,
    "halo_exchange": halo_exchange,
    "split_gather": split_gather,
    "point_to_point": stage_transfers,
}


def placement(machine: Machine, setup: Setup) -> tuple[int, int]:
    """p1 and p2; p1 = 0 if p2 does not divide p."""
    if setup.strategy.startswith("data+"):
        p2 = setup.group or machine.pes_per_node
        return (setup.p // p2 if setup.p % p2 == 0 else 0), p2
    return {"serial": (1, 1), "data": (setup.p, 1)}.get(setup.strategy, (1, setup.p))


def decide(layers: Sequence[Layer], machine: Machine, setup: Setup, p1: int, p2: int) -> Cell:
    """Divide the batch, and choose what is split and how."""
    kind = setup.strategy.removeprefix("data+")
    strong = setup.scaling == "strong"
    c = Cell(
        layers=layers,
        machine=machine,
        setup=setup,
        kind=kind,
        p1=p1,
        p2=p2,
        b=setup.batch / p1 if strong else setup.batch,
        global_batch=setup.batch if strong else setup.batch * p1,
        split=split_mask(layers, setup, kind, (1, 1, 1)),
        stages=[range(len(layers))],
        defined=kind != "serial" or setup.p == 1,
    )
    if kind == "spatial":
        return decompose(c)
    return stage(c) if kind == "pipeline" else c


def decompose(c: Cell) -> Cell:
    """Factorise a spatial group; without anything to split there is no such group."""
    factors = spatial_factors(c.layers, c.setup, c.p2)
    split = split_mask(c.layers, c.setup, c.kind, factors or c.factors)
    divided = [layer for layer, s in zip(c.layers, split, strict=True) if s]
    nothing_to_split = not bounding(divided, c.setup) and c.p2 > 1
    if factors is None or nothing_to_split:
        return replace(c, split=(False,) * len(c.layers), defined=False)
    return replace(c, factors=factors, split=split)


def layer_starts(layers: Sequence[Layer], setup: Setup) -> list[int]:
    """The rows at which layers 1..G begin: by the authors' tool, each row is a layer.

    By the table element-wise rows belong to the layer before them, or to the first one.
    """
    rows = range(len(layers))
    if setup.conventions == "authors":
        return [*rows]
    return [0, *[n for n in rows if layers[n].kind in LAYERS][1:]]


def stage(c: Cell) -> Cell:
    """Cut the layers of a pipeline into p2 stages."""
    starts = layer_starts(c.layers, c.setup)
    if c.p2 > len(starts):
        return replace(c, defined=False)
    rows = [forward(c, layer) + backward(c, layer) for layer in c.layers]
    edges = [*starts, len(rows)]
    costs = [sum(rows[start:stop]) for start, stop in pairwise(edges)]
    stages = [range(edges[part.start], edges[part.stop]) for part in partition(costs, c.p2)]
    return replace(c, stages=stages)


def epoch(c: Cell, iterations: float) -> dict[str, float]:
    """The terms of an epoch: each sample is computed once, whatever the number of iterations."""
    terms = COMPUTE | COMMUNICATION
    if not c.defined:
        return dict.fromkeys(terms, math.nan)
    times = dict.fromkeys(terms, iterations)
    times |= dict.fromkeys(PER_SAMPLE, max(c.setup.samples / c.global_batch, 1.0))
    return {name: times[name] * term(c) for name, term in terms.items()}


def indivisible(group: int) -> dict[str, Any]:
    """The answer if the group does not divide p."""
    numbers = ("replicas", "b", "global_batch", "iterations", "comp_time", "comm_time", "memory")
    terms = dict.fromkeys(COMPUTE | COMMUNICATION, math.nan)
    limit = {"group_does_not_divide"}
    return dict.fromkeys(numbers, math.nan) | {"group": group, "terms": terms, "limit": limit}


def predict(layers: Sequence[Layer], machine: Machine, setup: Setup) -> dict[str, Any]:
    """The oracle's answer: `terms` and times in s per epoch, `memory` in bytes per PE."""
    p1, p2 = placement(machine, setup)
    if not p1:
        return indivisible(p2)
    c = decide(layers, machine, setup, p1, p2)
    passes = max(setup.samples / c.global_batch, 1.0)
    iterations = math.ceil(passes) if setup.iterations == "ceil" else passes
    terms = epoch(c, iterations)
    return {
        "replicas": c.p1,
        "group": c.p2,
        "b": c.b,
        "global_batch": c.global_batch,
        "iterations": iterations,
        "terms": terms,
        "comp_time": sum(terms[name] for name in COMPUTE),
        "comm_time": sum(terms[name] for name in COMMUNICATION),
        "memory": memory(c) if c.defined else math.nan,
        "limit": limits(c),
    }
