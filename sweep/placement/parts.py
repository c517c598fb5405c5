"""Solving a graph part by part, where it can be cut, and joining what the parts say.

A part's best plan depends on the devices of the operators at its ends, and on nothing else of the
other parts. The least of all ends is a bound; a way through the ends is a placement.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sweep.placement.bounds import bound_step
from sweep.placement.cuts import Part, list_parts
from sweep.placement.exact import SAME, Plan, plan_placement, solve_exactly
from sweep.placement.highs import Clock, Highs
from sweep.placement.problem import Placement, Problem
from sweep.placement.rows import Floats
from sweep.placement.search import Fixed, search
from sweep.placement.symmetry import Symmetry, exchange_devices

Ends = tuple[int | None, int | None]  # devices of the first and the last operator, where they bind
# Of a part's search, if there is time. On two devices 30, 300 and 2,000 make Inception-v3 1.457,
# 1.464 and 1.465 times as fast.
ROUNDS = 2000


@dataclass
class PartState:
    """What is known of a part: the best plan by its ends, each up to an exchange of devices."""

    part: Part
    problem: Problem
    bound: float
    plans: dict[Ends, Plan] = field(default_factory=dict)
    settled: set[Ends | None] = field(default_factory=set)  # None: of all ends

    @property
    def best(self) -> float:
        """The least time of all ends [s]."""
        return min(plan.time for plan in self.plans.values())

    def fix(self, ends: Ends) -> Fixed:
        """Which operators' devices the ends give."""
        places = zip((0, self.problem.operators - 1), ends, strict=True)
        return {operator: device for operator, device in places if device is not None}

    def read_ends(self, placement: Placement) -> Ends:
        """The ends that bind of a placement."""
        return (
            placement[0] if self.part.started else None,
            placement[-1] if self.part.ended else None,
        )

    def keep(self, ends: Ends, plan: Plan) -> None:
        """Keep a plan of normal ends if it is the best of them."""
        if ends not in self.plans or plan.time < self.plans[ends].time:
            self.plans[ends] = plan


@dataclass(frozen=True)
class Joined:
    """A placement of all parts; starts [s, passes by n]; of each part the ends; time [s]."""

    placement: Placement
    starts: Floats
    ends: tuple[Ends, ...]
    time: float


