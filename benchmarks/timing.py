"""Time actions on a noisy machine: run them in turn and compare medians.

A neighbour's load that lasts for seconds then slows all of them alike, and a shorter one falls out
of the median.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

Action = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of each round: elapsed, and of CPU."""

    seconds: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median round [s]."""
        return median(self.seconds)

    def rate_against(self, other: "Timing") -> float:
        """Return this rate over the other's: the median of the rounds' ratios."""
        return _find_ratio(other.seconds, self.seconds)

    def effort_against(self, other: "Timing") -> float:
        """Return this one's CPU seconds over the other's: the median of the rounds' ratios."""
        return _find_ratio(self.cpu, other.cpu)


def _find_ratio(dividends: tuple[float, ...], divisors: tuple[float, ...]) -> float:
    return median(map(float.__truediv__, dividends, divisors))


def nothing() -> None:
    """Prepare nothing."""


def interleaved(
    actions: Mapping[str, Action], rounds: int, prepare: Action = nothing
) -> dict[str, Timing]:
    """Time each action once per round, after an uncounted first round; `prepare` is not timed.

    Each round starts with another action, so that none always follows the same one.
    """
    order = list(actions)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in order}
    for number in range(rounds + 1):
        first = number % len(order)
        for name in order[first:] + order[:first]:
            prepare()
            seconds = _time(actions[name])
            if number > 0:  # the first round compiles and fills caches
                taken[name].append(seconds)
    return {name: Timing(*zip(*pairs, strict=True)) for name, pairs in taken.items()}


def _time(action: Action) -> tuple[float, float]:
    clock, cpu = perf_counter(), process_time()
    action()
    return perf_counter() - clock, process_time() - cpu
