from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

from paradl.grids.reading.errors import InputError
from paradl.kernels import programs
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.engine import resources
from paradl.sweep.engine.resources import (
    AT_ONCE,
    DRIVER_BYTES,
    MEMBERSHIP,
    blocks_at_once,
    check_memory,
    cores,
    estimate_memory,
    keep_programs,
    machine_memory,
    memory_limits,
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


# What version 1 says where there is no limit: the largest whole number of pages.
NONE = "9223372036854771712\n"


@pytest.fixture
def limits(tmp_path: Path) -> Callable[[str, dict[str, str]], list[int]]:
    """The limits of a process whose /proc/self/cgroup, and whose tree of groups, are as given."""

    def read(own: str, tree: dict[str, str]) -> list[int]:
        (tmp_path / "own").write_text(own)
        for name, text in tree.items():
            file = tmp_path / "mount" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return memory_limits(tmp_path / "own", tmp_path / "mount")

    return read


def test_version_2_counts_every_ancestor(limits):
    tree = {
        "system.slice/slurmstepd.scope/job_7/step_0/memory.max": "max\n",
        "system.slice/slurmstepd.scope/job_7/memory.max": "4096\n",
        "system.slice/memory.max": "8192\n",
        "user.slice/memory.max": "1\n",  # another's
    }
    own = "0::/system.slice/slurmstepd.scope/job_7/step_0/user\n"
    assert limits(own, tree) == [4096, 8192]


def test_version_1_has_a_tree_for_memory_alone(limits):
    tree = {
        "memory/slurm/uid_5/job_7/memory.limit_in_bytes": "4096\n",
        "memory/slurm/memory.limit_in_bytes": "8192\n",
        "memory/memory.limit_in_bytes": NONE,
        "cpu/slurm/uid_5/memory.limit_in_bytes": "1\n",  # no such thing: another controller
    }
    own = "5:cpu,cpuacct:/slurm/uid_5\n4:memory:/slurm/uid_5/job_7\n1:name=systemd:/\n0::/\n"
    assert limits(own, tree) == [4096, 8192, int(NONE)]


def test_a_container_that_sees_its_own_group_as_the_root(limits):
    """Version 1 names the path that the host knows; the limit stands at the mount."""
    assert limits("4:memory:/docker/1f2e\n", {"memory/memory.limit_in_bytes": "4096\n"}) == [4096]
    assert limits("0::/\n", {"memory.max": "2048\n"}) == [2048]


def test_a_path_may_hold_colons(limits):
    assert limits("0::/a:b/c\n", {"a:b/memory.max": "4096\n"}) == [4096]


def test_a_process_beside_the_root_of_its_namespace(limits):
    """Its path leads out of what is mounted: nothing beyond the mount is read."""
    assert limits("0::/../other\n", {"memory.max": "4096\n", "../memory.max": "1\n"}) == [4096]


def test_no_groups_set_no_limits(limits, tmp_path):
    assert limits("0::/\n", {}) == []
    assert memory_limits(tmp_path / "missing", tmp_path) == []


@pytest.mark.skipif(not MEMBERSHIP.exists(), reason="no control groups on this system")
def test_those_of_this_process_can_be_read():
    assert all(limit > 0 for limit in memory_limits())


OWN = "jax_compilation_cache_dir"


@pytest.fixture
def unset() -> Iterator[None]:
    """No place for programs yet, as where JAX has just been imported."""
    before, own = programs.find_folder(), jax.config.values[OWN]
    programs.keep_in(None)
    jax.config.update(OWN, None)
    yield
    programs.keep_in(before)
    jax.config.update(OWN, own)


@pytest.mark.usefixtures("unset")
def test_programs_are_kept_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_programs()
    assert programs.find_folder() == tmp_path / "paradl" / "programs"


@pytest.mark.usefixtures("unset")
def test_where_jax_keeps_programs_paradl_keeps_none(tmp_path):
    jax.config.update(OWN, str(tmp_path))
    keep_programs()
    assert programs.find_folder() is None
