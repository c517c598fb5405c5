"""Exchanges and overlap: the independent reference in plain Python floats.

Only from docs/machine.md, sections Network and Overlap; halos' items are the paper's. Messages
inside a group are per pass, those of gradients per iteration.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from reference import TIE, Triple
from reference_hosts import (
    exchange_seconds,
    exchanged_weights,
    gather_seconds,
    passes_hosts,
    scatter_seconds,
    touched_weights,
)
from reference_network import FREE, all_gather, all_reduce, path, ring
from reference_parts import Layer, Machine, Run, Values, path_pass, stages

CLASSES = 2  # of size, of the messages inside a filter or channel group


class Exchange(NamedTuple):
    """Seconds that PEs wait, and those behind their computing."""

    exposed: float
    hidden: float = 0.0


def expose(seconds: float, window: float) -> Exchange:
    """What is above the window, and what is hidden in it."""
    return Exchange(max(0.0, seconds - window), min(seconds, window))


# Collectives of filter and channel groups.


def size_class(y: float, smallest: float, largest: float) -> int:
    """Of CLASSES of equal width in ln y; what lies on a border belongs to the larger one."""
    if largest == smallest:
        return 0
    place = CLASSES * math.log(y / smallest) / math.log(largest / smallest)
    return min(CLASSES - 1, math.floor(place + TIE))


def gathered_layers(layers: Sequence[Layer]) -> list[Layer]:
    """Those whose outputs a filter or channel group exchanges: the split ones, but the last."""
    return [layer for layer in layers[:-1] if layer.divided]


def message_classes(layers: Sequence[Layer]) -> list[tuple[int, float]]:
    """(K, items a sample) of each class of messages."""
    sizes = [layer.y for layer in gathered_layers(layers)]
    classes: dict[int, list[float]] = {}
    for y in sizes:
        classes.setdefault(size_class(y, min(sizes), max(sizes)), []).append(y)
    return [(len(kind), sum(kind)) for kind in classes.values()]


def layer_collectives(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """Gather and reduce-scatter by filter, all-reduce and gather by channel; never hidden."""
    if run.group not in ("filter", "channel"):
        return 0.0
    over = ring(machine, run.p, run.p2, 1, machine.node_collective)
    first = all_gather if run.group == "filter" else all_reduce
    classes = [(run.b * machine.a * items, count) for count, items in message_classes(layers)]
    return sum(
        first(run.algorithm, over, m, count) + all_gather(run.algorithm, over, m, count)
        for m, count in classes
    )


# Halos, and the gather where the split ends.


def overlap_rows(kernel: float, stride: float) -> float:
    """Rows on either side that the next window reads, too: where the windows lie."""
    return max(0, kernel - stride) / 2


def halo_items(channels: float, extents: Triple, rows: Sequence[float], factors: Triple) -> float:
    """Those rows, times channels and the PE's other extents, of the dimensions that are split."""
    local = [extent / factor for extent, factor in zip(extents, factors, strict=True)]
    return sum(
        rows[i] * channels * math.prod(local[:i] + local[i + 1 :])
        for i in range(3)
        if factors[i] > 1
    )


def halos(layer: Layer, factors: Triple) -> tuple[float, float]:
    """Items of x_l and of dL/dy_l, of which a stride has one row where x_l has many.

    Of a transposed convolution (a stride below 1) windows lie on dL/dy_l, and x_l has the one row.
    """
    rows_x, rows_y = [], []
    for kernel, stride in zip(layer.kernel, layer.stride, strict=True):
        if stride < 1:
            rows_y.append(overlap_rows(kernel, 1 / stride))
            rows_x.append(rows_y[-1] * stride)
        else:
            rows_x.append(overlap_rows(kernel, stride))
            rows_y.append(rows_x[-1] / stride)
    return (
        halo_items(layer.channels, layer.extents_x, rows_x, factors),
        halo_items(layer.filters, layer.extents_y, rows_y, factors),
    )


