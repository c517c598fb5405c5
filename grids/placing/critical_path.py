"""The critical path: the chain of operators and messages that determines a schedule's length."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from paradl.grids.placing.problem import Edge, Placement, Problem


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
        position, message = _find_cause(problem, placement, ends, earlier, position)
        messages += [message] if message is not None else []
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


def _find_cause(
    problem: Problem,
    placement: Placement,
    ends: Sequence[float],
    earlier: dict[int, int],
    position: int,
) -> tuple[int | None, Edge | None]:
    """Return the operator that this one waits for longest, and its message if it sends one."""
    device = placement[position]
    causes: list[tuple[float, int, Edge | None]] = [
        (
            ends[edge.maker] + edge.delays[placement[edge.maker]][device],
            edge.maker,
            edge if placement[edge.maker] != device else None,  # no message on one device
        )
        for edge in problem.entering[position]
    ]
    if position in earlier:
        causes.append((ends[earlier[position]], earlier[position], None))
    if not causes:
        return None, None
    _, cause, message = max(causes, key=itemgetter(0))
    return cause, message
