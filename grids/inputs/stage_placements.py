"""Placements in stages: contiguous operators per device, balanced like those of `pipeline`."""

import numpy as np

from grids.inputs.partition import stage_ends
from grids.models.layers import MOST_LAYERS
from grids.placing.problem import Placement, Problem
from kernels.names.arrays import Floats


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
