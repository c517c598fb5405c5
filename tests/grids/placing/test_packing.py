"""Whether operators fit their devices' memory, and how many devices would be enough."""

import math

import pytest
from placement_toys import diamond, join_devices

from paradl.grids.graphs.graph import NamedTensor, Operator, link_operators
from paradl.grids.placing.problem import Problem, pose_problem
from paradl.grids.placing.program import count_devices, pack

NODES = 1000


def pose(held: list[float], devices: int, room: float, size: float = 0.0) -> Problem:
    """Chain operators that hold this many bytes each."""
    operators = [Operator(f"o{n}", 1.0, 1.0, kept=value) for n, value in enumerate(held)]
    tensors = [NamedTensor(f"o{n}", (f"o{n + 1}",), size) for n in range(len(held) - 1)]
    return pose_problem(
        link_operators("chain", operators, tensors), join_devices(devices), room=room
    )


def test_what_fits_in_turn():
    assert pack(pose([2, 2, 2, 2], 2, 4), NODES).placement == (0, 0, 1, 1)


def test_what_fits_only_out_of_turn():
    packing = pack(pose([3, 2, 2, 1], 2, 4), NODES)
    assert packing.placement is not None
    assert packing.placement[0] == packing.placement[3] != packing.placement[1]


def test_what_fits_but_for_what_is_sent():
    # Wherever the chain is cut, both devices have the tensor.
    assert pack(pose([2, 2], 2, 2, size=1.0), NODES).impossible
    assert pack(pose([2, 2], 2, 3, size=1.0), NODES).placement == (0, 1)


@pytest.mark.parametrize(
    ("held", "room", "devices"),
    [([2, 2, 2], 2, 3), ([3, 3, 3], 5, 3), ([1], 1, 1)],
)
def test_the_fewest_devices(held, room, devices):
    assert count_devices(pose(held, 1, room), NODES) == devices


def test_no_number_of_devices_is_enough():
    # The second operator's device holds the first one's tensor, or the first operator.
    problem = pose([2, 3], 1, 3, size=1.0)
    assert problem.least_memory.tolist() == [2.0, 4.0]
    assert count_devices(problem, NODES) is None


def test_without_nodes_it_is_not_known():
    packing = pack(pose([3, 2, 2, 1], 2, 4), 0)
    assert packing.placement is None
    assert not packing.impossible
    assert count_devices(pose([3, 2, 2, 1], 2, 4), 0) is None


def test_memory_is_what_operators_hold_and_what_they_are_sent_once():
    problem = pose_problem(diamond(size=2.0), join_devices(2), room=math.inf)
    # The second device gets one copy of the stem's tensor, though both branches take it.
    assert problem.measure_memory((0, 1, 1, 1)).tolist() == [4.0, 12.0 + 2.0]
    assert problem.measure_memory((0, 0, 1, 0)).tolist() == [12.0 + 2.0, 4.0 + 2.0]
