"""Steps in micro-batches: the same operators for several micro-batches on the same devices.

Every operator runs once per micro-batch, on one device, which runs one operator at a time. All
forward passes come first, then all backward passes (GPipe, Huang et al., NeurIPS 2019). Played in
reverse, backward passes are forward passes with the last micro-batch first. So a step in S
micro-batches is one step of S times the operators, whose copies share a device.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from paradl.grids.graphs.graph import Graph
from paradl.grids.placing.problem import Placement, Problem, StepBounds
from paradl.grids.placing.schedule import PlacementPlan, plan_placement
from paradl.kernels.names.arrays import Floats


@dataclass(frozen=True, eq=False)
class Piped:
    """A step in micro-batches.

    whole: all samples at once, for memory and for the search's moves. unrolled: operator i of
    micro-batch k at position k n + i, without a memory limit.
    """

    whole: Problem
    unrolled: Problem

    @property
    def runs(self) -> int:
        """Number of micro-batches."""
        return self.unrolled.operators // self.whole.operators

    def schedule(self, placement: Placement) -> PlacementPlan:
        """Return the better of two schedules; starts are those of the unrolled operators."""
        plan = plan_placement(self.unrolled, placement * self.runs, self.runs)
        return replace(plan, placement=placement)

    @property
    def bounds(self) -> StepBounds:
        """Lower bounds that hold for any placement.

        critical_path: an operator runs its micro-batches one by one, the first after everything
        that precedes it, the last before everything that follows. work: as for any step.
        """
        if self.runs == 1:
            return self.whole.bounds
        # Copies of an operator share a device, so their durations add up.
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
        return StepBounds(float(paths.sum()), work, float(np.maximum(paths, share).sum()))


def unroll_graph(graphs: Sequence[Graph]) -> Graph:
    """Concatenate the graphs of all micro-batches, which have the same operators."""
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
    """Return the graph for a share of its samples; times, tensors and kept bytes scale with it."""
    # Weights stay whole: each micro-batch uses all of them.
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
