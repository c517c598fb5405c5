"""A PE's part of each layer, and its time: the machine oracle in plain float64 Python.

From docs/machine.md alone, written apart from the kernels: no arrays, a function a formula. b
samples a pass through a replica of p2 PEs, A passes an iteration, p1 replicas, B = A b p1; layer l
takes s_l seconds a sample and f_l a pass, forward and backward, and t_l launches of the host,
whatever a PE has of it. What is divided, factors, stages are given. SI units. A PE's own part of a
layer is a layer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Literal

import reference
from reference import Triple
from reference_network import FREE, Algorithm, Network, Path

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
    stride: tuple[float, float, float] = POINT
    groups: float = 1.0  # of channels and filters; a filter reads C_l / groups
    crossing: float | None = None  # items a sample that cross the border behind it, y by default
    inputs: tuple[int, ...] = ()  # positions of the layers that it reads; none: the sample
    steps: int = 1  # t_l: products that wait for each other
    reads: float = 1.0  # r_l: how often weights cross the memory, of once in each of three passes
    looked_up: float = 0.0  # k_l, weights a sample of a sparse table; 0: the gradient is whole
    drawn: float = 0.0  # d_l, weights a pass of a sparse table
    again: bool = False  # it runs forward once more, where only what is dear is kept
    again_items: float = 0.0  # of a bytes: what its backward pass computes again before
    again_bytes: float = 0.0  # of masks and indices


@dataclass(frozen=True, kw_only=True)
class Machine(Network):
    """A system in one precision; `slowdown` is a profile's factor on every s_l and f_l."""

    peak: float
    memory_bandwidth: float
    memory_capacity: float
    a: float = 4.0  # bytes of an item and of a weight while computing
    g: float = 4.0  # bytes of a gradient on the wire
    state_bytes: Mapping[str, float] = field(default_factory=lambda: STATE_BYTES)
    weight_bytes: float = 4.0  # of these, a weight's own, with its copy in fp32
    efficiency: float = 1.0
    efficiencies: Mapping[str, float] = field(default_factory=dict)  # by kind, 1 where not named
    half_channels: float = 0.0
    tile_filters: float = 1.0
    kernel_overlap: float = 1.0
    window_fetch: float = math.inf  # of the memory bandwidth
    layout_passes: float = 0.0
    winograd: float = 1.0  # times fewer multiplications
    elementwise_passes: float = 1.0
    layer_overhead: float = 0.0  # o, seconds of the host to launch a layer, there and back
    reserved: float = 0.0
    input_rate: float = math.inf
    slowdown: float = 1.0
    staging: tuple[float, float] | None = None  # latency, bandwidth
    phi_halo: float = 1.0
    phi_gather: float = 1.0
    halo_startup: float = 1.0  # of staging's latency
    node_reduce: float = 1.0  # r_0 of gradients
    node_collective: float = 1.0  # r_0 of what groups gather and reduce of layers
    packing: float = math.inf  # of staging's bandwidth: what gradients are packed with
    large_message: float = math.inf  # of staging's bandwidth: what is beyond 256 MiB passes with
    host_jitter: float = 0.0  # the spread of a node's time for that
    assembly: float = math.inf  # of the memory bandwidth: what outputs are put together with
    part_overhead: float = 0.0  # seconds for a peer's part of an output
    gather_rate: float = 1.0  # of staging's bandwidth: what is gathered where a split ends
    log_open: float = 0.0  # tau, seconds until a metadata server has opened a PE's log files
    bucket: float = math.inf  # bytes of a message of gradients
    overlap: float = 0.0  # omega, the part of a window that hides messages
    jitter: float = 0.0  # the spread of a PE's time
    size: float = math.inf  # PEs

    @property
    def host_path(self) -> Path:
        """The way through host memory: no halo is faster."""
        if self.staging is None:
            return FREE
        latency, bandwidth = self.staging
        return Path(self.halo_startup * latency, 1 / bandwidth)


