"""Solving a placement by its program: as many rows as it takes, and the best of what is met."""

from dataclasses import dataclass

import numpy as np

from grids.placing.bounds import bound_step
from grids.placing.highs import Clock, Highs
from grids.placing.problem import Placement, Problem
from grids.placing.program import Pair, Program, list_rivals
from grids.placing.rows import Floats
from grids.placing.schedule import Starts, find_length, follow_order, schedule_step
from grids.placing.search import Fixed
from grids.placing.symmetry import Symmetry

# Of so few operators all pairs that could overlap exclude each other from the beginning.
FEW_OPERATORS = 9
# Two times are one: HiGHS is exact to 1e-9 of the serial time here, and 1e-7 of its own bound.
SAME = 2e-7


@dataclass(frozen=True)
class Plan:
    """A placement and when its operators begin. time [s]: of the step; starts [s, passes by n]."""

    placement: Placement
    starts: tuple[tuple[float, ...], ...]
    time: float


@dataclass(frozen=True)
class Outcome:
    """The best plan that is known, None: none; a bound [s] of all; and whether there is none."""

    plan: Plan | None
    bound: float
    infeasible: bool = False

    @property
    def proven(self) -> bool:
        """Whether nothing is better."""
        return self.plan is not None and self.plan.time <= self.bound * (1 + SAME)


def plan_placement(problem: Problem, placement: Placement) -> Plan:
    """The better of two schedules of a placement."""
    starts, lengths = schedule_step(problem, placement)
    return Plan(placement, tuple(map(tuple, starts)), sum(lengths))


def solve_exactly(
    problem: Problem,
    fixed: Fixed,
    symmetry: Symmetry,
    highs: Highs,
    left: Clock,
    first: Plan | None = None,
) -> Outcome:
    """The best plan with some devices fixed, as far as the time that is left allows.

    first: one that is known.
    """
    best, bound = first, bound_step(problem).proven
    few = problem.operators <= FEW_OPERATORS
    passes = range(len(problem.durations))
    rivals = list_rivals(problem)
    pairs: set[Pair] = {(k, i, j) for k in passes for i, j in rivals} if few else set()
    while left() > 0 and not Outcome(best, bound).proven:
        upper = problem.serial if best is None else best.time
        if best is None and np.isfinite(problem.room):  # messages that memory asks for
            upper += 2 * float(problem.delays.max(axis=(1, 2), initial=0.0).sum())
        program = Program(problem, fixed, symmetry, upper)
        for pair in sorted(pairs):
            program.exclude(pair)
        solution = highs.solve(program.rows, left())
        if solution.infeasible:
            # With what is known as its limit, that there is nothing better is the proof.
            return Outcome(best, bound if best is None else best.time, infeasible=best is None)
        if solution.bound is not None:
            bound = max(bound, min(solution.bound * program.unit, upper))
        if solution.values is None:
            break
        placement = program.read_placement(solution.values)
        starts = program.read_starts(solution.values)
        starts *= program.unit
        best = _keep_better(problem, best, placement, starts)
        overlapping = _list_overlapping(problem, placement, starts, rivals)
        if not solution.optimal or overlapping <= pairs:
            break
        pairs |= overlapping
    return Outcome(best, bound)


def _keep_better(
    problem: Problem, best: Plan | None, placement: Placement, starts: Floats
) -> Plan | None:
    """The better of the best plan and a placement's, in the program's order or in our own."""
    if not problem.fits(placement):  # by less than HiGHS can tell
        return best
    plans = [plan_placement(problem, placement), follow_starts(problem, placement, starts)]
    return min([*([best] if best is not None else []), *plans], key=lambda plan: plan.time)


def follow_starts(problem: Problem, placement: Placement, starts: Floats) -> Plan:
    """The plan in which operators run in the order of their starts."""
    schedules: list[Starts] = []
    lengths = []
    for durations, begins in zip(problem.durations.tolist(), starts.tolist(), strict=True):
        order = _sort_by_start(problem, durations, begins)
        schedules.append(follow_order(problem, durations, placement, order))
        lengths.append(find_length(schedules[-1], durations))
    return Plan(placement, tuple(map(tuple, schedules)), sum(lengths))


def _sort_by_start(problem: Problem, durations: list[float], begins: list[float]) -> list[int]:
    """Operators by their starts, none before what it waits for."""
    # A start may be wrong by what HiGHS tolerates: none is before its makers have ended.
    latest: list[float] = []
    for edges, begin in zip(problem.entering, begins, strict=True):
        latest.append(max([begin, *(latest[e.maker] + durations[e.maker] for e in edges)]))
    # Of two that begin together on a device, one takes no time: it does not wait for the other.
    return sorted(range(len(begins)), key=lambda each: (latest[each], durations[each] > 0, each))


def _list_overlapping(
    problem: Problem, placement: Placement, starts: Floats, rivals: list[tuple[int, int]]
) -> set[Pair]:
    """Pairs on one device that run at once, by more than a rounding."""
    slip = 1e-9 * problem.serial
    pairs = set()
    for k, durations in enumerate(problem.durations):
        for i, j in rivals:
            if placement[i] != placement[j]:
                continue
            begin, end = (
                max(starts[k, i], starts[k, j]),
                min(starts[k, i] + durations[i], starts[k, j] + durations[j]),
            )
            if end - begin > slip:
                pairs.add((k, i, j))
    return pairs
