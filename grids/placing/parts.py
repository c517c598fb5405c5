"""Placements part by part, of a graph that can be cut.

A cut is an operator for which all before it wait, and which all behind it wait for: a pass takes
the sum of its parts, each from the end of one such operator to the end of the next. Parts share no
more than the devices of these operators, so each part is searched for all devices of its ends, and
the best way through the ends is a placement. Of Inception-v3 on two devices of a DGX-1 that takes
0.6 s and gains 1.444; the same search of the whole graph takes 2.5 s and gains 1.422.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product

import numpy as np

from grids.placing.problem import Floats, Placement, Problem
from grids.placing.schedule import PlacementPlan, follow_starts, plan_placement
from grids.placing.search import Tick, search

Ends = tuple[int | None, int | None]  # devices of a part's first and last operator, where they bind
Exchange = tuple[int, ...]  # the device that takes the place of each
# Exchanges of so many devices are listed: there are 24 of four, and 40,320 of eight.
MOST_EXCHANGED = 4


@dataclass(frozen=True)
class GraphPart:
    """Some operators, ascending, and their problem.

    started: the first one is the last of the part before, and takes no time here; ended: the last
    one is the first of the next part.
    """

    positions: tuple[int, ...]
    started: bool
    ended: bool
    problem: Problem

    def list_ends(self) -> Iterator[Ends]:
        """All devices of the operators that it shares with other parts."""
        devices = range(self.problem.devices)
        return product(devices if self.started else (None,), devices if self.ended else (None,))

    def search(
        self, exchanges: Sequence[Exchange], rounds: int, has_time: Tick
    ) -> dict[Ends, PlacementPlan]:
        """A plan for all ends; of ends that differ by an exchange of devices one is searched."""
        plans: dict[Ends, PlacementPlan] = {}
        goal = self.problem.bounds.proven
        for ends in self.list_ends():
            if ends in plans:
                continue
            places = zip((0, self.problem.operators - 1), ends, strict=True)
            fixed = {operator: device for operator, device in places if device is not None}
            best = search(self.problem, fixed, rounds, has_time, goal=goal)
            assert best is not None  # memory is not looked at
            plan = plan_placement(self.problem, best[1])
            for exchange in exchanges:
                first, last = (None if end is None else exchange[end] for end in ends)
                devices = tuple(exchange[device] for device in plan.placement)
                plans.setdefault((first, last), replace(plan, placement=devices))
        return {ends: plans[ends] for ends in self.list_ends()}


class Parts:
    """A problem cut into parts, without its memory.

    core: the operators that are cut, ascending. What is beside them may run at any time, a head of
    its own or an embedding of the other side; it is left out where the core can be cut for it.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = replace(problem, room=np.inf)
        whole = tuple(range(problem.operators))
        choices = [
            (core, _cut(self.problem.take_part(core))) for core in (whole, _find_core(self.problem))
        ]
        self.core, self.parts = max(choices, key=lambda choice: len(choice[1]))

    @property
    def bound(self) -> float:
        """A step's time that no placement goes below [s]."""
        return sum(part.problem.bounds.proven for part in self.parts)

    def search(self, rounds: int, has_time: Tick) -> Iterator[PlacementPlan]:
        """Plans of the best way; what is beside the core is on each of the devices in turn."""
        placement, starts = self._lay_out(self._search_parts(rounds, has_time))
        begins = np.zeros_like(self.problem.durations)
        begins[:, list(self.core)] = starts
        for device in range(self.problem.devices):
            devices = np.full(self.problem.operators, device)
            devices[list(self.core)] = placement
            whole = tuple(devices.tolist())
            yield plan_placement(self.problem, whole)
            yield follow_starts(self.problem, whole, begins)

    def _search_parts(self, rounds: int, has_time: Tick) -> list[PlacementPlan]:
        """A plan for each part, whose ends are those of the best way."""
        exchanges = _list_exchanges(self.problem)
        # The smallest first: when time is up, they have plans for all of their ends.
        by_size = sorted(self.parts, key=lambda part: part.problem.operators)
        plans = {part.positions: part.search(exchanges, rounds, has_time) for part in by_size}
        return _choose_way([plans[part.positions] for part in self.parts])

    def _lay_out(self, plans: Sequence[PlacementPlan]) -> tuple[Placement, Floats]:
        """The core's placement, and when its operators begin, one part after the other."""
        placement: list[int] = []
        starts: list[Floats] = []
        begin = np.zeros((len(self.problem.durations), 1))
        for part, plan in zip(self.parts, plans, strict=True):
            skip = int(part.started)  # the part before has it
            within = np.array(plan.starts)
            placement += plan.placement[skip:]
            starts.append(begin + within[:, skip:])
            begin = begin + np.max(within + part.problem.durations, axis=1, keepdims=True)
        return tuple(placement), np.concatenate(starts, axis=1)


def _choose_way(parts: Sequence[Mapping[Ends, PlacementPlan]]) -> list[PlacementPlan]:
    """A plan for each part, so that ends meet and the sum of times is least."""
    ways: dict[int | None, tuple[float, list[Ends]]] = {None: (0.0, [])}
    for plans in parts:
        further: dict[int | None, tuple[float, list[Ends]]] = {}
        for (begin, end), plan in plans.items():
            time = ways[begin][0] + plan.time
            if end not in further or time < further[end][0]:
                further[end] = (time, [*ways[begin][1], (begin, end)])
        ways = further
    ((_, way),) = ways.values()
    return [plans[ends] for plans, ends in zip(parts, way, strict=True)]


def _cut(problem: Problem) -> list[GraphPart]:
    """The parts between the operators at which the graph can be cut."""
    last = problem.operators - 1
    # Behind a cut at the very end there is nothing.
    borders = [-1, *(cut for cut in _list_cuts(problem) if cut != last), last]
    parts = []
    for begin, end in pairwise(borders):
        positions = tuple(range(max(begin, 0), end + 1))
        part = problem.take_part(positions, started=begin >= 0)
        parts.append(GraphPart(positions, begin >= 0, end != last, part))
    return parts


def _list_cuts(problem: Problem) -> list[int]:
    """Operators that come before or after all others, and no tensor passes by."""
    farthest, cuts = -1, []  # the last taker of what was made so far
    for position in range(problem.operators):
        comparable = problem.before[position].bit_count() + problem.behind[position].bit_count()
        if comparable == problem.operators - 1 and farthest <= position:
            cuts.append(position)
        farthest = max([farthest, *(edge.taker for edge in problem.leaving[position])])
    return cuts


def _find_core(problem: Problem) -> tuple[int, ...]:
    """The operators between the main source and the main sink, ascending."""
    operators = range(problem.operators)
    sinks = (position for position in operators if not problem.behind[position])
    sources = (position for position in operators if not problem.before[position])
    into = max((problem.before[sink] | 1 << sink for sink in sinks), key=int.bit_count)
    out_of = max((problem.behind[source] | 1 << source for source in sources), key=int.bit_count)
    core = into & out_of
    return tuple(position for position in operators if core >> position & 1)


def _list_exchanges(problem: Problem) -> list[Exchange]:
    """Permutations of devices under which every message takes as long as before."""
    trivial = tuple(range(problem.devices))
    if problem.devices > MOST_EXCHANGED:
        return [trivial]
    tables = np.unique(problem.delays, axis=0)
    return [
        exchange
        for exchange in permutations(trivial)
        if np.array_equal(tables, tables[:, exchange][:, :, exchange])
    ]
