"""Pipeline stages: the contiguous partition of layers with the shortest longest stage.

Exact, not greedy (ParaDL's authors leave the partition open): the bound is the least sum of
consecutive layers within which all layers fit into the stages. If the items that cuts carry are
known, some balance is traded for them: among partitions whose longest stage is at most 5 % above
the least, the one whose largest cut carries the fewest items is taken.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import MOST_LAYERS
from grids.placing.problem import Placement, Problem
from kernels.names.arrays import Flags, Floats, Integers

# Sums of the same layers differ by rounding only; no physical difference is this small.
SLACK = 1 + 1e-9
# Far above what rounds: no bound is left out.
MARGIN = 1 + 1e-6
# Longest stage over the least possible one, if cuts then carry less.
BALANCE = 1.05
# Partitions kept, in int16: 0.5 MB each for 514 layers.
KEPT = 256


def stage_ends(costs: Floats, stages: Integers, crossing: Floats | None = None) -> Integers:
    """Return layer indices [max(stages), n] at which stages end, for each number in `stages` [n].

    costs [G] >= 0; numbers of stages are 1..G. Stages are filled from the left up to the bound, and
    every later stage keeps at least one layer. Beyond the last stage, ends are G. crossing [G]:
    items that a cut behind each layer carries, if they count.
    """
    # An end fits in two bytes: `layers.MOST_LAYERS` is far below.
    assert costs.size <= np.iinfo(np.int16).max
    carried = None if crossing is None else tuple(crossing.tolist())
    ends = _find_stage_ends(tuple(costs.tolist()), tuple(stages.tolist()), carried)
    return ends.astype(np.int64)


@lru_cache(maxsize=KEPT)  # the blocks of a sweep repeat their questions
def _find_stage_ends(
    costs: tuple[float, ...], numbers: tuple[int, ...], crossing: tuple[float, ...] | None
) -> NDArray[np.int16]:
    prefix, stages = np.concatenate([[0.0], np.cumsum(costs)]), np.array(numbers)
    bounds = _find_least_bounds(prefix, stages)
    if crossing is None:
        return _fill(prefix, bounds, stages).astype(np.int16)
    # The two ends of the network are no cuts to choose.
    carried = np.array([0.0, *crossing[:-1], 0.0])
    most = _find_least_crossing(prefix, BALANCE * bounds, stages, carried)
    return _fill_between(prefix, stages, carried, most).astype(np.int16)


def _find_least_bounds(prefix: Floats, stages: Integers) -> Floats:
    """Find the least bound for each number of stages, by one binary search over sums of layers."""
    # Of the G (G + 1) / 2 sums, a bound is at least an equal share, and at most that and the
    # longest layer: of 132,355 sums for 514 layers in four stages, 1 % to sort.
    sums = prefix[None, :] - prefix[:, None]
    least, most = prefix[-1] / stages.max(), prefix[-1] / stages.min() + np.diff(prefix).max()
    sums = np.unique(sums[(sums >= least / MARGIN) & (sums <= most * MARGIN)])
    least = _find_first(sums.size, stages.size, lambda number: _fits(prefix, sums[number], stages))
    return np.asarray(sums[least])


def _find_least_crossing(
    prefix: Floats, bounds: Floats, stages: Integers, carried: Floats
) -> Floats:
    """Find the least number of items that no cut of some partition within the bounds exceeds [n].

    carried [G + 1]: items at each possible cut.
    """
    sizes, places = np.unique(carried), np.arange(prefix.size)

    def fits(number: Integers) -> Flags:
        allowed = carried <= sizes[number][:, None]  # [n, G + 1]
        before = np.maximum.accumulate(np.where(allowed, places, 0), axis=1)
        enough: Flags = allowed.sum(axis=1) > stages  # counts the network's two ends
        return enough & _fits(prefix, bounds, stages, before)

    return np.asarray(sizes[_find_first(sizes.size, stages.size, fits)])


def _find_first(size: int, count: int, fits: Callable[[Integers], Flags]) -> Integers:
    """Bisect for the least number below `size` that fits, `count` times; the last always fits."""
    low, high = np.zeros(count, np.int64), np.full(count, size - 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = fits(middle)
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return high


def _fits(
    prefix: Floats, bounds: Floats, stages: Integers, before: Integers | None = None
) -> Flags:
    """True if layers packed up to each bound need no more than the number of stages.

    before [n, G + 1]: the last allowed end up to each place; everywhere by default.
    """
    reached, columns = np.zeros(stages.size, np.int64), np.arange(stages.size)
    most, last = bounds * SLACK, prefix.size - 1
    for stage in range(int(stages.max())):
        start = reached
        further = _reach_furthest(prefix, start, most)
        if before is not None:
            further = before[columns, further]
        reached = np.where(stage < stages, further, start)
        # All is packed, or nothing fits any more: more stages change nothing.
        if reached.min() == last or np.array_equal(reached, start):
            break
    return np.asarray(reached == last)


def _fill(prefix: Floats, bounds: Floats, stages: Integers) -> Integers:
    layers = prefix.size - 1
    end = np.zeros(stages.size, np.int64)
    most = bounds * SLACK
    ends = []
    for stage in range(1, int(stages.max()) + 1):
        left = np.maximum(stages - stage, 0)  # each later stage needs a layer
        end = np.minimum(np.maximum(_reach_furthest(prefix, end, most), end + 1), layers - left)
        ends.append(np.where(stage < stages, end, layers))
    return np.stack(ends)


def _fill_between(prefix: Floats, stages: Integers, carried: Floats, most: Floats) -> Integers:
    """Return stage ends of the best partition whose cuts carry at most `most` items [n]."""
    ends = np.full((int(stages.max()), stages.size), prefix.size - 1)
    for items in np.unique(most):
        # Layers between two allowed cuts stay together, like a single layer.
        cuts, columns = np.flatnonzero(carried <= items), np.flatnonzero(most == items)
        runs, numbers = prefix[cuts], stages[columns]
        filled = cuts[_fill(runs, _find_least_bounds(runs, numbers), numbers)]
        ends[: len(filled), columns] = filled
    return ends


def _reach_furthest(prefix: Floats, start: Integers, most: Floats) -> Integers:
    """Return the end of the longest run of layers from `start` that costs at most this much."""
    # The array's own method: `np.searchsorted` takes half as long again for a few stages.
    return prefix.searchsorted(prefix[start] + most, side="right") - 1


def place_stages(problem: Problem) -> list[Placement]:
    """Return stages of contiguous operators on 2 devices, 3, and so on.

    Each stage is on the free device nearest to the previous stage's.
    """
    most = min(problem.devices, problem.operators)
    if most < 2 or problem.operators > MOST_LAYERS:
        return []
    devices = _line_up(problem.delays.sum(axis=0))
    ends = stage_ends(problem.durations.sum(axis=0), np.arange(2, most + 1), _cross(problem))
    stages = (ends[:, None] <= np.arange(problem.operators)[:, None]).sum(axis=0).T
    return [tuple(devices[stage] for stage in row) for row in stages.tolist()]


def _cross(problem: Problem) -> Floats:
    """Bytes that cross a cut behind each operator [n]."""
    carried = np.zeros(problem.operators)
    for tensor in problem.tensors:
        carried[tensor.maker : max(tensor.takers)] += tensor.bytes
    return carried


def _line_up(delays: Floats) -> list[int]:
    """Order devices from the first on, each followed by the nearest one left."""
    line, left = [0], [*range(1, len(delays))]
    while left:
        nearest = min(left, key=lambda device: (delays[line[-1], device], device))
        left.remove(nearest)
        line.append(nearest)
    return line
