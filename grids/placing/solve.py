"""The best placement that can be had in the time that is given, and how near it is proven to be.

First a search, then bounds by the program; a large graph part by part. Whatever ends it, the time
or Ctrl-C, the best that is known is the answer.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from grids.placing.bounds import Bounds, bound_step
from grids.placing.cuts import list_parts, strip_sides
from grids.placing.exact import Outcome, Plan, follow_starts, plan_placement, solve_exactly
from grids.placing.highs import Highs
from grids.placing.packing import Packing, pack
from grids.placing.parts import ROUNDS as ROUNDS_OF_PARTS
from grids.placing.parts import Joined, Parts
from grids.placing.problem import Problem
from grids.placing.search import list_first, search
from grids.placing.symmetry import Symmetry

# Operators that the program takes whole at once: of more, its bound hardly comes up in a minute.
MOST_WHOLE = 40
# Operators that it takes at all: of so many it has half a million entries.
MOST_PROGRAM = 500
# Of the time: until when parts are searched, and until when they are proven.
SEARCHED, PROVEN = 0.25, 0.92
ROUNDS = 100

FEW_ROUNDS = 6  # where nothing is proven
ENDLESS = 1e9  # seconds

Tell = Callable[[float | None, float], None]  # of the best step [s] and the bound [s]


@dataclass(frozen=True)
class Answer:
    """The best plan, None: none that fits memory is known; bounds; whether Ctrl-C ended it.

    impossible: it is proven that none fits.
    """

    plan: Plan | None
    bounds: Bounds
    impossible: bool = False
    interrupted: bool = False


def solve(
    problem: Problem, highs: Highs, time_limit: float, tell: Tell = lambda best, bound: None
) -> Answer:
    """The best placement within `time_limit` seconds; tell: called whenever more is known."""
    solver = _Solver(problem, time_limit, highs, tell)
    try:
        solver.run()
    except KeyboardInterrupt:
        return replace(solver.answer(), interrupted=True)
    return solver.answer()


def search_plan(problem: Problem, time_limit: float = ENDLESS) -> Plan:
    """A good placement, without a proof and without looking at memory.

    The same one each time, where there is time enough for it.
    """
    solver = _Solver(problem, time_limit, Highs(), lambda best, bound: None)  # HiGHS is not asked
    solver.search()
    assert solver.best is not None  # one device may hold all
    return solver.best


class _Solver:
    """What is known so far."""

    def __init__(self, problem: Problem, limit: float, highs: Highs, tell: Tell) -> None:
        self.problem, self.highs, self._tell = problem, highs, tell
        self.limit, self.end = limit, time.monotonic() + limit
        self.symmetry = Symmetry(problem)
        self.bounds = bound_step(problem)
        self.bound = self.bounds.proven
        self.best: Plan | None = None
        self.impossible = False

    def answer(self) -> Answer:
        """The best so far; a bound is never above what has been reached, but for rounding."""
        bound = self.bound if self.best is None else min(self.bound, self.best.time)
        return Answer(self.best, self.bounds._replace(proven=bound), self.impossible)

    def run(self) -> None:
        """Search, prove, and search again with what was learnt."""
        self._begin()
        if self.impossible:
            return
        if self.problem.operators > MOST_WHOLE:
            self._solve_parts()
            self._search(ROUNDS)
        else:
            self._search(ROUNDS // 5)
        # Of a larger one this is for what was left out: memory, and what is beside the core.
        if not self._outcome.proven and self.problem.operators <= MOST_PROGRAM:
            self._learn(
                solve_exactly(self.problem, {}, self.symmetry, self.highs, self._left, self.best)
            )

    def search(self) -> None:
        """Search alone."""
        self._offer(plan_placement(self.problem, (0,) * self.problem.operators))
        if self.problem.operators > MOST_WHOLE:
            self._search_parts(FEW_ROUNDS)
        else:
            self._search(FEW_ROUNDS)

    def _begin(self) -> None:
        """All on one device, or where that does not fit, wherever there is room."""
        alone = (0,) * self.problem.operators
        packing = Packing(alone)
        if not self.problem.fits(alone):
            packing = pack(self.problem, self.highs, self._left)
        self.impossible = packing.impossible
        if packing.placement is not None:
            self._offer(plan_placement(self.problem, packing.placement))
        for placement in list_first(self.problem, {}):
            self._offer(plan_placement(self.problem, placement))

    @property
    def _outcome(self) -> Outcome:
        return Outcome(self.best, self.bound)

    def _left(self, until: float = 1.0) -> float:
        """Seconds until a part of the time is over."""
        return self.end - self.limit * (1.0 - until) - time.monotonic()

    def _solve_parts(self) -> None:
        """A graph that can be cut, part by part."""
        core, parts = self._search_parts(ROUNDS_OF_PARTS)

        def learn() -> None:
            self._offer_joined(core, parts.join())
            self._raise_bound(parts.bound)

        parts.prove(lambda: self._left(PROVEN), learn)
        learn()

    def _search_parts(self, rounds: int) -> tuple[tuple[int, ...], Parts]:
        """The operators that can be cut, and their parts; memory is looked at when they join."""
        free = replace(self.problem, room=np.inf)
        core = strip_sides(free)
        whole = tuple(range(self.problem.operators))
        # What is beside the core is left out only where the core can be cut for it.
        if len(list_parts(free.take_part(core))) <= len(list_parts(free)):
            core = whole
        parts = Parts(free.take_part(core), self.symmetry, self.highs)
        parts.search(lambda: self._left(SEARCHED), rounds)
        self._offer_joined(core, parts.join())
        self._raise_bound(parts.bound)
        return core, parts

    def _offer_joined(self, core: tuple[int, ...], joined: Joined) -> None:
        """Plans of a placement of the core, with what is beside it on each device in turn."""
        starts = np.zeros_like(self.problem.durations)
        starts[:, list(core)] = joined.starts
        for device in range(self.problem.devices):
            devices = np.full(self.problem.operators, device)
            devices[list(core)] = joined.placement
            placement = tuple(devices.tolist())
            self._offer(plan_placement(self.problem, placement))
            self._offer(follow_starts(self.problem, placement, starts))

    def _search(self, rounds: int) -> None:
        """Moves on the whole graph, from the best that is known."""
        first = [] if self.best is None else [self.best.placement]
        answer = search(
            self.problem,
            {},
            rounds,
            has_time=lambda: self._left() > 0,
            first=first,
            goal=self.bound,
        )
        if answer is not None:
            self._offer(plan_placement(self.problem, answer[1]))

    def _offer(self, plan: Plan) -> None:
        if not self.problem.fits(plan.placement):
            return
        if self.best is None or plan.time < self.best.time:
            self.best = plan
            self._tell(plan.time, self.bound)

    def _raise_bound(self, bound: float) -> None:
        if bound > self.bound:
            self.bound = bound
            self._tell(None if self.best is None else self.best.time, bound)

    def _learn(self, outcome: Outcome) -> None:
        if outcome.plan is not None:
            self._offer(outcome.plan)
        self._raise_bound(outcome.bound)
