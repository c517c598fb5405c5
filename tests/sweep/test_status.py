import pytest

from grids.errors import InputError
from sweep.creation import create
from sweep.engine import read_grid
from sweep.questions.status import status
from sweep.store import plan_of


def test_a_whole_cube(mixed_url):
    assert status(mixed_url) == {
        "store": mixed_url,
        "name": "mixed",
        "complete": True,
        "blocks": 4,
        "blocks_done": 4,
        "cells": 480,
        "bytes": 480 * (13 * 4 + 1),
    }


def test_a_cube_that_is_not_begun(tmp_path, small):
    grid = read_grid(small)
    cube = create(str(tmp_path / "cube.zarr"), grid, plan_of(grid))
    cube.write(2, {}, {})
    found = status(cube.url)
    assert (found["complete"], found["blocks_done"], found["bytes"]) == (False, 1, 96 * 13)


def test_no_cube(tmp_path):
    with pytest.raises(InputError, match="no cube here"):
        status(str(tmp_path))
