"""Exchanges of devices: of a switch, and of a DGX-1's cube mesh."""

from pathlib import Path

from placement_toys import diamond, join_devices

from grids.graphs.links import link_devices
from grids.library import find
from grids.placing.problem import pose_problem
from grids.placing.symmetry import Symmetry, exchange_devices

DGX1 = find("system", "dgx1-v100", Path())


def test_all_devices_of_a_switch_are_alike():
    symmetry = Symmetry(pose_problem(diamond(), join_devices(4, 1.0)))
    assert symmetry.uniform
    assert symmetry.list_first() == (0,)
    for pair in ((2, 2), (3, 1), (0, 1)):
        first, exchange = symmetry.normalise(pair)
        assert first == ((0, 0) if pair[0] == pair[1] else (0, 1))
        assert exchange_devices(first, exchange) == pair
        assert sorted(exchange) == [0, 1, 2, 3]


def test_a_quad_of_the_cube_mesh_has_two_kinds_of_devices():
    # 0 and 1 have two links to 3 and to 2, and one to each other; 2 and 3 have two to each other.
    problem = pose_problem(diamond(), link_devices(DGX1, 4))
    symmetry = Symmetry(problem)
    assert symmetry.exchanges == ((0, 1, 2, 3), (1, 0, 3, 2))
    assert symmetry.list_first() == (0, 2)
    for pair in ((1, 1), (1, 2), (3, 0)):
        first, exchange = symmetry.normalise(pair)
        assert exchange_devices(first, exchange) == pair
        assert first[0] in (0, 2) or first < pair


def test_an_exchange_changes_no_time():
    problem = pose_problem(diamond(), link_devices(DGX1, 8))
    symmetry = Symmetry(problem)
    assert len(symmetry.exchanges) > 1
    for exchange in symmetry.exchanges:
        for table in problem.delays:
            assert all(
                table[exchange[a], exchange[b]] == table[a, b] for a in range(8) for b in range(8)
            )
