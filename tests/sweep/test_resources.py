import pytest

from grids.errors import InputError
from sweep.plan import LAYER_COPIES, SUMMARY_BYTES, make_plan
from sweep.resources import (
    AT_ONCE,
    PROCESS_BYTES,
    blocks_at_once,
    check_memory,
    cores,
    machine_memory,
    needed_memory,
)

PLAN = make_plan(
    ("model", "dataset", "system", "strategy", "pe", "batch"), (1, 1, 1, 1, 9, 9), 8, 2
)


def test_every_worker_holds_a_block_and_itself():
    block = 9 * 9 * (8 * 4 + SUMMARY_BYTES) + 8 * LAYER_COPIES
    assert needed_memory(PLAN, 3) == 3 * (PROCESS_BYTES + block)


def test_more_workers_than_memory_are_refused():
    workers = machine_memory() // PROCESS_BYTES + 1
    with pytest.raises(InputError, match=rf"{workers} workers need .* use fewer --workers"):
        check_memory(PLAN, workers)


def test_one_worker_fits():
    check_memory(PLAN, 1)


def test_a_container_may_have_less_memory_than_its_machine(tmp_path):
    limit = tmp_path / "memory.max"
    whole = machine_memory(limits=[])
    for text, memory in (("max\n", whole), ("4096\n", 4096), (f"{2**62}\n", whole)):
        limit.write_text(text)
        assert machine_memory(limits=[limit, tmp_path / "of-another-version"]) == memory


def test_a_few_blocks_at_once_as_far_as_memory_goes(monkeypatch):
    monkeypatch.setattr("sweep.resources.cores", lambda: 2)
    assert blocks_at_once(PLAN) == 3
    monkeypatch.setattr("sweep.resources.cores", lambda: 64)
    assert blocks_at_once(PLAN) == AT_ONCE
    memory = PROCESS_BYTES + 2 * PLAN.block_bytes
    monkeypatch.setattr("sweep.resources.machine_memory", lambda: memory)
    assert blocks_at_once(PLAN) == 2
    monkeypatch.setattr("sweep.resources.machine_memory", lambda: 0)
    assert blocks_at_once(PLAN) == 1
    assert cores() >= 1
