"""A PE's share of each layer, and stages, in products of parallelisms: independent reference.

See reference_products.py for the decisions. Masks have a flag per layer; every layer names what it
reads.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from reference import TIE, Triple
from reference_parts import (
    POINT,
    Layer,
    Machine,
    Run,
    layer_pass,
    own_part,
    recomputed,
    rows,
    stages,
)

SLACK = 1.05  # of the least largest sum, within which stages may be
SAMPLE = -1  # the place of the sample among the layers that a layer reads


@dataclass(frozen=True, kw_only=True)
class Product:
    """What is asked: `run` is the pipeline's, whose p1 replicas have p2 = P stages.

    factors: of q_s; kind and parts: what is divided into q_f; in_space, in_parts: of each layer,
    whether a spatial group exchanges its halos, and whether its filters or channels are divided.
    """

    run: Run
    in_space: tuple[bool, ...]
    in_parts: tuple[bool, ...]
    factors: Triple = POINT
    kind: Literal["filter", "channel"] = "filter"
    parts: int = 1

    @property
    def space(self) -> int:
        """q_s."""
        return math.prod(self.factors)

    @property
    def stage(self) -> int:
        """PEs of a stage, and the stride from one stage to the next."""
        return self.space * self.parts

    @property
    def group(self) -> int:
        """PEs of a replica."""
        return self.run.p2 * self.stage

    @property
    def p(self) -> int:
        """All PEs."""
        return self.run.p1 * self.group

    @property
    def segments(self) -> int:
        """S: one stage alone is not cut into segments."""
        return self.run.segments if self.run.piped or self.run.placed else 1

    @property
    def steps(self) -> float:
        """Steps of a pass; a placed group's path has them in it."""
        return 1 if self.run.placed else self.run.beats

    @property
    def step_samples(self) -> float:
        """Samples of a step."""
        return self.run.b / self.segments


def ask_alone(layers: Sequence[Layer], run: Run) -> Product:
    """A group of one parallelism is a product with one degree; layers say which it divides."""
    divided, whole = tuple(layer.divided for layer in layers), (False,) * len(layers)
    one = replace(run, group="none", p2=1)
    if run.group == "spatial":
        one = replace(one, alike=run.p2)
        return Product(run=one, in_space=divided, in_parts=whole, factors=run.factors)
    if run.group in ("filter", "channel"):
        return Product(run=one, in_space=whole, in_parts=divided, kind=run.group, parts=run.p2)
    return Product(run=run, in_space=whole, in_parts=whole)


# A PE's part of a layer.


def own_rows(layer: Layer, product: Product) -> Layer:
    """The fullest PE's rows of a layer, all of its channels and filters."""
    return own_part(layer, Run(group="spatial", p2=product.space, factors=product.factors))


def own_share(layer: Layer, in_parts: bool, product: Product) -> Layer:
    """A PE's filters or channels of a layer, or of some rows of it."""
    one = Run(group=product.kind, p2=product.parts)
    return own_part(replace(layer, divided=in_parts), one)


def computed_parts(layers: Sequence[Layer], product: Product) -> list[Layer]:
    """What a PE computes of each layer: shares multiply."""
    parts = zip(layers, product.in_parts, strict=True)
    return [own_share(own_rows(layer, product), divided, product) for layer, divided in parts]


def held_parts(layers: Sequence[Layer], product: Product) -> list[Layer]:
    """What a PE holds of each layer: gathered outputs are whole but for rows."""
    own = computed_parts(layers, product)
    return [
        replace(own_rows(layer, product), w=part.w) for layer, part in zip(layers, own, strict=True)
    ]


def exchanged_parts(layers: Sequence[Layer], product: Product) -> list[Layer]:
    """Layers with the channels and filters of a PE's own x and dL/dy, for halos."""
    result = []
    for layer, divided in zip(layers, product.in_parts, strict=True):
        part = own_share(layer, divided, product)
        channels, filters = layer.channels * part.x / layer.x, layer.filters * part.y / layer.y
        result.append(replace(layer, channels=channels, filters=filters))
    return result


# Stages.


