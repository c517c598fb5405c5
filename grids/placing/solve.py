"""The best placement for an effort, and how close to optimal it is proven to be.

A search comes first, then the program. The effort is counted in operators that are scheduled and in
nodes of the program, not in seconds: the same question has the same answer on any machine, however
busy it is. After Ctrl-C the best placement so far is the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from paradl.grids.placing.pipelined_steps import Piped
from paradl.grids.placing.problem import Placement, Problem, StepBounds
from paradl.grids.placing.program import Packing, improve_plan, pack
from paradl.grids.placing.schedule import PlacementPlan, plan_placement
from paradl.grids.placing.search import Parts, search

# A unit of effort is about a second of an idle core (AMD EPYC, 2026-11): so many operators
# scheduled, or so many nodes of the program.
OPERATORS, NODES = 150_000, 20
# Shares of the effort: parts are searched until the first, all operators until the second.
PARTS, SEARCHED = 0.4, 0.6
ROUNDS = 100  # of the search over the whole graph, as the effort allows
# Rounds of the search of parts, as the effort allows: on two devices 30, 300 and 2,000 rounds speed
# up Inception-v3 by 1.457, 1.464 and 1.465.
ROUNDS_OF_PARTS = (6, 60, 600, 6000)
# Rounds for a strategy's groups: a step in one piece, and one in micro-batches.
FEW_ROUNDS, ROUNDS_PIPED = 6, 30
# Operators scheduled in one such search, 2 to 5 s. Inception-v3 on two devices in two micro-batches
# speeds up by 1.595 with half as many, 1.611 with these, 1.617 with twice as many.
MOST_SCHEDULED = 1_000_000
# Largest program, in pairs of operators that could run at once: with Inception-v3's 3,309 HiGHS has
# no bound after a minute; with GNMT's 273 it has a proof after 6 s.
MOST_RIVALS = 1000
# A step and its bound sum the same times in other orders.
ROUNDING = 1e-12

Tell = Callable[[float | None, float], None]  # called with the best step [s] and the bound [s]


@dataclass(frozen=True)
class PlacementResult:
    """The best plan (None if none is known to fit memory), bounds, and whether Ctrl-C ended it.

    impossible: proven that no placement fits.
    """

    plan: PlacementPlan | None
    bounds: StepBounds
    impossible: bool = False
    interrupted: bool = False


def solve(
    piped: Piped,
    effort: float,
    first: Sequence[Placement] = (),
    tell: Tell = lambda best, bound: None,
) -> PlacementResult:
    """Return the best placement for an effort; micro-batches are only searched.

    effort: about the seconds that it takes on an idle core. first: further placements to start
    from. tell: called at every improvement. SolverError: HiGHS died.
    """
    solver = _Solver(piped, effort, tell)
    try:
        solver.run(first)
    except KeyboardInterrupt:
        return replace(solver.answer(), interrupted=True)
    return solver.answer()


def search_plan(problem: Problem) -> PlacementPlan:
    """Return a good placement without a proof or a memory limit; the same one each time."""
    alone = (0,) * problem.operators
    placements = [alone, *Parts(problem).search(FEW_ROUNDS, lambda operators: True)]
    plans = (plan_placement(problem, placement) for placement in placements)
    return min(plans, key=lambda plan: plan.time)


def search_piped(piped: Piped, first: Sequence[Placement]) -> PlacementPlan:
    """Return a good placement of a step in micro-batches, without a memory limit.

    The same one each time. first: placements to start from.
    """
    left = iter(range(MOST_SCHEDULED // piped.unrolled.operators))
    best = search(
        piped.whole,
        {},
        ROUNDS_PIPED,
        spend=lambda operators: next(left, None) is not None,
        first=first,
        goal=piped.bounds.proven,
        measure=lambda placement: piped.schedule(placement).time,
    )
    assert best is not None  # there is no memory limit
    return piped.schedule(best[1])


def count_nodes(effort: float) -> int:
    """Return the nodes of the program that an effort allows."""
    return int(effort * NODES)


class _Solver:
    """The best plan and the bound so far."""

    def __init__(self, piped: Piped, effort: float, tell: Tell) -> None:
        self.piped, self.effort, self._tell = piped, effort, tell
        self.spent = 0.0
        self.bounds = piped.bounds
        self.best: PlacementPlan | None = None
        self.impossible = False

    def answer(self) -> PlacementResult:
        """Return the best so far; rounding may not lift the bound above it."""
        bound = self.bounds.proven if self.best is None else min(self.bounds.proven, self.best.time)
        return PlacementResult(self.best, self.bounds._replace(proven=bound), self.impossible)

    def run(self, first: Sequence[Placement]) -> None:
        """Search from a placement that fits, then prove."""
        self._begin(first)
        if self.impossible:
            return
        self._search_parts()
        if self.piped.runs == 1 and self.piped.whole.count_rivals() <= MOST_RIVALS:
            self._search(SEARCHED)
            if self.best is None or self._proven:
                return
            nodes = count_nodes(self.effort - self.spent)
            plan, bound = improve_plan(self.piped.whole, self.best, nodes)
            self._offer(plan)
            self._raise_bound(bound)
        else:
            self._search()

    def _begin(self, first: Sequence[Placement]) -> None:
        """Start with everything on one device or, if that does not fit, wherever it does."""
        whole = self.piped.whole
        packing = Packing((0,) * whole.operators)
        if not whole.fits((0,) * whole.operators):
            packing = pack(whole, count_nodes(self.effort))
        self.impossible = packing.impossible
        for placement in (*first, packing.placement):
            if placement is not None:
                self._measure(placement)

    def _search_parts(self) -> None:
        """Search part by part in one piece; with micro-batches that gives starting points."""
        parts, at_once = Parts(self.piped.whole), self.piped.runs == 1
        # The bound of parts is that of a step in one piece: micro-batches overlap parts.
        if at_once:
            self._raise_bound(parts.bound)
        for rounds in ROUNDS_OF_PARTS if at_once else (FEW_ROUNDS,):
            if self.spent >= PARTS * self.effort or self._proven:
                return
            for placement in parts.search(rounds, partial(self._spend, PARTS)):
                self._measure(placement)

    def _search(self, until: float = 1.0) -> None:
        """Search the whole graph from the best known placement."""
        search(
            self.piped.whole,
            {},
            ROUNDS,
            # Micro-batches are scheduled one by one.
            spend=lambda operators: self._spend(until, operators * self.piped.runs),
            first=[] if self.best is None else [self.best.placement],
            goal=self.bounds.proven,
            measure=self._measure,
        )

    @property
    def _proven(self) -> bool:
        return self.best is not None and self.best.time <= (1 + ROUNDING) * self.bounds.proven

    def _spend(self, until: float, operators: int) -> bool:
        """Count operators to be scheduled; return whether they are within a share of the effort."""
        self.spent += operators / OPERATORS
        return self.spent < until * self.effort

    def _measure(self, placement: Placement) -> float:
        """Time a step [s], and keep its plan if it is the best that fits."""
        plan = self.piped.schedule(placement)
        self._offer(plan)
        return plan.time

    def _offer(self, plan: PlacementPlan) -> None:
        better = self.best is None or plan.time < self.best.time
        # Parts are searched without a memory limit.
        if better and self.piped.whole.fits(plan.placement):
            self.best = plan
            self._tell(plan.time, self.bounds.proven)

    def _raise_bound(self, bound: float) -> None:
        if bound > self.bounds.proven:
            self.bounds = self.bounds._replace(proven=bound)
            self._tell(None if self.best is None else self.best.time, bound)
