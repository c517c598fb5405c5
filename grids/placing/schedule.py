"""Schedules of a placement: when each operator begins, one at a time on a device.

For a given placement, an order of operators gives a schedule: each begins as soon as its device is
free and all that it takes has come. Some order gives the shortest one (Baker 1974: shortest
schedules are among the semi-active ones). Here are two orders that are mostly good.

A search schedules 70,000 placements: what its loops compare, they compare without a call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import add

from grids.placing.problem import Floats, Placement, Problem

Starts = list[float]


@dataclass(frozen=True)
class PlacementPlan:
    """A placement and when its operators begin. time [s]: of the step; starts [s, passes by n]."""

    placement: Placement
    starts: tuple[tuple[float, ...], ...]
    time: float


def plan_placement(problem: Problem, placement: Placement) -> PlacementPlan:
    """The better of two schedules of a placement."""
    starts, lengths = schedule_step(problem, placement)
    return PlacementPlan(placement, tuple(map(tuple, starts)), sum(lengths))


def follow_starts(problem: Problem, placement: Placement, starts: Floats) -> PlacementPlan:
    """The plan in which devices run their operators in the order of their starts."""
    schedules: list[Starts] = []
    lengths = []
    for durations, begins in zip(problem.durations.tolist(), starts.tolist(), strict=True):
        order = _sort_by_start(problem, durations, begins)
        schedules.append(follow_order(problem, durations, placement, order))
        lengths.append(find_length(schedules[-1], durations))
    return PlacementPlan(placement, tuple(map(tuple, schedules)), sum(lengths))


def _sort_by_start(problem: Problem, durations: list[float], begins: list[float]) -> list[int]:
    """Operators by their starts, none before what it waits for."""
    # A start may be wrong by what HiGHS tolerates: none is before its makers have ended.
    latest: list[float] = []
    for edges, begin in zip(problem.entering, begins, strict=True):
        latest.append(max([begin, *(latest[e.maker] + durations[e.maker] for e in edges)]))
    # Of two that begin together on a device, one takes no time: it does not wait for the other.
    return sorted(range(len(begins)), key=lambda n: (latest[n], durations[n] > 0, n))


def schedule_step(
    problem: Problem, placement: Placement, runs: int = 1
) -> tuple[list[Starts], list[float]]:
    """When operators begin in each pass, and how long each pass takes [s].

    runs: micro-batches, each an equal part of the operators; devices prefer the earlier ones.
    """
    schedules = [
        schedule_pass(problem, durations, placement, runs)
        for durations in problem.durations.tolist()
    ]
    return [starts for starts, _ in schedules], [length for _, length in schedules]


def time_step(problem: Problem, placement: Placement) -> float:
    """How long a step takes that is scheduled by the better of two orders [s]."""
    return sum(schedule_step(problem, placement)[1])


def schedule_pass(
    problem: Problem, durations: Sequence[float], placement: Placement, runs: int = 1
) -> tuple[Starts, float]:
    """The better of both orders, and its length [s]."""
    ranks = _put_in_turn(rank_operators(problem, durations, placement), runs)
    # Stable: of two that as much depends on, the first goes first.
    order = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)
    by_rank = follow_order(problem, durations, placement, order)
    by_time = _dispatch(problem, durations, placement, ranks)
    return min(
        ((starts, find_length(starts, durations)) for starts in (by_rank, by_time)),
        key=lambda schedule: schedule[1],
    )


def find_length(starts: Starts, durations: Sequence[float]) -> float:
    """When the last operator has ended [s]."""
    length: float = max(map(add, starts, durations))
    return length


def rank_operators(
    problem: Problem, durations: Sequence[float], placement: Placement
) -> list[float]:
    """Work left from each operator on, with its messages [s, n].

    The upward rank of HEFT (Topcuoglu et al., IEEE TPDS 13(3), 2002), of a placement that is known.
    """
    ranks = [0.0] * len(durations)
    leaving = problem.leaving
    for position in reversed(range(len(durations))):
        here = placement[position]
        after = 0.0
        for _, taker, _, delays in leaving[position]:
            rank = delays[here][placement[taker]] + ranks[taker]
            if rank > after:
                after = rank
        ranks[position] = durations[position] + after
    return ranks


def _put_in_turn(ranks: list[float], runs: int) -> list[float]:
    """Ranks by which an operator of an earlier run goes before all of later ones."""
    if runs == 1:
        return ranks
    size, apart = len(ranks) // runs, max(ranks)
    return [rank + (runs - 1 - n // size) * apart for n, rank in enumerate(ranks)]


def follow_order(
    problem: Problem, durations: Sequence[float], placement: Placement, order: Sequence[int]
) -> Starts:
    """When each begins if devices run their operators in this order, makers before takers."""
    starts = [0.0] * len(durations)
    free = [0.0] * problem.devices
    entering = problem.entering
    for position in order:
        here = placement[position]
        begin = free[here]
        for maker, _, _, delays in entering[position]:
            come = starts[maker] + durations[maker] + delays[placement[maker]][here]
            if come > begin:
                begin = come
        starts[position] = begin
        free[here] = begin + durations[position]
    return starts


def _dispatch(
    problem: Problem, durations: Sequence[float], placement: Placement, ranks: list[float]
) -> Starts:
    """A device that is free runs what has come; of several, that which most depends on."""
    starts = [0.0] * len(durations)
    leaving = problem.leaving
    missing = list(map(len, problem.entering))
    come = [0.0] * len(durations)
    free = [0.0] * problem.devices
    # Each waits for its inputs first, then for its device: by the time at which it could begin.
    queue = [(0.0, -ranks[n], n) for n, count in enumerate(missing) if not count]
    queue.sort()
    while queue:
        time, rank, position = heappop(queue)
        here = placement[position]
        if free[here] > time:
            heappush(queue, (free[here], rank, position))
            continue
        starts[position] = time
        end = free[here] = time + durations[position]
        for _, taker, _, delays in leaving[position]:
            there = end + delays[here][placement[taker]]
            if there > come[taker]:
                come[taker] = there
            missing[taker] -= 1
            if not missing[taker]:
                heappush(queue, (come[taker], -ranks[taker], taker))
    return starts
