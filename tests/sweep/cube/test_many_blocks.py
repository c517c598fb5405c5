"""A plan of a million blocks: marks are few files, and nothing is walked that is not asked for."""

from pathlib import Path

import numpy as np
import pytest

from paradl.sweep.cells.source import open_source
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import MARKS_PER_FILE, plan_cube
from paradl.sweep.cube.store import Cube, open_cube
from paradl.sweep.engine.run import read_grid

MILLION = {
    "oracle": "paper",
    "axes": {
        "model": "resnet50",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": ["data", "filter"],
        "pe": {"range": [1, 1024]},
        "batch": 32,
        "peak_flops": {"geomspace": [1e12, 1e15, 500]},
        "efficiency": {"linspace": [0.1, 1, 500]},
        "memory_bandwidth": {"geomspace": [1e11, 1e13, 60]},
    },
}

MANY = 200_000  # of which all take 2 s of CPU to mark


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Cube:
    grid = read_grid(MILLION)
    return create_cube(str(tmp_path_factory.mktemp("many") / "cube.zarr"), grid, plan_cube(grid))


def test_marks_share_files(cube: Cube) -> None:
    assert cube.plan.blocks >= 500_000
    blocks = np.random.default_rng(0).integers(cube.plan.blocks, size=100).tolist()
    cube.mark(blocks)
    assert np.flatnonzero(cube.read_done()).tolist() == sorted(set(blocks))
    assert open_source(cube.url).count_blocks() == (len(set(blocks)), cube.plan.blocks)
    cube.mark(blocks, done=False)
    assert not open_cube(cube.url).read_done().any()
    cube.mark(range(MANY))
    assert len(list(Path(cube.url, "progress/done").glob("c.*"))) < 2 * MANY // MARKS_PER_FILE
