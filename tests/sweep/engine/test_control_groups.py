from collections.abc import Callable
from pathlib import Path

import pytest

from paradl.sweep.engine.resources import MEMBERSHIP, memory_limits

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
