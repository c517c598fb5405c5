"""Placements in stages: balanced like a pipeline, on neighbouring devices."""

from pathlib import Path

from placement_toys import diamond, join_devices

from grids.graphs.links import link_devices
from grids.inputs.stage_placements import place_stages
from grids.library import find
from grids.placing.problem import pose_problem


def test_stages_are_balanced_and_their_devices_next_to_each_other():
    problem = pose_problem(diamond(branch=2.0), join_devices(3))
    assert place_stages(problem) == [(0, 0, 1, 1), (0, 0, 1, 2)]
    assert place_stages(pose_problem(diamond(), join_devices(1))) == []
    # PEs 0 to 3 of a DGX-1: two links join 0 and 3, 1 and 2, 2 and 3; from 0 that gives 3, 2, 1.
    links = link_devices(find("system", "dgx1-v100", Path()), 4)
    assert links.pes == (0, 1, 2, 3)
    assert place_stages(pose_problem(diamond(), links))[-1] == (0, 3, 2, 1)
