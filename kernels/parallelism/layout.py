"""A layout: the parallelisms that divide the network of a replica, nested.

Outer parallelisms determine what an inner one divides, and how often per pass it sends: shares of
layers multiply, stages of a pipeline have different layers, and each of its steps exchanges what
its layers exchange.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from importlib import import_module
from operator import mul
from typing import Any

import numpy as np

from paradl.kernels.arrays import Cells, PerLayer, xp
from paradl.kernels.columns import Column, find_any
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.run import Run
from paradl.kernels.names.parallelisms import DATA, LAYOUT_PARTS, NEEDS, NESTING
from paradl.kernels.parallelism.divided_blocks import Rules
from paradl.kernels.parallelism.parallelism import Add, Exchange, Parallelism
from paradl.kernels.parallelism.spatial import Halos, Spatial
from paradl.kernels.work.block_memory import find_idle_modules
from paradl.kernels.work.division import Division
from paradl.kernels.work.layers import Layers, total
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Transformer

# One module per parallelism, of the same name: adding one takes a file and a row of facts.
PARALLELISMS: dict[str, Parallelism] = {
    name: import_module(f"paradl.kernels.parallelism.{name}").PARALLELISM
    for name in {*NESTING, *LAYOUT_PARTS, DATA}
}
# Those that divide blocks of transformers, in the order of their columns.
OF_BLOCKS = tuple(PARALLELISMS[name] for name in (*LAYOUT_PARTS, DATA))


class Undivided(Parallelism):
    """The whole network on each PE: serial, and each replica of data parallelism.

    It sends nothing, like a spatial group of one PE, with which it shares compiled programs.
    Together with programs shared by filter and channel, the first sweep of all ten strategies takes
    20 s of CPU instead of 27 to 30 (two cores, 2026-11).
    """

    name = "none"
    sends_as = "spatial"

    def reduce_sent(self, division: Division, shares: Layers, add: Add) -> Halos:
        """Return halos of zero size."""
        return Spatial().reduce_sent(division, shares, add)


UNDIVIDED = Undivided()


@dataclass(frozen=True)
class Layout:
    """Parallelisms inside a replica, outermost first; at least one."""

    parts: tuple[Parallelism, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parallelisms."""
        return tuple(part.name for part in self.parts)

    @property
    def stages(self) -> Parallelism:
        """The parallelism that gives PEs different layers; without one each PE runs all."""
        # At most one: `explain_conflict` refuses a pipeline of placed operators.
        return next((part for part in self.parts if part.segmented), UNDIVIDED)

    def take_part(self, division: Division) -> Layers:
        """Return the busiest PE's share of the layers; shares multiply."""
        # Outermost first: an inner one divides what a PE has of the outer ones' parts.
        return reduce(_divide, self.parts, division).layers

    def share_rows(self, division: Division) -> tuple[PerLayer | float, PerLayer | float]:
        """Return the shares of each layer's input and output that the fullest PE holds."""
        inputs, outputs = zip(*(part.share_rows(division) for part in self.parts), strict=True)
        return reduce(mul, inputs), reduce(mul, outputs)

    def reduce_sent(self, division: Division, shares: Layers) -> Mapping[str, object]:
        """Sum what PEs exchange, by parallelism."""
        sent, add = {}, partial(_sum_most, stages=self.stages, whole=division)
        for part, divided in self._nest(division):
            sent[part.sends_as] = part.reduce_sent(divided, shares, add)
        return sent

    def _nest(self, division: Division) -> Iterator[tuple[Parallelism, Division]]:
        """Yield each parallelism with the layers that its PEs exchange.

        Outer parallelisms have divided them; inner ones leave a PE a share of channels and filters.
        """
        for number, part in enumerate(self.parts):
            yield part, reduce(_thin_planes, self.parts[number + 1 :], division)
            division = _divide(division, part)

    def count_items(self, division: Division) -> dict[str, PerLayer]:
        """Count items per sample that a PE sends at each layer, by column of an explanation."""
        items: dict[str, PerLayer] = {}
        for part, divided in self._nest(division):
            items |= part.count_items(divided)
        return items


def _divide(division: Division, part: Parallelism) -> Division:
    """Return the division with layers divided by a parallelism."""
    return replace(division, layers=part.take_part(division))


def _thin_planes(division: Division, part: Parallelism) -> Division:
    """Return the division with a PE's share of channels of x, and of filters of dL/dy."""
    planes = part.share_planes(division)
    if planes is None:
        return division
    layers, (channels, filters) = division.layers, planes
    thinned = replace(layers, channels=layers.channels * channels, filters=layers.filters * filters)
    return replace(division, layers=thinned)


def _sum_most(values: PerLayer, stages: Parallelism, whole: Division) -> Cells:
    """Sum over the layers of one PE; of several stages the largest sum."""
    if stages is UNDIVIDED:
        return total(values)
    return xp.max(stages.sum_layers(values, division=whole), axis=0)


def find_part(name: str) -> Parallelism:
    """Return a parallelism by name, or the undivided network."""
    return PARALLELISMS.get(name, UNDIVIDED)


