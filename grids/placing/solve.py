"""The best placement that can be had in the time that is given, and how near it is proven to be.

First a search, then the program; whatever ends it, the time or Ctrl-C, the best that is known is
the answer. Groups of a strategy are searched without a clock.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grids.placing.packing import pack
from grids.placing.parts import Parts
from grids.placing.pipelined_steps import Piped
from grids.placing.problem import Placement, Problem, TimeBounds
from grids.placing.program import improve_plan
from grids.placing.schedule import PlacementPlan, plan_placement
from grids.placing.search import search

# Of the time: until when parts, and all operators, are searched. The rest is the program's.
PARTS, SEARCHED = 0.4, 0.6
ROUNDS = 100
# Rounds of parts, as far as time goes. On two devices 30, 300 and 2,000 make Inception-v3 1.457,
# 1.464 and 1.465 times as fast, on an idle machine.
ROUNDS_OF_PARTS = (6, 60, 600, 6000)
# Of a strategy's groups: of a step at once, and of one in micro-batches.
FEW_ROUNDS, ROUNDS_PIPED = 6, 30
# Operators in all schedules of one such search, 2 to 5 s. Of Inception-v3 on two devices in two
# micro-batches half as many find 1.595, these 1.611, twice as many 1.617.
MOST_SCHEDULED = 1_000_000
# Pairs of operators that could run at once in the program: with Inception-v3's 3,309 HiGHS has no
# bound after a minute, with GNMT's 273 the proof after 6 s.
MOST_RIVALS = 1000

Tell = Callable[[float | None, float], None]  # of the best step [s] and the bound [s]


@dataclass(frozen=True)
class PlacementResult:
    """The best plan, None: none that fits memory is known; bounds; whether Ctrl-C ended it.

    impossible: it is proven that none fits.
    """

    plan: PlacementPlan | None
    bounds: TimeBounds
    impossible: bool = False
    interrupted: bool = False


def solve(
    piped: Piped,
    time_limit: float,
    first: Sequence[Placement] = (),
    tell: Tell = lambda best, bound: None,
) -> PlacementResult:
    """The best placement within `time_limit` seconds; of several micro-batches by a search alone.

    first: placements to begin with, too; tell: called whenever more is known.
    """
    solver = _Solver(piped, time_limit, tell)
    try:
        solver.run(first)
    except KeyboardInterrupt:
        return replace(solver.answer(), interrupted=True)
    return solver.answer()


def search_plan(problem: Problem) -> PlacementPlan:
    """A good placement, without a proof and whatever the memory: the same one each time."""
    alone = plan_placement(problem, (0,) * problem.operators)
    plans = Parts(problem).search(FEW_ROUNDS, lambda: True)
    return min([alone, *plans], key=lambda plan: plan.time)


def search_piped(piped: Piped, first: Sequence[Placement]) -> PlacementPlan:
    """A good placement of a step in micro-batches, whatever the memory: the same one each time.

    first: placements to begin with.
    """
    # As many schedules for all, however many operators they have: no clock decides.
    left = iter(range(MOST_SCHEDULED // piped.unrolled.operators))
    best = search(
        piped.whole,
        {},
        ROUNDS_PIPED,
        has_time=lambda: next(left, None) is not None,
        first=first,
        goal=piped.bounds.proven,
        measure=lambda placement: piped.schedule(placement).time,
    )
    assert best is not None  # memory is not looked at
    return piped.schedule(best[1])


class _Solver:
    """The best plan and the bound so far."""

    def __init__(self, piped: Piped, limit: float, tell: Tell) -> None:
        self.piped, self._tell = piped, tell
        self.limit, self.end = limit, time.monotonic() + limit
        self.bounds = piped.bounds
        self.best: PlacementPlan | None = None
        self.impossible = False

    def answer(self) -> PlacementResult:
        """The best so far; a bound is never above what has been reached, but for rounding."""
        bound = self.bounds.proven if self.best is None else min(self.bounds.proven, self.best.time)
        return PlacementResult(self.best, self.bounds._replace(proven=bound), self.impossible)

    def run(self, first: Sequence[Placement]) -> None:
        """Search from where there is room, and prove."""
        self._begin(first)
        if self.impossible:
            return
        self._search_parts()
        if self.piped.runs == 1 and self.piped.whole.count_rivals() <= MOST_RIVALS:
            self._search(SEARCHED)
            self._prove()
        else:
            self._search()

    def _begin(self, first: Sequence[Placement]) -> None:
        """All on one device, or where that does not fit, wherever there is room."""
        whole = self.piped.whole
        alone: Placement | None = (0,) * whole.operators
        if not whole.fits((0,) * whole.operators):
            packing = pack(whole, self._left)
            alone, self.impossible = packing.placement, packing.impossible
        for placement in (*first, *([alone] if alone is not None else [])):
            self._measure(placement)

    def _search_parts(self) -> None:
        """Parts of a step at once, whose placement is a beginning for micro-batches."""
        parts, at_once = Parts(self.piped.whole), self.piped.runs == 1
        if at_once:
            self._raise_bound(parts.bound)
        for rounds in ROUNDS_OF_PARTS if at_once else (FEW_ROUNDS,):
            if self._left(PARTS) <= 0 or self._proven:
                return
            for plan in parts.search(rounds, lambda: self._left(PARTS) > 0):
                if at_once:
                    self._offer(plan)
                else:
                    self._measure(plan.placement)

    def _search(self, until: float = 1.0) -> None:
        """Moves on the whole graph, from the best that is known."""
        search(
            self.piped.whole,
            {},
            ROUNDS,
            has_time=lambda: self._left(until) > 0,
            first=[] if self.best is None else [self.best.placement],
            goal=self.bounds.proven,
            measure=self._measure,
        )

    def _prove(self) -> None:
        """The program's bound, and its plan where that is better."""
        if self.best is not None and not self._proven:
            proof = improve_plan(self.piped.whole, self.best, self._left)
            self._offer(proof.plan)
            self._raise_bound(proof.bound)

    @property
    def _proven(self) -> bool:
        return self.best is not None and self.best.time <= self.bounds.proven

    def _left(self, until: float = 1.0) -> float:
        """Seconds until a part of the time is over."""
        return self.end - self.limit * (1.0 - until) - time.monotonic()

    def _measure(self, placement: Placement) -> float:
        """A step's time [s]; the best of those that fit is kept, whatever ends the search."""
        plan = self.piped.schedule(placement)
        self._offer(plan)
        return plan.time

    def _offer(self, plan: PlacementPlan) -> None:
        better = self.best is None or plan.time < self.best.time
        if better and self.piped.whole.fits(plan.placement):
            self.best = plan
            self._tell(plan.time, self.bounds.proven)

    def _raise_bound(self, bound: float) -> None:
        if bound > self.bounds.proven:
            self.bounds = self.bounds._replace(proven=bound)
            self._tell(None if self.best is None else self.best.time, bound)
