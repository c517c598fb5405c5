"""Steps that overlap: the operators of several micro-batches on the same devices.

Each operator runs once a micro-batch, on one device, which runs one thing at a time. All forward
passes, then all backward passes (GPipe, Huang et al., NeurIPS 2019); played in reverse the latter
are forward passes again, the last micro-batch first. So S micro-batches are one step of S times the
operators, whose copies share a device, and schedules are those of any step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from grids.graphs.graph import Graph
from grids.placing.problem import Floats, Placement, Problem, TimeBounds
from grids.placing.schedule import PlacementPlan, schedule_step


@dataclass(frozen=True, eq=False)
class Piped:
    """A step in micro-batches.

    whole: of all samples at once, for memory, and for moves; unrolled: operator i of micro-batch k
    at k n + i, without memory.
    """

    whole: Problem
    unrolled: Problem

    @property
    def runs(self) -> int:
        """How many micro-batches there are."""
        return self.unrolled.operators // self.whole.operators

    def schedule(self, placement: Placement) -> PlacementPlan:
        """The better of two schedules; starts are those of the unrolled operators."""
        starts, lengths = schedule_step(self.unrolled, placement * self.runs, self.runs)
        return PlacementPlan(placement, tuple(map(tuple, starts)), sum(lengths))

    @property
    def bounds(self) -> TimeBounds:
        """Bounds of any placement.

        critical_path: an operator runs all micro-batches one by one, the first of them after what
        comes before it, and the last before what comes behind; work: as of any step.
        """
        if self.runs == 1:
            return self.whole.bounds
        shape = (self.unrolled.durations.shape[0], self.runs, self.whole.operators)
        durations, heads, tails = (
            seconds.reshape(shape)
            for seconds in (self.unrolled.durations, self.unrolled.heads, self.unrolled.tails)
        )
        behind = (tails - durations).min(axis=1)
        filled = (heads.min(axis=1) + durations.sum(axis=1) + behind).max(axis=1)
        paths: Floats = np.maximum(filled, tails.max(axis=(1, 2)))
        work = self.unrolled.bounds.work
        share = self.unrolled.durations.sum(axis=1) / self.whole.devices
        return TimeBounds(float(paths.sum()), work, float(np.maximum(paths, share).sum()))


def unroll_graph(graphs: Sequence[Graph]) -> Graph:
    """One graph of those of all micro-batches, which have the same operators, one after another."""
    size = len(graphs[0])
    tensors = (
        replace(
            tensor,
            maker=first + tensor.maker,
            takers=tuple(first + taker for taker in tensor.takers),
        )
        for first, graph in zip(count(step=size), graphs, strict=False)
        for tensor in graph.tensors
    )
    operators = tuple(operator for graph in graphs for operator in graph.operators)
    return replace(graphs[0], operators=operators, tensors=tuple(tensors))


def divide_graph(graph: Graph, share: float) -> Graph:
    """The graph of a part of its samples, with times, tensors and what is kept in proportion."""
    operators = (
        replace(
            operator,
            forward=share * operator.forward,
            backward=share * operator.backward,
            kept=share * operator.kept,
        )
        for operator in graph.operators
    )
    tensors = (replace(tensor, bytes=share * tensor.bytes) for tensor in graph.tensors)
    return replace(graph, operators=tuple(operators), tensors=tuple(tensors))
