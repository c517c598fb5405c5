"""When a hybrid wins, in plain Python: the second opinion, from Pal et al.'s formulas alone."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

Epochs = Callable[[float], float]


def speedup(split: float, efficiency: float, replicas: int, epochs: Epochs, batch: int) -> float:
    """SU^M_N = SU^M SE_N N E_1 / E_N; 0 where the batch never converges."""
    needed = epochs(batch * replicas)
    return 0.0 if needed == float("inf") else split * efficiency * replicas * epochs(batch) / needed


def interpolate(points: Sequence[tuple[int, float]]) -> Epochs:
    """Straight lines between measured points, which rise; asked for inside them alone."""

    def epochs(batch: float) -> float:
        for (low, first), (high, last) in pairwise(points):
            if low <= batch <= high:
                return first + (last - first) * (batch - low) / (high - low)
        raise ValueError(batch)

    return epochs


def find_first(ours: Mapping[int, float], theirs: Mapping[int, float]) -> int | None:
    """The least count of `ours` from which on it is above `theirs`, where either can train."""
    first = None
    for count in sorted(ours):
        if ours[count] <= 0 and theirs[count] <= 0:
            continue
        if ours[count] <= theirs[count]:
            first = None
        elif first is None:
            first = count
    return first


def keep_best(values: Mapping[int, float]) -> dict[int, float]:
    """The best so far at each count."""
    counts = sorted(values)
    return {count: max(values[other] for other in counts if other <= count) for count in counts}
