from paradl.grids.outputs import OUTPUTS
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.cube.variables import VARIABLES
from paradl.sweep.engine.run import read_grid
from paradl.sweep.questions.status import read_status, verify_status


def test_a_whole_cube(mixed_url):
    assert read_status(mixed_url) == {
        "store": mixed_url,
        "name": "mixed",
        "complete": True,
        "blocks": 4,
        "blocks_done": 4,
        "summaries_missing": 0,
        "cells": 480,
        "bytes": 480 * sum(VARIABLES[output].dtype.itemsize for output in OUTPUTS),
    }


def test_a_cube_that_is_not_begun(tmp_path, small):
    grid = read_grid(small)
    cube = create_cube(str(tmp_path / "cube.zarr"), grid, plan_cube(grid))
    cube.mark([2])
    status = read_status(cube.url)
    assert (status["complete"], status["blocks_done"], status["bytes"]) == (False, 1, 96 * 14)


def test_a_whole_cube_is_verified(mixed_url):
    assert verify_status(mixed_url) == read_status(mixed_url) | {"damaged": [], "left": ""}
