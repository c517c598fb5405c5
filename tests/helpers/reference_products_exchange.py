"""What PEs of a product exchange, and what of it computing hides: by hand, too.

See reference_products.py for what was decided. A step is a segment's in one stage; `fullest` takes
the stage that has most of a number.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from reference_exchange import (
    Exchange,
    beyond_large,
    expose,
    halos,
    size_class,
    slow,
    slowest_node,
)
from reference_network import (
    FREE,
    Path,
    Ring,
    all_gather,
    all_reduce,
    as_measured,
    crowded_path,
    path,
    ring,
    top_level,
)
from reference_parts import Layer, Machine, launch_excess, launches, path_pass, stages
from reference_products_parts import (
    Product,
    computed_parts,
    crossing_items,
    exchanged_parts,
    fullest,
    own_rows,
)

# What is exchanged of filters and channels.


def gathered_sizes(layers: Sequence[Layer], product: Product) -> list[float]:
    """Items a sample of each output that peers put together: 0 of the others, and of the last."""
    if product.parts == 1:
        return [0.0] * len(layers)
    some = [*product.in_parts[:-1], False]
    return [own_rows(x, product).y if one else 0.0 for x, one in zip(layers, some, strict=True)]


class Sent(NamedTuple):
    """Collectives of one class of sizes: items a sample, and how many."""

    items: float
    number: float


def gathered_classes(layers: Sequence[Layer], product: Product) -> list[Sent]:
    """Of each class the most of any stage; one class alone where no fastest algorithm is sought."""
    sizes = gathered_sizes(layers, product)
    sent = [y for y in sizes if y > 0]
    sought = product.run.algorithm == "auto"
    classes = [
        (size_class(y, min(sent), max(sent)) if sought else 0) if y > 0 else -1 for y in sizes
    ]
    result = []
    for kind in set(classes) - {-1}:
        mine = [one == kind for one in classes]
        items = [y * one for y, one in zip(sizes, mine, strict=True)]
        result.append(Sent(fullest(items, layers, product), fullest(mine, layers, product)))
    return result


def layer_collectives(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """A step's: gather and reduce-scatter by filter, all-reduce and gather by channel."""
    over = ring(machine, product.p, product.parts, 1, machine.node_collective)
    first, algorithm = all_gather if product.kind == "filter" else all_reduce, product.run.algorithm
    seconds = 0.0
    for sent in gathered_classes(layers, product):
        m = product.step_samples * machine.a * sent.items
        seconds += first(algorithm, over, m, sent.number)
        seconds += all_gather(algorithm, over, m, sent.number)
    return seconds