@dataclass(frozen=True)
class Run:
    """What is asked; a pipeline's stages stop before the layers of `ends`, the last at G.

    Of a placed group: the device of each layer, the layers whose forward and backward passes are on
    the critical path, once for each segment that is, the messages that pass there, and their items
    a sample of a segment.
    """

    group: Literal["none", "spatial", "filter", "channel", "pipeline", "placement"] = "none"
    p1: int = 1
    p2: int = 1
    factors: Triple = POINT  # p2 = pd ph pw
    ends: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    forward: tuple[int, ...] = ()
    backward: tuple[int, ...] = ()
    messages: float = 0.0
    items: float = 0.0
    segments: int = 1
    b: float = 1.0
    accumulate: int = 1
    samples: float = 1.0
    optimizer: Literal["none", "sgd", "adam"] = "sgd"
    recompute: bool = False
    iterations: Literal["exact", "ceil"] = "exact"
    algorithm: Algorithm = "auto"
    gradients: Algorithm | None = None  # of those that exchange gradients; None: as all others
    phi: float | None = None  # of the gradient exchange, beside the flows that are counted
    zero: int = 0  # Rajbhandari's stage: who shares optimizer states, gradients, weights
    schedule: Literal["gpipe", "1f1b", "zb1p", "zbv"] = "gpipe"
    alike: int = 1  # PEs of a stage with the same weights, of products
    shard: int = (
        0  # PEs among which ZeRO divides, neighbours of those with the same weights; 0: all
    )
    chunks: int = 1  # v, of a stage, which takes every p2-th of the p2 v parts that end at `ends`

    @property
    def p(self) -> int:
        """All PEs."""
        return self.p1 * self.p2

    @property
    def sharers(self) -> int:
        """PEs with the same weights, which ZeRO divides among them; of a spatial group all."""
        if self.shard:
            return self.shard
        return self.p if self.group == "spatial" else self.p1 * self.alike

    @property
    def global_batch(self) -> float:
        """B = A b p1."""
        return self.accumulate * self.b * self.p1

    @property
    def piped(self) -> bool:
        """Whether there are several stages: one alone is not cut into segments."""
        return self.group == "pipeline" and self.p2 > 1

    @property
    def beats(self) -> float:
        """Steps of a pass: the last stage waits for chunks of its first segment alone."""
        return (self.p2 - 1) / self.chunks + self.segments if self.piped else 1

    @property
    def placed(self) -> bool:
        """Whether layers are on several devices."""
        return self.group == "placement" and self.p2 > 1


def samples_of_a_pass(batch: float, scaling: str, accumulate: int, p1: int) -> float:
    """b: `batch` itself under weak scaling, B / (A p1) under strong scaling."""
    return batch / (accumulate * p1) if scaling == "strong" else batch


# One layer on one PE.


def width_efficiency(layer: Layer, machine: Machine) -> float:
    """g_l: half where K_l is `half_channels`, and the filled part of N_l's tiles."""
    window = layer.kernel[1] * layer.kernel[2] if layer.kind == "conv2d" else 1
    summed = layer.channels / layer.groups * window
    tile = machine.tile_filters / (2 if layer.kind == "conv3d" else 1)
    filled = layer.filters / (math.ceil(layer.filters / tile) * tile)
    return summed / (summed + machine.half_channels) * filled


def winograd_factor(layer: Layer, machine: Machine) -> float:
    """q_l: of dense 2-D convolutions of k x k windows, 3 to 11, and stride 1."""
    high, wide = layer.kernel[1:]
    if layer.kind != "conv2d" or layer.groups > 1 or tuple(layer.stride[1:]) != (1, 1):
        return 1.0
    if high != wide or not 3 <= high <= 11:
        return 1.0
    products = 4 * high**2 / (high + 1) ** 2  # F(2 x 2, k x k): of four outputs
    return float(machine.winograd ** (math.log(products) / math.log(2.25)))


def product_seconds(layer: Layer, machine: Machine) -> float:
    """F_l / (P e e_k g_l q_l): a sample's products forward, where memory has no part in it."""
    reached = machine.efficiency * machine.efficiencies.get(layer.kind, 1.0)
    reached *= winograd_factor(layer, machine)
    return layer.flops / (machine.peak * reached * width_efficiency(layer, machine))


def fetch_seconds(layer: Layer, machine: Machine) -> float:
    """Of a grouped convolution's windows, each fetched once for the filters of its group."""
    if layer.groups == 1:
        return 0.0
    filters_of_a_group = layer.filters / layer.groups
    items = layer.flops / (2 * filters_of_a_group)
    return items * machine.a / (machine.window_fetch * machine.memory_bandwidth)


def layer_pass(layer: Layer, machine: Machine) -> tuple[float, float]:
    """s_l, seconds a sample, and f_l, seconds a pass, of forward and backward together."""
    traffic = (layer.x + layer.y) * machine.a / machine.memory_bandwidth
    if layer.kind == "other":
        s = machine.elementwise_passes * traffic
    else:
        shorter, longer = sorted((product_seconds(layer, machine), traffic))
        s = 3 * max(longer + (1 - machine.kernel_overlap) * shorter, fetch_seconds(layer, machine))
        if layer.kind in ("conv2d", "conv3d") and layer.groups == 1:
            s += machine.layout_passes * traffic
    f = 3 * (layer.reads * layer.w + layer.bias) * machine.a / machine.memory_bandwidth
    if layer.steps > 1 and layer.kind != "other":
        f += 2 * (machine.tile_filters - 1) / 8 * product_seconds(layer, machine)
    return machine.slowdown * s, machine.slowdown * f


def update_seconds(layer: Layer, machine: Machine, optimizer: str) -> float:
    """u_l, seconds an iteration."""
    moved = layer.drawn if layer.looked_up else layer.w + layer.bias
    return UPDATE_BYTES[optimizer] * moved / machine.memory_bandwidth


# Launches, which the host makes ahead of the device.


