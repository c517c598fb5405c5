"""The critical path of a schedule: what, one after the other, makes it as long as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from grids.placing.problem import Edge, Placement, Problem


@dataclass(frozen=True)
class CriticalPath:
    """Operators from the last to the first, and the edges between them that are messages."""

    operators: tuple[int, ...]
    messages: tuple[Edge, ...]


def trace_path(
    problem: Problem, durations: Sequence[float], placement: Placement, starts: Sequence[float]
) -> CriticalPath:
    """The path that ends with the schedule.

    Each operator of a semi-active schedule begins when the last of what it waits for has ended: a
    message, or the operator before it on its device. The durations and messages of the path add up
    to the length of the schedule.
    """
    ends = [start + duration for start, duration in zip(starts, durations, strict=True)]
    earlier = _find_earlier(placement, starts)
    position: int | None = max(range(len(ends)), key=ends.__getitem__)
    operators, messages = [], []
    while position is not None:
        operators.append(position)
        position, message = _find_cause(problem, placement, ends, earlier, position)
        messages += [message] if message is not None else []
    return CriticalPath(tuple(operators), tuple(messages))


def _find_earlier(placement: Placement, starts: Sequence[float]) -> dict[int, int]:
    """The operator before each on its device."""
    earlier, last = {}, dict[int, int]()
    # Of operators that take no time several begin at once: the order of positions is possible.
    for position in sorted(range(len(starts)), key=lambda n: (starts[n], n)):
        here = placement[position]
        if here in last:
            earlier[position] = last[here]
        last[here] = position
    return earlier


def _find_cause(
    problem: Problem,
    placement: Placement,
    ends: Sequence[float],
    earlier: dict[int, int],
    position: int,
) -> tuple[int | None, Edge | None]:
    """The operator for which one waits the longest, and its message, if there is one."""
    here = placement[position]
    causes: list[tuple[float, int, Edge | None]] = [
        (
            ends[edge.maker] + edge.delays[placement[edge.maker]][here],
            edge.maker,
            edge if placement[edge.maker] != here else None,
        )
        for edge in problem.entering[position]
    ]
    if position in earlier:
        causes.append((ends[earlier[position]], earlier[position], None))
    if not causes:
        return None, None
    _, cause, message = max(causes, key=itemgetter(0))
    return cause, message