def split_overhead(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """A step's: outputs are put together of all peers' parts, by filter there and back."""
    classes = gathered_classes(layers, product)
    directions = 2 if product.kind == "filter" else 1
    items = sum(sent.items for sent in classes)
    others = product.step_samples * machine.a * items * (1 - 1 / product.parts)
    seconds = directions * others / (machine.assembly * machine.memory_bandwidth)
    if product.kind == "filter":
        count = sum(sent.number for sent in classes)
        seconds += 2 * (product.parts - 1) * machine.part_overhead * count
    return seconds


# Halos, and the gather where the split ends.


def all_halos(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """A step's, of either side: most messages, and most items, of any stage."""
    if product.space == 1:
        return 0.0
    outermost = next(factor for factor in product.factors if factor > 1)
    stride = product.space // outermost * product.parts
    between = path(machine, product.p, outermost, stride)
    alpha, beta = between.bound(machine.host_path, machine.phi_halo)
    own = zip(exchanged_parts(layers, product), product.in_space, strict=True)
    sent = [halos(layer, product.factors) if split else (0.0, 0.0) for layer, split in own]
    messages = fullest((sum(n > 0 for n in both) for both in sent), layers, product)
    m = product.step_samples * machine.a * fullest(map(sum, sent), layers, product)
    return 2 * (messages * alpha + m * beta)


def split_gather(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """A step's, of the last split layer's whole output, where the network goes on behind it."""
    split = [x for x, one in zip(layers, product.in_space, strict=True) if one]
    if product.space == 1 or product.in_space[-1] or not split:
        return 0.0
    m = product.step_samples * machine.a * split[-1].y
    if machine.staging is not None:
        beta = machine.phi_gather * machine.host_path.beta / machine.gather_rate
        return 2 * (1 - 1 / product.space) * m * beta
    over = ring(machine, product.p, product.space, product.parts, machine.node_collective)
    over = over.bound(FREE, machine.phi_gather)
    return 2 * all_gather(product.run.algorithm, over, m)


def sample_scatter(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """A pass's: samples are handed out before they are cut into segments."""
    if machine.staging is None or product.space == 1:
        return 0.0
    large = beyond_large(machine, product.run.b * machine.a * layers[0].x)
    return large * slowest_node(machine, product.p)


# Stages.


def segment_transfer(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """One segment's message from a PE of a stage to the one behind it."""
    alpha, beta = path(machine, product.p, product.run.p2, product.stage)
    items = max(crossing_items(layers, end, product) for end in product.run.ends[:-1])
    return alpha + product.step_samples * machine.a * items * beta


def placed_messages(machine: Machine, product: Product) -> float:
    """What passes on a placed group's critical path: nothing hides it."""
    run = product.run
    alpha, beta = path(machine, product.p, run.p2, 1)
    return run.messages * alpha + product.step_samples * machine.a * run.items * beta


# Gradients.


def touched_weights(
    layers: Sequence[Layer], weights: Sequence[float], product: Product, hosted: bool = False
) -> float:
    """The most of any stage; of sparse tables the rows: gathered of all replicas, or the table.

    An all-gather of rows takes as long as an all-reduce of half of them. PEs of a group that has
    hosts have the same samples, and so the same rows.
    """
    samples = product.run.accumulate * product.run.b

    def of_stage(stage: Sequence[int]) -> float:
        tables = [i for i in stage if layers[i].looked_up]
        rows = sum(layers[i].drawn + samples * layers[i].looked_up for i in tables)
        sent = rows if hosted else product.run.p1 * rows / 2
        whole = sum(weights[i] for i in stage if i not in tables)
        return whole + min(sum(weights[i] for i in tables), sent)

    return max(map(of_stage, stages(layers, product.run)))


def rings_at(product: Product) -> Callable[[float], int]:
    """How many different rings of gradients so many neighbours are on: stages x peers."""
    return lambda pes: product.parts * min(product.run.p2, math.ceil(pes / product.stage))


def gradient_ring(machine: Machine, product: Product) -> Ring:
    """Of the PEs that hold the same weights: the parts of a stage, in each of the replicas."""
    reached, q, k = machine.node_reduce, product.run.p1 * product.space, machine.pes_per_node
    if product.run.p1 == 1:
        return ring(machine, product.p, q, product.parts, reached)
    rings = rings_at(product)
    s = rings(k)
    h = min(q, k // s) if k % s == 0 else 1
    chain = min(q, max(1, k // s))
    top = top_level(machine, product.p, product.p)

    def way(value: int) -> Path:
        return crowded_path(
            machine, product.p, top, lambda pes: min(pes, value * rings(pes)), reached
        )

    n = math.ceil(q / h)
    rail = way(h) if n > 1 else FREE
    inside, switches = machine.inside(product.p, reached), machine.switch_latency
    lines = as_measured(machine, lambda line: gradient_ring(line, product))
    return Ring(q, h, n, way(1), chain, math.ceil(q / chain), inside, rail, switches, lines)


def shard_ring(machine: Machine, product: Product, replicas: int, apart: int) -> Ring:
    """Of so many replicas, so many apart, which have no spatial parts."""
    stride = product.group * apart
    return ring(machine, product.p, replicas, stride, machine.node_reduce)


class Hosted(NamedTuple):
    """Gradients that pass hosts: seconds, and bytes."""

    seconds: float
    bytes: float


def hosted_gradients(layers: Sequence[Layer], machine: Machine, product: Product) -> Hosted | None:
    """Of what spatial parts share, or peers without replicas do not divide; else None.

    A ring has h PEs in each of its n nodes, whose leaders exchange what is large of spatial parts.
    """
    spatial, alone = product.space > 1, product.run.p1 == 1 and product.parts > 1
    if machine.staging is None or not (spatial or alone):
        return None
    k, share = machine.pes_per_node, product.in_parts
    weights = [part.w for part in computed_parts(layers, product)]
    if spatial:
        q, s, between = (
            product.run.p1 * product.space,
            rings_at(product)(k),
            gradient_ring(machine, product).way,
        )
    else:
        weights = [0.0 if one else w for w, one in zip(weights, share, strict=True)]
        q, s, between = (
            product.parts,
            1,
            path(machine, product.p, product.parts, 1, machine.node_reduce),
        )
    m = machine.g * touched_weights(layers, weights, product, hosted=True)
    if m == 0:
        return Hosted(0.0, 0.0)
    h = min(q, max(1.0, k / s))
    n, phi = q / h, 1.0 if product.run.phi is None else product.run.phi
    inside = machine.inside(product.p, machine.node_reduce)
    within = 2 * (h - 1) * (inside.alpha + m / h * phi * inside.beta)
    across = 2 * (n - 1) * (between.alpha + m / n * phi * between.beta)
    jitter = slowest_node(machine, product.p)
    part = (1 - 1 / n) * jitter if spatial else 1 - 1 / q
    return Hosted(within + across + slow(machine, m) * part, m)


def gradient_packing(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """An iteration's; a channel group by itself packs again what is large."""
    hosted = hosted_gradients(layers, machine, product)
    if hosted is None:
        return 0.0
    packed = 2 * hosted.bytes * machine.host_path.beta / machine.packing
    again = product.kind == "channel" and product.space == 1
    return packed + slow(machine, hosted.bytes) * again


# Overlap.


def step_window(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """What a step may hide while it runs, waits for launches included."""
    parts = computed_parts(layers, product)
    slowest, fixed = path_pass(parts, machine, product.run)
    device = product.step_samples * slowest + fixed
    host = machine.layer_overhead * launches(parts, product.run)
    return machine.overlap * (device + launch_excess(device, host))


def step_halos(layers: Sequence[Layer], machine: Machine, product: Product) -> Exchange:
    """A step's halos, behind its computing."""
    return expose(all_halos(layers, machine, product), step_window(layers, machine, product))


def free_window(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """What halos leave of a step's window."""
    window, used = (
        step_window(layers, machine, product),
        step_halos(layers, machine, product).hidden,
    )
    return max(0.0, window - used)


def stage_transfers(layers: Sequence[Layer], machine: Machine, product: Product) -> Exchange:
    """A pass's: fill and drain are waited for, and start-ups of further chunks."""
    if product.run.p2 == 1:
        return Exchange(0.0)
    if product.run.placed:
        return Exchange(placed_messages(machine, product))
    one, v = segment_transfer(layers, machine, product), product.run.chunks
    others = v * product.segments - 1
    startup = path(machine, product.p, product.run.p2, product.stage).alpha
    further = 2 * (v - 1) * product.segments * startup
    window = others / v * free_window(layers, machine, product)
    between = expose(2 * others * one - further, window)
    filling = 2 * (product.run.p2 - 1) * one
    return Exchange(filling + further + between.exposed, between.hidden)


def gradient_exchange(layers: Sequence[Layer], machine: Machine, product: Product) -> Exchange:
    """An iteration's: buckets but the last one hide behind the last segment's backward part."""
    hosted, run = hosted_gradients(layers, machine, product), product.run
    # ZeRO's third stage: 2 A gathers and a reduce-scatter, each half of an all-reduce.
    often = run.accumulate + 0.5 if run.zero == 3 else 1.0
    if hosted is not None:
        return Exchange(often * hosted.seconds)
    weights = [part.w for part in computed_parts(layers, product)]
    m = machine.g * touched_weights(layers, weights, product)
    count = min(fullest((w > 0 for w in weights), layers, product), max(1.0, m / machine.bucket))
    if count == 0:
        return Exchange(0.0)
    algorithm, phi = run.gradients or run.algorithm, 1.0 if run.phi is None else run.phi
    over = gradient_ring(machine, product)
    if run.shard:
        over = shard_ring(machine, product, run.shard, 1)
    seconds = often * all_reduce(algorithm, over.bound(FREE, phi), m, count)
    if run.shard:
        across = shard_ring(machine, product, run.p1 // run.shard, run.shard)
        seconds += all_reduce(algorithm, across.bound(FREE, phi), m / run.shard, count)
    backward = 3 / 4 if run.recompute else 2 / 3
    window = (1 - 1 / count) * backward * free_window(layers, machine, product)
    early = expose(seconds - seconds / count, window)
    return Exchange(seconds / count + early.exposed, early.hidden)


# Log files.


def log_files(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """An iteration's: of each exchange of a convolution, and of gradients, on every PE."""
    masks = [product.in_space] if product.space > 1 else []
    if product.parts > 1 and product.kind == "filter":
        masks += [(*product.in_parts[:-1], False)]
    kinds = [layer.kind in ("conv2d", "conv3d") for layer in layers]
    logged = sum(
        fullest((a and b for a, b in zip(mask, kinds, strict=True)), layers, product)
        for mask in masks
    )
    between = 1 if product.run.p1 > 1 else 0
    return (
        (2 * product.run.accumulate * product.steps * logged + between)
        * product.p
        * machine.log_open
    )
