"""Time actions on a noisy machine: run them in turn and compare medians.

A neighbour's load that lasts for seconds then slows all of them alike, and a shorter one falls out
of the median.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

Action = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median round [s]."""
        return median(self.seconds)

    def rate_against(self, other: "Timing") -> float:
        """Return this rate over the other's: the median of the rounds' ratios."""
        pairs = zip(self.seconds, other.seconds, strict=True)
        return median(theirs / ours for ours, theirs in pairs)


def nothing() -> None:
    """Prepare nothing."""


def interleaved(
    actions: Mapping[str, Action], rounds: int, prepare: Action = nothing
) -> dict[str, Timing]:
    """Time each action once per round, after an uncounted first round; `prepare` is not timed.

    Each round starts with another action, so that none always follows the same one.
    """
    order = list(actions)
    seconds: dict[str, list[float]] = {name: [] for name in order}
    for number in range(rounds + 1):
        first = number % len(order)
        for name in order[first:] + order[:first]:
            prepare()
            taken = _seconds(actions[name])
            if number > 0:  # the first round compiles and fills caches
                seconds[name].append(taken)
    return {name: Timing(tuple(rounds)) for name, rounds in seconds.items()}


def _seconds(action: Action) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start