@lru_cache
def find_layout(names: tuple[str, ...]) -> Layout:
    """Return the layout of the parallelisms inside a replica."""
    parts = tuple(PARALLELISMS[name] for name in NESTING if name in names)
    return Layout(parts or (UNDIVIDED,))


def list_degrees(names: tuple[str, ...], run: Run) -> dict[str, Cells]:
    """Return the degree of each parallelism inside a replica, outermost first."""
    # In Table III there is only one.
    return {
        name: run.degrees.get(PARALLELISMS[name].sends_as, run.group)
        for name in NESTING
        if name in names
    }


def list_parts(case: Case) -> Iterator[tuple[Parallelism, Any]]:
    """Yield each parallelism of a case, outermost first, with what its PEs send."""
    sent = case.machine_work.sent
    yield from ((PARALLELISMS[name], sent[name]) for name in NESTING if name in sent)


def list_exchanges(case: Case, paths: Mapping[str, Any]) -> Iterator[Exchange]:
    """Yield the exchanges between PEs of a replica in a pass, innermost first.

    Inside a pipeline they happen in each of its steps, with the samples of a segment.
    """
    # In this order they use up the compute time that can hide them (docs/machine.md, Products).
    for number, (part, sent) in reversed([*enumerate(list_parts(case))]):
        outside = [other for other, _ in list_parts(case)][:number]
        cuts, steps = _cut(outside, case)
        batch = case.run.batch / cuts
        for exchange in part.list_exchanges(sent, case, paths[part.name], batch):
            is_once = exchange.whole or not outside
            yield exchange if is_once else replace(exchange, steps=steps, cuts=cuts)


def time_besides(case: Case) -> Iterator[tuple[str, Cells]]:
    """Yield additional seconds of a pass due to dividing, by compute term."""
    for number, (part, sent) in enumerate(list_parts(case)):
        outside = [other for other, _ in list_parts(case)][:number]
        cuts, steps = _cut(outside, case)
        batch = case.run.batch / cuts
        yield from ((name, steps * s) for name, s in part.time_step(sent, case, batch).items())
        yield from part.time_once(sent, case).items()


def _cut(outside: list[Parallelism], case: Case) -> tuple[Cells, Cells]:
    """Return into how many parts outer parallelisms cut samples, and the steps of a pass."""
    cuts = reduce(mul, (part.cut_steps(case) for part in outside), 1.0)
    return cuts, count_steps(case, outside)


def count_steps(case: Case, parts: list[Parallelism] | None = None) -> Cells:
    """Count the sequential steps of a pass in which a PE computes."""
    counted = [part for part, _ in list_parts(case)] if parts is None else parts
    return reduce(mul, (part.count_steps(case) for part in counted), 1.0)


def is_segmented(case: Case) -> bool:
    """True if samples may pass in segments."""
    return any(part.segmented for part, _ in list_parts(case))


def count_segments(case: Case) -> Cells:
    """Return S, the number of segments of a pass; 1 without segments."""
    segments: Cells = 1.0
    for part, _ in list_parts(case):
        # A pipeline of one stage leaves a pass whole.
        if part.segmented:
            segments = xp.where(xp.greater(part.find_degree(case), 1), case.run.segments, segments)
    return segments


def find_repeated(layouts: Layouts, stated: Collection[str] = ()) -> Column:
    """Mask of duplicates [layouts]: a setting has nothing to divide, or says the usual.

    stated: columns with a single value, which never make duplicates.
    """
    idle = {
        name: (getattr(layouts, name) > 0) & (getattr(layouts, need) == none)
        for name, (need, none) in NEEDS.items()
    }
    same = [(name, rule(layouts)) for part in OF_BLOCKS for name, rule in part.repeats.items()]
    return find_any(mask for name, mask in (*idle.items(), *same) if name not in stated)


def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
    """Return the rules that forbid layouts, by name."""
    rules = (part.list_rules(net, layouts, training) for part in OF_BLOCKS)
    return {name: rule for some in rules for name, rule in some.items()}


def find_reasons(net: Transformer, layouts: Layouts, training: Training) -> dict[str, Column]:
    """Masks of impossible layouts by reason [layouts], whatever their memory."""
    return {name: rule.mask for name, rule in list_rules(net, layouts, training).items()}


def explain_broken(net: Transformer, layouts: Layouts, training: Training) -> dict[str, str]:
    """Explain why rules forbid a single layout: remedies by reasons, in words."""
    rules = list_rules(net, layouts, training).values()
    return {rule.reason: rule.remedy for rule in rules if np.any(rule.mask)}


def find_marks(
    net: Transformer, layouts: Layouts, training: Training, pes_per_node: int
) -> dict[str, Column]:
    """Masks of layouts that run but are odd, by remark [layouts]."""
    marks = {name: rule for part in OF_BLOCKS for name, rule in part.marks.items()}
    return {
        **{name: rule(net, layouts, training, pes_per_node) for name, rule in marks.items()},
        # These two belong to no parallelism.
        "idle_recompute": (layouts.recompute & find_idle_modules(net, training)) > 0,
        "longer": np.full(layouts.pipeline.shape, 0 < net.longest < training.length),
    }