class Parts:
    """The parts of a problem, memory apart, and what is known of each."""

    def __init__(self, problem: Problem, symmetry: Symmetry, highs: Highs) -> None:
        self.problem, self.symmetry, self.highs = problem, symmetry, highs
        self.states = []
        for part in list_parts(problem):
            own = problem.take_part(part.positions, part.started)
            self.states.append(PartState(part, own, bound_step(own).proven))

    @property
    def bound(self) -> float:
        """What no placement goes below [s]."""
        return sum(state.bound for state in self.states)

    def search(self, left: Clock) -> None:
        """A plan for all ends of all parts; at least a poor one if there is no time."""
        tasks = [(state, ends) for state in self.states for ends in self._list_ends(state)]
        # What is least work comes first: what it leaves of its time is for the others.
        tasks.sort(key=lambda task: task[0].problem.operators)
        for number, (state, ends) in enumerate(tasks):
            own = _take_share(left, len(tasks) - number)
            fixed = state.fix(ends)
            answer = search(
                state.problem, fixed, ROUNDS, has_time=partial(_is_positive, own), goal=state.bound
            )
            assert answer is not None  # memory apart, what it begins with fits
            state.keep(ends, plan_placement(state.problem, answer[1]))

    def prove(self, left: Clock, tell: Callable[[], None]) -> None:
        """Bounds of the parts by the program, those first that lack most, and better plans."""
        while left() > 0:
            open_states = [each for each in self.states if self._lacks(each)]
            if not open_states:
                return
            state = max(open_states, key=lambda each: each.best - each.bound)
            # One more than there are: time for ends that the best way needs.
            self._solve(state, None, _take_share(left, len(open_states) + 1))
            self._settle_way(left)
            tell()

    def join(self) -> Joined:
        """The best way through the ends of the plans that are known."""
        ways: dict[int | None, tuple[float, tuple[Ends, ...]]] = {None: (0.0, ())}
        for state in self.states:
            further: dict[int | None, tuple[float, tuple[Ends, ...]]] = {}
            for begin, end in self._list_all_ends(state):
                if begin not in ways:
                    continue
                time = ways[begin][0] + state.plans[self._normalise((begin, end))[0]].time
                if end not in further or time < further[end][0]:
                    further[end] = (time, (*ways[begin][1], (begin, end)))
            ways = further
        time, ends = min(ways.values())
        return self._lay_out(ends, time)

    def _lay_out(self, ends: tuple[Ends, ...], time: float) -> Joined:
        """The parts' plans one after the other."""
        placement = [0] * self.problem.operators
        starts = np.zeros_like(self.problem.durations)
        begin = np.zeros(len(starts))
        for state, own in zip(self.states, ends, strict=True):
            normal, exchange = self._normalise(own)
            plan = state.plans[normal]
            devices = exchange_devices(plan.placement, exchange)
            skip = int(state.part.started)  # the part before has placed it
            for number, position in enumerate(state.part.positions[skip:], start=skip):
                placement[position] = devices[number]
                starts[:, position] = begin + [each[number] for each in plan.starts]
            begin = begin + np.max(np.array(plan.starts) + state.problem.durations, axis=1)
        return Joined(tuple(placement), starts, ends, time)

    def _lacks(self, state: PartState) -> bool:
        return None not in state.settled and state.best > state.bound * (1 + SAME)

    def _solve(self, state: PartState, ends: Ends | None, left: Clock) -> None:
        """The program of a part: of all its ends, which brings its bound up, or of some."""
        fixed = {} if ends is None else state.fix(ends)
        known = min(state.plans.values(), key=lambda plan: plan.time)
        first = known if ends is None else state.plans[ends]
        outcome = solve_exactly(state.problem, fixed, self.symmetry, self.highs, left, first)
        state.settled.add(ends)
        if ends is None:
            state.bound = max(state.bound, outcome.bound)
        if outcome.plan is not None:
            normal, exchange = self._normalise(state.read_ends(outcome.plan.placement))
            back = tuple(sorted(range(len(exchange)), key=exchange.__getitem__))
            plan = outcome.plan
            state.keep(normal, Plan(exchange_devices(plan.placement, back), plan.starts, plan.time))

    def _settle_way(self, left: Clock) -> None:
        """Better plans for the ends that the best way goes through, where others are better."""
        for state, ends in zip(self.states, self.join().ends, strict=True):
            normal = self._normalise(ends)[0]
            behind = state.plans[normal].time > state.bound * (1 + SAME)
            if None in state.settled and behind and normal not in state.settled and left() > 0:
                self._solve(state, normal, _take_share(left, len(self.states) + 1))

    def _list_all_ends(self, state: PartState) -> Iterator[Ends]:
        devices = range(self.problem.devices)
        for begin in devices if state.part.started else (None,):
            for end in devices if state.part.ended else (None,):
                yield begin, end

    def _list_ends(self, state: PartState) -> list[Ends]:
        """Ends of which all others are exchanges."""
        return sorted({self._normalise(each)[0] for each in self._list_all_ends(state)}, key=str)

    def _normalise(self, ends: Ends) -> tuple[Ends, tuple[int, ...]]:
        """The first ends that are like these, and the exchange from them to these."""
        begin, end = ends
        one = begin if begin is not None else end
        other = end if end is not None else begin
        if one is None or other is None:
            return ends, tuple(range(self.problem.devices))
        (first, last), exchange = self.symmetry.normalise((one, other))
        return (first if begin is not None else None, last if end is not None else None), exchange


def _take_share(left: Clock, shares: int) -> Clock:
    """The clock of one of several equal shares of the time that is left."""
    now = max(left(), 0.0)
    rest = now - now / shares
    return lambda: left() - rest


def _is_positive(clock: Clock) -> bool:
    return clock() > 0
