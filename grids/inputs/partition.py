"""Pipeline stages: the contiguous partition of the layers whose largest stage is least.

Exact, not greedy (ParaDL's authors leave the partition open): the bound is the least of all sums of
consecutive layers within which the layers fit into p2 stages.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats

Integers = NDArray[np.int64]

# Sums of the same layers differ by rounding; nothing physical is this close.
SLACK = 1 + 1e-9
# Partitions that are kept, in a quarter of the bytes: of 514 layers 0.5 MB each.
KEPT = 256


def stage_ends(costs: Floats, stages: Integers) -> Integers:
    """Ends of the stages for each number in `stages` [n], as layer indices [max(stages), n].

    `costs` [G] >= 0; each number of stages is 1..G. Stages are filled from the left up to the
    bound, and every later stage keeps at least one layer. Beyond the last stage, ends are G.
    """
    # `layers.MOST_LAYERS` is far below: an end takes two bytes.
    assert costs.size <= np.iinfo(np.int16).max
    return _find_stage_ends(tuple(costs.tolist()), tuple(stages.tolist())).astype(np.int64)


@lru_cache(maxsize=KEPT)  # the blocks of a sweep ask the same again and again
def _find_stage_ends(costs: tuple[float, ...], numbers: tuple[int, ...]) -> NDArray[np.int16]:
    prefix, stages = np.concatenate([[0.0], np.cumsum(costs)]), np.array(numbers)
    return _fill(prefix, _find_least_bounds(prefix, stages), stages).astype(np.int16)


def _find_least_bounds(prefix: Floats, stages: Integers) -> Floats:
    """The least bound for each number of stages: a binary search over all sums at once."""
    # The least bound is one of the G (G + 1) / 2 sums: of 514 layers 132,355, searched in 18 steps.
    sums = np.unique((prefix[None, :] - prefix[:, None])[np.triu_indices(prefix.size, k=1)])
    low, high = np.zeros(stages.size, np.int64), np.full(stages.size, sums.size - 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = _fits(prefix, sums[middle], stages)
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return np.asarray(sums[high])


def _fits(prefix: Floats, bounds: Floats, stages: Integers) -> NDArray[np.bool_]:
    """Whether layers packed up to each bound need no more than that many stages."""
    reached = np.zeros(stages.size, np.int64)
    for stage in range(int(stages.max())):
        further = _reach_furthest(prefix, reached, bounds)
        reached = np.where(stage < stages, further, reached)
        if (reached == prefix.size - 1).all():
            break
    return np.asarray(reached == prefix.size - 1)


def _fill(prefix: Floats, bounds: Floats, stages: Integers) -> Integers:
    layers = prefix.size - 1
    end = np.zeros(stages.size, np.int64)
    ends = []
    for stage in range(1, int(stages.max()) + 1):
        left = np.maximum(stages - stage, 0)  # later stages, a layer each at least
        end = np.minimum(np.maximum(_reach_furthest(prefix, end, bounds), end + 1), layers - left)
        ends.append(np.where(stage < stages, end, layers))
    return np.stack(ends)


def _reach_furthest(prefix: Floats, start: Integers, bounds: Floats) -> Integers:
    """The end of the longest run of layers from `start` that costs at most the bound."""
    return np.searchsorted(prefix, prefix[start] + bounds * SLACK, side="right") - 1