def smooth_maximum(x: float, y: float) -> float:
    """M(x, y) = (x^4 + y^4)^(1/4): the longer of two times, 19 % more where they are equal."""
    return math.sqrt(math.hypot(x * x, y * y))


def launch_excess(device: float, host: float) -> float:
    """M - x, by which the host's y make the device's x longer.

    M^4 - x^4 = y^4 is (M - x) (M + x) (M^2 + x^2): no digit is lost where y is short.
    """
    longest = smooth_maximum(device, host)
    if longest == 0:
        return 0.0
    return host**4 / ((longest + device) * (longest**2 + device**2))


def device_seconds(measured: float, host: float) -> float:
    """X of M(X, y) = m; half of m where launches leave less than that."""
    share = max(1 - (host / measured) ** 4, 1 / 16)
    return measured * math.sqrt(math.sqrt(share))


def profile_slowdown(
    layers: Sequence[Layer],
    machine: Machine,
    t0: float,
    b0: float,
    measured: Sequence[Layer] | None = None,
) -> float:
    """What makes a pass of b0 samples, launched as fast as the host does, as long as measured.

    t0 is in seconds a sample; launches are neither slower nor faster than without the profile.
    `measured` is the network as it was measured, where its samples had another size.
    """
    passes = [layer_pass(layer, replace(machine, slowdown=1.0)) for layer in layers]
    grown = 1.0
    if measured is not None:
        grown = sum(layer.flops for layer in layers) / sum(layer.flops for layer in measured)
    host = machine.layer_overhead * sum(layer.steps for layer in layers)
    return device_seconds(t0 * grown * b0, host) / sum(b0 * s + f for s, f in passes)


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
            read = max(1 / run.p2, 1 / layer.groups)
            return replace(part, x=layer.x * read, y=layer.y / run.p2)
        return replace(part, x=layer.x / run.p2)
    return layer


def recomputed(layer: Layer, run: Run) -> float:
    """The forward pass, a third, runs twice where it is recomputed; so do its launches."""
    return 4 / 3 if run.recompute or layer.again else 1.0


def group_pass(layer: Layer, machine: Machine, run: Run) -> tuple[float, float]:
    """s_l and f_l of the own part, both as often as passes are run."""
    s, f = layer_pass(own_part(layer, run), machine)
    return recomputed(layer, run) * s, recomputed(layer, run) * f


def balanced_ends(layers: Sequence[Layer], machine: Machine, p2: int) -> tuple[int, ...]:
    """The stages whose largest sum of s_l is the least, whatever the batch."""
    costs = [layer_pass(layer, machine)[0] for layer in layers]
    return tuple(stage.stop for stage in reference.partition(costs, p2))


def stages(layers: Sequence[Layer], run: Run) -> Sequence[Sequence[int]]:
    """The layers of each stage, or device; all of them where they share one PE."""
    if run.placed:
        return [[i for i, own in enumerate(run.devices) if own == d] for d in range(run.p2)]
    ends = run.ends if run.piped else (len(layers),)
    parts = [range(start, end) for start, end in zip((0, *ends[:-1]), ends, strict=True)]
    if run.chunks == 1:
        return parts
    return [[i for part in parts[stage :: run.p2] for i in part] for stage in range(run.p2)]


def path_pass(layers: Sequence[Layer], machine: Machine, run: Run) -> tuple[float, float]:
    """s and f of the slowest stage; of a placed group, of its critical path: a third is forward.

    A segment on this path has a part of the samples, and pays f whole. The stage that is slowest
    forward, where layers run again, need not be the one that is slowest backward.
    """
    passes = [group_pass(layer, machine, run) for layer in layers]
    if run.placed:
        s = f = 0.0
        for part, on_path in ((1 / 3, run.forward), (2 / 3, run.backward)):
            s += sum(part * passes[i][0] / run.segments for i in on_path)
            f += sum(part * passes[i][1] for i in on_path)
        return s, f
    backward = [2 / 3 * layer_pass(own_part(layer, run), machine)[0] for layer in layers]
    forward = [s - part for (s, _), part in zip(passes, backward, strict=True)]
    fixed = [f for _, f in passes]
    way, back, f = (
        max(sum(values[i] for i in stage) for stage in stages(layers, run))
        for values in (forward, backward, fixed)
    )
    return way + back, f


def launches(layers: Sequence[Layer], run: Run) -> float:
    """L, a pass: of the stage or device that has most, whatever the group has of each layer.

    A device launches each of a step's segments by itself.
    """
    launched = [recomputed(layer, run) * layer.steps for layer in layers]
    most = max(sum(launched[i] for i in stage) for stage in stages(layers, run))
    return most * (run.segments if run.placed else 1)


def expected_largest(count: float) -> float:
    """z: of so many standard normal numbers (Blom 1958), a fraction where a node is not full."""
    return NormalDist().inv_cdf((count - 3 / 8) / (count + 1 / 4))
