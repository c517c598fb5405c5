"""Schedules of a placement: the start of every operator, with one at a time on a device.

An order of operators gives a schedule: each begins as soon as its device is free and its inputs
have arrived. Some order gives the shortest one (Baker 1974: shortest schedules are among the
semi-active ones). Two orders that are usually good are tried here. The critical path is the chain
of operators and messages that determines a schedule's length.

A search schedules 70,000 placements, so the loops compare inline rather than call `max`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import add, itemgetter

from paradl.grids.placing.problem import Edge, Placement, Problem
from paradl.kernels.names.arrays import Floats

Starts = list[float]


@dataclass(frozen=True)
class PlacementPlan:
    """A placement, its step time [s] and the starts of its operators [s, passes by n]."""

    placement: Placement
    starts: tuple[tuple[float, ...], ...]
    time: float


def plan_placement(problem: Problem, placement: Placement, runs: int = 1) -> PlacementPlan:
    """Return the better of two schedules of a placement.

    runs: micro-batches, equal parts of the operators; devices prefer earlier ones.
    """
    passes = (
        schedule_pass(problem, times, placement, runs) for times in problem.durations.tolist()
    )
    starts, lengths = zip(*passes, strict=True)
    return PlacementPlan(placement, tuple(map(tuple, starts)), sum(lengths))


def follow_starts(problem: Problem, placement: Placement, starts: Floats) -> PlacementPlan:
    """Return the plan in which devices run their operators in the order of these starts."""
    schedules: list[Starts] = []
    lengths = []
    for durations, begins in zip(problem.durations.tolist(), starts.tolist(), strict=True):
        order = _sort_by_start(problem, durations, begins)
        schedules.append(follow_order(problem, durations, placement, order))
        lengths.append(find_length(schedules[-1], durations))
    return PlacementPlan(placement, tuple(map(tuple, schedules)), sum(lengths))


def _sort_by_start(problem: Problem, durations: list[float], begins: list[float]) -> list[int]:
    """Sort operators by start, none before its inputs."""
    # HiGHS's tolerance may put a start slightly before its inputs have ended.
    latest: list[float] = []
    for edges, begin in zip(problem.entering, begins, strict=True):
        latest.append(max([begin, *(latest[e.maker] + durations[e.maker] for e in edges)]))
    # If two begin together on a device, one takes no time and goes first.
    return sorted(range(len(begins)), key=lambda n: (latest[n], durations[n] > 0, n))


def schedule_pass(
    problem: Problem, durations: Sequence[float], placement: Placement, runs: int = 1
) -> tuple[Starts, float]:
    """Return the better of both orders, and its length [s]."""
    ranks = _put_in_turn(rank_operators(problem, durations, placement), runs)
    # The sort is stable: ties stay in operator order.
    order = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)
    # Neither is always the better: the second never idles, the first may wait for a long path.
    by_rank = follow_order(problem, durations, placement, order)
    by_time = _dispatch(problem, durations, placement, ranks)
    schedules = ((starts, find_length(starts, durations)) for starts in (by_rank, by_time))
    return min(schedules, key=itemgetter(1))


def find_length(starts: Sequence[float], durations: Sequence[float]) -> float:
    """End of the last operator [s]."""
    length: float = max(map(add, starts, durations))
    return length


def rank_operators(
    problem: Problem, durations: Sequence[float], placement: Placement
) -> list[float]:
    """Remaining work from each operator on, messages included [s, n].

    HEFT's upward rank (Topcuoglu et al., IEEE TPDS 13(3), 2002), for a known placement.
    """
    ranks = [0.0] * len(durations)
    leaving = problem.leaving
    for position in reversed(range(len(durations))):
        device = placement[position]
        after = 0.0
        for _, taker, _, delays in leaving[position]:
            rank = delays[device][placement[taker]] + ranks[taker]
            if rank > after:
                after = rank
        ranks[position] = durations[position] + after
    return ranks


def _put_in_turn(ranks: list[float], runs: int) -> list[float]:
    """Raise ranks so that all operators of an earlier micro-batch precede those of later ones."""
    if runs == 1:
        return ranks
    size, apart = len(ranks) // runs, max(ranks)
    return [rank + (runs - 1 - n // size) * apart for n, rank in enumerate(ranks)]


def follow_order(
    problem: Problem, durations: Sequence[float], placement: Placement, order: Sequence[int]
) -> Starts:
    """Return the starts if devices run their operators in this order, makers before takers."""
    starts = [0.0] * len(durations)
    free = [0.0] * problem.devices
    entering = problem.entering
    for position in order:
        device = placement[position]
        begin = free[device]
        for maker, _, _, delays in entering[position]:
            arrival = starts[maker] + durations[maker] + delays[placement[maker]][device]
            if arrival > begin:
                begin = arrival
        starts[position] = begin
        free[device] = begin + durations[position]
    return starts


def _dispatch(
    problem: Problem, durations: Sequence[float], placement: Placement, ranks: list[float]
) -> Starts:
    """Return the starts if a free device runs the ready operator of the highest rank."""
    starts = [0.0] * len(durations)
    leaving = problem.leaving
    missing = list(map(len, problem.entering))
    arrived = [0.0] * len(durations)
    free = [0.0] * problem.devices
    # Keyed by earliest start: an operator waits for its inputs first, then for its device.
    queue = [(0.0, -ranks[n], n) for n, count in enumerate(missing) if not count]
    queue.sort()
    while queue:
        time, rank, position = heappop(queue)
        device = placement[position]
        if free[device] > time:
            heappush(queue, (free[device], rank, position))
            continue
        starts[position] = time
        end = free[device] = time + durations[position]
        for _, taker, _, delays in leaving[position]:
            arrival = end + delays[device][placement[taker]]
            if arrival > arrived[taker]:
                arrived[taker] = arrival
            missing[taker] -= 1
            if not missing[taker]:
                heappush(queue, (arrived[taker], -ranks[taker], taker))
    return starts


@dataclass(frozen=True)
class CriticalPath:
    """Operators from last to first, and the messages between them."""

    operators: tuple[int, ...]
    messages: tuple[Edge, ...]


def trace_path(
    problem: Problem, durations: Sequence[float], placement: Placement, starts: Sequence[float]
) -> CriticalPath:
    """Return the path that ends with the schedule.

    Every operator of a semi-active schedule begins when the last thing it waits for has ended: a
    message, or the previous operator on its device. So the durations and messages of the path add
    up to the length of the schedule.
    """
    ends = [start + duration for start, duration in zip(starts, durations, strict=True)]
    earlier = _find_earlier(placement, starts)
    position: int | None = max(range(len(ends)), key=ends.__getitem__)
    operators, messages = [], []
    while position is not None:
        operators.append(position)
        device = placement[position]
        # When each thing that it waits for has come, the operator behind it, and its tensor.
        causes: list[tuple[float, int, Edge | None]] = [
            (ends[edge.maker] + edge.delays[placement[edge.maker]][device], edge.maker, edge)
            for edge in problem.entering[position]
        ]
        if position in earlier:
            causes.append((ends[earlier[position]], earlier[position], None))
        _, position, edge = max(causes, key=itemgetter(0), default=(0.0, None, None))
        if edge is not None and placement[edge.maker] != device:  # no message on one device
            messages.append(edge)
    return CriticalPath(tuple(operators), tuple(messages))


def _find_earlier(placement: Placement, starts: Sequence[float]) -> dict[int, int]:
    """Map each operator to the previous one on its device."""
    earlier, last = {}, dict[int, int]()
    # Operators of zero duration may begin together: ties follow positions, a possible order.
    for position in sorted(range(len(starts)), key=lambda n: (starts[n], n)):
        device = placement[position]
        if device in last:
            earlier[position] = last[device]
        last[device] = position
    return earlier
