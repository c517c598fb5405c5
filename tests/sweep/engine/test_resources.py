from typing import Any

import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.engine import resources
from paradl.sweep.engine.resources import (
    AT_ONCE,
    DRIVER_BYTES,
    blocks_at_once,
    check_memory,
    cores,
    estimate_memory,
    machine_memory,
    needed_memory,
)
from paradl.sweep.engine.run import read_grid

SPEC: dict[str, Any] = {
    "oracle": "paper",
    "axes": {
        "model": ["alexnet", "vgg16"],
        "dataset": ["imagenet", "imagenet-226", "imagenet-299"],
        "system": "abci",
        "strategy": "data",
        "pe": {"range": [1, 64]},
        "batch": 16,
    },
}
GRID = read_grid(SPEC)
PLAN = plan_cube(GRID)
MEMORY = estimate_memory(GRID, PLAN)


def test_every_worker_holds_a_block_and_itself():
    assert needed_memory(GRID, PLAN, 3) == DRIVER_BYTES + 3 * (MEMORY.process + MEMORY.block)


def test_more_workers_than_memory_are_refused():
    workers = machine_memory() // MEMORY.process + 1
    with pytest.raises(InputError, match=rf"{workers} workers.* use fewer workers"):
        check_memory(GRID, PLAN, workers)


def test_a_machine_too_small_for_one_block_is_refused(monkeypatch):
    monkeypatch.setattr(resources, "machine_memory", lambda: MEMORY.with_blocks(1) - 1)
    with pytest.raises(InputError, match=r"a block.* GB"):
        check_memory(GRID, PLAN, 0)


def test_one_process_fits():
    check_memory(GRID, PLAN, 0)
    check_memory(GRID, PLAN, 1)


def test_a_container_may_have_less_memory_than_its_machine():
    whole = machine_memory(limits=[])
    assert machine_memory(limits=[2**62]) == whole
    assert machine_memory(limits=[8192, 4096, 2**62]) == 4096


def test_a_few_blocks_at_once_as_far_as_memory_goes(monkeypatch):
    assert PLAN.blocks > AT_ONCE
    monkeypatch.setattr(resources, "cores", lambda: 2)
    assert blocks_at_once(GRID, PLAN) == 3
    monkeypatch.setattr(resources, "cores", lambda: 64)
    assert blocks_at_once(GRID, PLAN) == AT_ONCE
    assert needed_memory(GRID, PLAN, 0) == MEMORY.with_blocks(AT_ONCE)
    for memory, blocks in ((MEMORY.with_blocks(2), 2), (MEMORY.with_blocks(2) - 1, 1), (0, 1)):
        monkeypatch.setattr(resources, "machine_memory", lambda memory=memory: memory)
        assert blocks_at_once(GRID, PLAN) == blocks
        assert needed_memory(GRID, PLAN, 0) == MEMORY.with_blocks(blocks)
    assert cores() >= 1


def test_no_more_blocks_at_once_than_there_are(monkeypatch):
    one = read_grid(
        {"oracle": "paper", "axes": SPEC["axes"] | {"model": "alexnet", "dataset": "imagenet"}}
    )
    monkeypatch.setattr(resources, "cores", lambda: 64)
    assert blocks_at_once(one, plan_cube(one)) == 1