def crossing_items(layers: Sequence[Layer], cut: int, product: Product) -> float:
    """Items a sample, of a PE's own rows, that layers from `cut` on read of what is before it.

    As the layer before it says, or as those that read it do.
    """
    stated = layers[cut - 1].crossing
    if stated is not None:
        return stated
    read = {n for layer in layers[cut:] for n in layer.inputs if n < cut}
    sample = rows(layers[0].x, layers[0].extents_x, product.factors)
    items = (sample if n == SAMPLE else own_rows(layers[n], product).y for n in read)
    return sum(items)


def cut_stages(layers: Sequence[Layer], machine: Machine, product: Product) -> tuple[int, ...]:
    """Where the stages end: every way is tried.

    Of those whose largest sum of s_l is within SLACK, the least largest c, then the least largest
    sum, then those that are filled from the left.
    """
    own = computed_parts(layers, product)
    costs = [recomputed(part, product.run) * layer_pass(part, machine)[0] for part in own]
    crossing = [0.0] + [crossing_items(layers, cut, product) for cut in range(1, len(layers))]
    cuts = combinations(range(1, len(layers)), product.run.p2 * product.run.chunks - 1)
    ways = [(*ends, len(layers)) for ends in cuts]

    def slowest(ends: tuple[int, ...]) -> float:
        return max(sum(costs[start:end]) for start, end in zip((0, *ends), ends, strict=False))

    def most_items(ends: tuple[int, ...]) -> float:
        return max((crossing[end] for end in ends[:-1]), default=0.0)

    ways = keep_least(ways, slowest, SLACK)
    ways = keep_least(keep_least(ways, most_items), slowest)
    return max(ways)


Ends = tuple[int, ...]


def keep_least(ways: list[Ends], value: Callable[[Ends], float], slack: float = 1.0) -> list[Ends]:
    """Those of the least value, or of one as near to it as rounding or the slack."""
    most = min(map(value, ways)) * slack * (1 + TIE)
    return [way for way in ways if value(way) <= most]


def cut_product(layers: Sequence[Layer], machine: Machine, product: Product) -> Product:
    """The product with its stages."""
    ends = cut_stages(layers, machine, product)
    return replace(product, run=replace(product.run, group="pipeline", ends=ends))


def fullest(values: Iterable[float], layers: Sequence[Layer], product: Product) -> float:
    """The largest sum of any stage's layers."""
    items = list(values)
    return max(sum(items[i] for i in stage) for stage in stages(layers, product.run))


# Who may be divided so.


def find_depth(layers: Sequence[Layer]) -> int:
    """Convolutions and matrix products on the longest way through the layers."""
    depths: list[int] = []
    for layer in layers:
        before = [depths[n] for n in layer.inputs if n != SAMPLE]
        depths.append(max(before, default=0) + (layer.kind != "other"))
    return max(depths)


def fits_rows(layer: Layer, factors: Triple) -> bool:
    """Whether each part has rows, in and out."""
    sides = (layer.extents_x, layer.extents_y)
    return all(f <= n for side in sides for f, n in zip(factors, side, strict=True))


def list_limits(
    layers: Sequence[Layer], machine: Machine, product: Product, total: float
) -> Iterator[str]:
    """What forbids the product, whose fullest PE holds so many bytes: each degree has its bound."""
    run = product.run
    shared = [layer for layer, divided in zip(layers, product.in_parts, strict=True) if divided]
    counts = [
        layer.filters if product.kind == "filter" else layer.channels / layer.groups
        for layer in shared
    ]
    split = [layer for layer, exchanged in zip(layers, product.in_space, strict=True) if exchanged]
    fitting = all(fits_rows(layer, product.factors) for layer in split) and (
        product.space == 1 or split
    )
    if (
        run.p2 * run.chunks > find_depth(layers)
        or (product.parts > 1 and product.parts > min(counts, default=1))
        or not fitting
    ):
        yield "too_many_pes"
    if run.b < 1 or product.step_samples < 1:
        yield "batch_too_small"
    if total > machine.memory_capacity:
        yield "memory"
    if product.p > machine.size:
        yield "machine_too_small"
