"""Pipeline stages: the contiguous partition of layers with the shortest longest stage.

Exact, not greedy (ParaDL's authors leave the partition open): the bound is the least sum of
consecutive layers within which all layers fit into the stages. If the items that cuts carry are
known, some balance is traded for them: among partitions whose longest stage is at most 5 % above
the least, the one whose largest cut carries the fewest items is taken.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from paradl.grids.models.layers import MOST_LAYERS
from paradl.grids.placing.problem import Placement, Problem
from paradl.kernels.names.arrays import Floats, Integers

Prefix = list[float]  # costs of all layers before each place [G + 1]
Bounds = dict[int, float]  # of the longest stage, by number of stages

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
    # In Python's numbers: in arrays of all numbers of stages at once, one number of them took four
    # to seven times as long (1.1 instead of 0.3 ms for 50 layers), 514 of them half to as long
    # (2026-11).
    prefix = [0.0, *np.cumsum(costs).tolist()]
    bounds = _find_least_bounds(prefix, numbers)
    if crossing is None:
        found = _fill(prefix, bounds)
    else:
        # The two ends of the network are no cuts to choose.
        found = _fill_between(prefix, bounds, [0.0, *crossing[:-1], 0.0])
    ends = np.full((max(numbers), len(numbers)), len(costs), np.int16)
    for column, stages in enumerate(numbers):
        ends[:stages, column] = found[stages]
    return ends


def _find_least_bounds(prefix: Prefix, numbers: Collection[int]) -> Bounds:
    """Find the least bound for each number of stages, by binary search over sums of layers."""
    whole = np.array(prefix)
    sums = np.subtract.outer(whole, whole)
    # Of the G (G + 1) / 2 sums, a bound is at least an equal share, and at most that and the
    # longest layer: of 132,355 sums for 514 layers in four stages, 1 % to sort.
    least, most = whole[-1] / max(numbers), whole[-1] / min(numbers) + np.diff(whole).max()
    sums = sums[(sums >= least / MARGIN) & (sums <= most * MARGIN)]
    sizes, bounds = np.unique(sums).tolist(), Bounds()

    def search(some: list[int], low: int, high: int) -> None:
        """Find the bounds of numbers in order, between two places in `sizes`."""
        if some:
            half, stages = len(some) // 2, some[len(some) // 2]
            at = bisect_left(sizes, True, low, high, key=lambda size: _fits(prefix, size, stages))
            bounds[stages] = sizes[at]
            # Fewer stages need no less.
            search(some[:half], at, high)
            search(some[half + 1 :], low, at)

    search(sorted(set(numbers)), 0, len(sizes) - 1)  # the largest always fits
    return bounds


def _fits(prefix: Prefix, bound: float, stages: int) -> bool:
    """True if layers packed up to the bound need no more than this number of stages."""
    end, last = 0, len(prefix) - 1
    for _ in range(stages):
        start, end = end, _reach_furthest(prefix, end, bound)
        if end in (start, last):  # no layer fits any more, or all are packed
            break
    return end == last


def _reach_furthest(prefix: Prefix, start: int, bound: float) -> int:
    """Return the end of the longest run of layers from `start` that costs at most this much."""
    return bisect_right(prefix, prefix[start] + bound * SLACK, start) - 1


def _fill(prefix: Prefix, bounds: Bounds) -> dict[int, list[int]]:
    """Return stage ends by number of stages."""
    last, filled = len(prefix) - 1, {}
    for stages, bound in bounds.items():
        end, ends = 0, []
        for left in reversed(range(stages)):  # each later stage needs a layer
            end = min(_reach_furthest(prefix, end, bound), last - left)
            ends.append(end)
        filled[stages] = [*ends[:-1], last]
    return filled


def _fill_between(prefix: Prefix, bounds: Bounds, carried: list[float]) -> dict[int, list[int]]:
    """Return stage ends, by number of stages, of balanced partitions whose cuts carry the least.

    carried [G + 1]: items at each possible cut.
    """

    @cache
    def cut(most: float) -> tuple[list[int], Prefix]:
        """Return the cuts that carry at most this, and the costs before each of them."""
        cuts = [place for place, items in enumerate(carried) if items <= most]
        # Layers between two allowed cuts stay together, like a single layer.
        return cuts, [prefix[place] for place in cuts]

    def find_least(stages: int) -> float:
        """Return the least that the largest cut of a balanced partition carries."""

        def fits(most: float) -> bool:
            _, runs = cut(most)
            return len(runs) > stages and _fits(runs, BALANCE * bounds[stages], stages)

        return sizes[bisect_left(sizes, True, hi=len(sizes) - 1, key=fits)]  # the last fits

    sizes, alike = sorted(set(carried)), defaultdict[float, list[int]](list)
    for stages in bounds:
        alike[find_least(stages)].append(stages)
    ends = {}
    for most, numbers in alike.items():
        cuts, runs = cut(most)
        for stages, filled in _fill(runs, _find_least_bounds(runs, numbers)).items():
            ends[stages] = [cuts[end] for end in filled]
    return ends


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
