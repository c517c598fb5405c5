"""Steps that overlap: the operators of several micro-batches on the same devices.

Each operator runs once a micro-batch, on one device, which runs one thing at a time. All forward
passes, then all backward passes (GPipe, Huang et al., NeurIPS 2019); played in reverse the latter
are forward passes again, the last micro-batch first. So S micro-batches are one step of S times the
operators, whose copies share a device, and schedules are those of any step.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grids.graphs.graph import Graph, Tensor
from grids.placing.bounds import Bounds, bound_step
from grids.placing.exact import Plan
from grids.placing.highs import Highs
from grids.placing.packing import pack
from grids.placing.problem import Floats, Placement, Problem
from grids.placing.schedule import schedule_step
from grids.placing.search import search
from grids.placing.solve import Answer, Tell, search_plan

# Of the time: until when the placement of a step at once is searched, with which this one begins.
AT_ONCE = 0.2
ROUNDS = 100


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

    def schedule(self, placement: Placement) -> Plan:
        """The better of two schedules; starts are those of the unrolled operators."""
        starts, lengths = schedule_step(self.unrolled, placement * self.runs, self.runs)
        return Plan(placement, tuple(map(tuple, starts)), sum(lengths))

    def bound(self) -> Bounds:
        """Bounds of any placement.

        critical_path: an operator runs all micro-batches one by one, the first of them after what
        comes before it, and the last before what comes behind; work: as of any step.
        """
        shape = (self.unrolled.durations.shape[0], self.runs, self.whole.operators)
        durations, heads, tails = (
            each.reshape(shape)
            for each in (self.unrolled.durations, self.unrolled.heads, self.unrolled.tails)
        )
        behind = (tails - durations).min(axis=1)
        filled = (heads.min(axis=1) + durations.sum(axis=1) + behind).max(axis=1)
        paths: Floats = np.maximum(filled, tails.max(axis=(1, 2)))
        work = bound_step(self.unrolled).work
        share = self.unrolled.durations.sum(axis=1) / self.whole.devices
        return Bounds(float(paths.sum()), work, float(np.maximum(paths, share).sum()))


def unroll_graph(graphs: Sequence[Graph]) -> Graph:
    """One graph of those of all micro-batches, which have the same operators, one after another."""
    size = len(graphs[0])
    tensors = (
        Tensor(k * size + each.maker, tuple(k * size + taker for taker in each.takers), each.bytes)
        for k, graph in enumerate(graphs)
        for each in graph.tensors
    )
    operators = tuple(operator for graph in graphs for operator in graph.operators)
    return replace(graphs[0], operators=operators, tensors=tuple(tensors))


def divide_graph(graph: Graph, share: float) -> Graph:
    """The graph of a part of its samples, with times, tensors and what is kept in proportion."""
    operators = (
        replace(
            each,
            forward=share * each.forward,
            backward=share * each.backward,
            kept=share * each.kept,
        )
        for each in graph.operators
    )
    tensors = (replace(each, bytes=share * each.bytes) for each in graph.tensors)
    return replace(graph, operators=tuple(operators), tensors=tuple(tensors))


def solve_piped(
    piped: Piped,
    highs: Highs,
    time_limit: float,
    first: Sequence[Placement] = (),
    tell: Tell = lambda best, bound: None,
) -> Answer:
    """The best placement that a search meets within `time_limit` seconds, and the bounds.

    It begins with the placement of a step at once, and with `first`.
    """
    solver = _Solver(piped, time_limit, tell)
    try:
        solver.run(highs, first)
    except KeyboardInterrupt:
        return replace(solver.answer(), interrupted=True)
    return solver.answer()


@dataclass
class _Solver:
    """What is known so far."""

    piped: Piped
    limit: float
    tell: Tell
    best: tuple[float, Placement] | None = None
    impossible: bool = False
    begin: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.bounds = self.piped.bound()

    def run(self, highs: Highs, first: Sequence[Placement]) -> None:
        """Search, from where there is room."""
        whole = self.piped.whole
        starts = list(first)
        if not whole.fits((0,) * whole.operators):
            packing = pack(whole, highs, self._left)
            self.impossible = packing.impossible
            starts += [] if packing.placement is None else [packing.placement]
        if self.impossible:
            return
        for each in starts:
            self._measure(each)
        starts.append(search_plan(replace(whole, room=np.inf), AT_ONCE * self.limit).placement)
        search(
            whole,
            {},
            ROUNDS,
            lambda: self._left() > 0,
            first=starts,
            goal=self.bounds.proven,
            measure=self._measure,
        )

    def answer(self) -> Answer:
        """The best so far."""
        plan = None if self.best is None else self.piped.schedule(self.best[1])
        return Answer(plan, self.bounds, self.impossible)

    def _left(self) -> float:
        return self.begin + self.limit - time.monotonic()

    def _measure(self, placement: Placement) -> float:
        """A step's time [s]; the best of those that fit is kept, whatever ends the search."""
        seconds = self.piped.schedule(placement).time
        better = self.best is None or seconds < self.best[0]
        if better and self.piped.whole.fits(placement):
            self.best = (seconds, placement)
            self.tell(seconds, self.bounds.proven)
        return seconds