def all_halos(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """H: 2 P2P of either halo of every split layer, where there is one."""
    if run.group != "spatial" or run.p2 == 1:
        return 0.0
    outermost = next((factor for factor in run.factors if factor > 1), 1)
    between = path(machine, run.p, outermost, run.p2 // outermost)
    alpha, beta = between.bound(machine.host_path, machine.phi_halo)
    split = [layer for layer in layers if layer.divided]
    items = [n for layer in split for n in halos(layer, run.factors) if n > 0]
    return sum(2 * (alpha + run.b * machine.a * n * beta) for n in items)


def split_gather(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """Of b a y of the last split layer, where the network goes on behind it; 2 AG without hosts."""
    split = [layer for layer in layers if layer.divided]
    if run.group != "spatial" or layers[-1].divided or not split:
        return 0.0
    m = run.b * machine.a * split[-1].y
    if machine.staging is not None:
        return gather_seconds(machine, run, m)
    over = ring(machine, run.p, run.p2, 1, machine.node_collective)
    return 2 * all_gather(run.algorithm, over.bound(FREE, machine.phi_gather), m)


# Stages.


def crossing_items(layers: Sequence[Layer], run: Run) -> float:
    """c: the most that crosses a border of two stages."""
    last = [layers[stage[-1]] for stage in stages(layers, run)[:-1]]
    return max(layer.y if layer.crossing is None else layer.crossing for layer in last)


def segment_transfer(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """P: one segment's P2P(b/S a c) between two stages."""
    alpha, beta = path(machine, run.p, run.p2, 1)
    return alpha + run.b / run.segments * machine.a * crossing_items(layers, run) * beta


def placed_messages(machine: Machine, run: Run) -> float:
    """What passes on a placed group's critical path: nothing hides it."""
    if run.p2 == 1:
        return 0.0
    alpha, beta = path(machine, run.p, run.p2, 1)
    return run.messages * alpha + run.b / run.segments * machine.a * run.items * beta


# Gradients.


def gradient_bytes(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """m: the weights that a PE exchanges, of a pipeline the stage's that has most."""
    return machine.g * max(
        touched_weights(layers, machine, run, stage) for stage in stages(layers, run)
    )


def gradient_messages(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """K: so many buckets, at least one, and no more than there are layers with weights."""
    weights = exchanged_weights(layers, machine, run)
    tensors = max(sum(weights[i] > 0 for i in stage) for stage in stages(layers, run))
    buckets = gradient_bytes(layers, machine, run) / machine.bucket
    return min(tensors, max(1.0, buckets))


def gradient_seconds(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """T: all of the all-reduce; a spatial group has all weights on every PE.

    ZeRO's third stage: 2 A all-gathers and a reduce-scatter, each half of an all-reduce.
    """
    often = run.accumulate + 0.5 if run.zero == 3 else 1.0
    return often * all_reduce_seconds(layers, machine, run)


def all_reduce_seconds(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """One all-reduce of all gradients."""
    m, messages = (f(layers, machine, run) for f in (gradient_bytes, gradient_messages))
    if passes_hosts(machine, run):
        return exchange_seconds(machine, run, m)
    q, s = (run.p, 1) if run.group == "spatial" else (run.p1, run.p2)
    phi = 1.0 if run.phi is None else run.phi
    over = ring(machine, run.p, q, s, machine.node_reduce).bound(FREE, phi)
    return all_reduce(run.gradients or run.algorithm, over, m, messages)


# Overlap.


def computing(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """F: what depends on samples, seconds a pass; of a pipeline its slowest stage's, of a placed
    group its critical path's.
    """
    return run.b * path_pass(layers, machine, run)[0]


def halo_exchange(layers: Sequence[Layer], machine: Machine, run: Run) -> Exchange:
    """A pass's halos hide behind all of its computing."""
    window = machine.overlap * computing(layers, machine, run)
    return expose(all_halos(layers, machine, run), window)


def stage_transfers(layers: Sequence[Layer], machine: Machine, run: Run) -> Exchange:
    """Fill and drain are waited for; other segments' computing hides what is between."""
    if run.group == "placement":
        return Exchange(placed_messages(machine, run))
    if not run.piped:
        return Exchange(0.0)
    one, segments = segment_transfer(layers, machine, run), run.segments
    window = machine.overlap * (segments - 1) / segments * computing(layers, machine, run)
    between = expose(2 * (segments - 1) * one, window)
    return Exchange(2 * (run.p2 - 1) * one + between.exposed, between.hidden)


def gradient_window(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """W: what the last segment's backward part leaves, of the first bucket's end to its own."""
    backward = 3 / 4 if run.recompute else 2 / 3
    free = machine.overlap * computing(layers, machine, run)
    free -= halo_exchange(layers, machine, run).hidden
    started = 1 - 1 / gradient_messages(layers, machine, run)
    segments = run.segments if run.piped or run.placed else 1
    return started * max(0.0, backward * free) / segments


def gradient_exchange(layers: Sequence[Layer], machine: Machine, run: Run) -> Exchange:
    """The last bucket is waited for; what no layer weighs is not sent; hosts' one message waits."""
    if passes_hosts(machine, run):
        return Exchange(gradient_seconds(layers, machine, run))
    messages = gradient_messages(layers, machine, run)
    if messages == 0:
        return Exchange(0.0)
    seconds = gradient_seconds(layers, machine, run)
    early = expose(seconds - seconds / messages, gradient_window(layers, machine, run))
    return Exchange(seconds / messages + early.exposed, early.hidden)


# Log files.


def logged_convolutions(layers: Sequence[Layer], run: Run) -> int:
    """L_c: of those that a filter or spatial group of several PEs exchanges, whatever they send."""
    if run.p2 == 1 or run.group not in ("filter", "spatial"):
        return 0
    logged = gathered_layers(layers) if run.group == "filter" else layers
    return sum(layer.divided and layer.kind in ("conv2d", "conv3d") for layer in logged)


def log_files(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """Every PE's, of each exchange of an iteration: one server opens them one after the other."""
    inside = 2 * run.accumulate * logged_convolutions(layers, run)
    between = 1 if run.p1 > 1 else 0
    return (inside + between) * run.p * machine.log_open


# Of an iteration.


def exchanges(layers: Sequence[Layer], machine: Machine, run: Run) -> dict[str, Exchange]:
    """Those that computing can hide, seconds an iteration; gradients have the last pass."""
    passes = {"halo_exchange": halo_exchange, "point_to_point": stage_transfers}
    inside = {name: term(layers, machine, run) for name, term in passes.items()}
    once = {"gradient_exchange": gradient_exchange(layers, machine, run)}
    return once | {
        name: Exchange(run.accumulate * value.exposed, run.accumulate * value.hidden)
        for name, value in inside.items()
    }


def communication_terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """What PEs wait for, seconds an iteration."""
    exposed = {name: exchange.exposed for name, exchange in exchanges(layers, machine, run).items()}
    return exposed | {
        "layer_collectives": run.accumulate * layer_collectives(layers, machine, run),
        "split_gather": run.accumulate * split_gather(layers, machine, run),
        "log_files": log_files(layers, machine, run),
        "sample_scatter": run.accumulate * scatter_seconds(layers, machine, run),
    }
