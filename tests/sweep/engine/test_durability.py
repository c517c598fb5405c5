"""What no kill, no full disk and no second run may do: lose a finished block, or halve one."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cubes import COMMAND, arrays, limit_file_sizes, refuse_writes
from distributed import LocalCluster

import paradl
from paradl.sweep.questions.status import read_status

# 12 blocks, answered in numpy, so that no process has to compile programs.
SPEC: dict[str, Any] = {
    "oracle": "paper",
    "axes": {
        "model": ["alexnet", "vgg16", "resnet50", "resnet152"],
        "dataset": ["imagenet", "imagenet-226", "imagenet-299"],
        "system": "abci",
        "strategy": "data",
        "pe": {"pow2": [1, 1024]},
        "batch": {"pow2": [1, 256]},
    },
}
# What Python reads first in each process of a sweep: files of a disk that takes half a second to
# give one its name. Done-marks are written together every 0.2 s, and the tests below stop a sweep
# between the first of them and the last.
SLOW_DISK = """
import pathlib, time
replace = pathlib.Path.replace
def replace_slowly(path, target):
    if "/limit/c." in str(target):
        time.sleep(0.5)
    return replace(path, target)
pathlib.Path.replace = replace_slowly
"""


DONE = "progress/done/c."  # what is written as the first block is done


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "spec.yaml"
    path.write_text(yaml.safe_dump(SPEC))
    return path


@pytest.fixture(scope="module")
def whole_url(tmp_path_factory) -> str:
    """The cube, uninterrupted."""
    url = str(tmp_path_factory.mktemp("whole") / "cube.zarr")
    paradl.run(SPEC, url)
    return url


@pytest.fixture
def marked_at_once(monkeypatch) -> None:
    """Each block is marked as it is done, so that other blocks are left after the first mark."""
    monkeypatch.setattr("paradl.sweep.cube.store.MARK_SECONDS", 0.001)


def slow_paths(folder: Path) -> str:
    """Return the PYTHONPATH of a process with the slow disk."""
    (folder / "sitecustomize.py").write_text(SLOW_DISK)
    return os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))


@pytest.fixture
def started(spec, tmp_path) -> Callable[..., subprocess.Popen[str]]:
    """Starts a sweep that has finished a block and has others to do."""

    def start(url: Path, *options: str) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            [*COMMAND, "sweep", str(spec), str(url), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # As workers have it, which then find the programs of the others.
            env=os.environ | {"PYTHONPATH": slow_paths(tmp_path), "JAX_PLATFORMS": "cpu"},
        )
        deadline = time.monotonic() + 40
        while not any(path.suffix != ".partial" for path in url.glob("progress/done/c.*")):
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return run

    return start


def files(url: object) -> set[str]:
    return {str(path.relative_to(str(url))) for path in Path(str(url)).rglob("*")}


def test_kill_and_resume(started, spec, whole_url, tmp_path, cli):
    """And no second run is let in before the first is dead."""
    url = tmp_path / "cube.zarr"
    run = started(url)
    run.send_signal(signal.SIGSTOP)
    try:
        for more in ([], ["--overwrite"]):
            code, _, err = cli("sweep", spec, url, *more)
            assert code == 2
            assert err.startswith(f"paradl: {url}: another run ")
            assert err.count("\n") == 1
    finally:
        run.kill()
        run.communicate()
    status = read_status(str(url))
    assert 0 < status["blocks_done"] < status["blocks"]
    (url / "limit" / "c.0.partial").write_bytes(b"half")
    paradl.run(spec, url)
    assert read_status(str(url))["complete"]
    assert arrays(url) == arrays(whole_url)
    assert files(url) == files(whole_url)


@pytest.mark.parametrize("options", [(), ("--workers", "1")])
def test_ctrl_c_says_how_to_go_on(options, started, tmp_path):
    url = tmp_path / "cube.zarr"
    run = started(url, *options)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does, to all processes of the run
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == (
        "paradl: interrupted; finished blocks are kept: rerun the same command to resume"
    )
    assert "Traceback" not in err
    assert not running_in(run.pid)
    status = read_status(str(url))
    # The signal may come between the last block and the summary.
    assert 0 < status["blocks_done"] <= status["blocks"]


def running_in(group: int) -> list[str]:
    """Processes of a group that are not dead yet, and may be waiting to be buried."""
    listed = subprocess.run(
        ("ps", "-e", "-o", "pgid=,stat=,args="), capture_output=True, text=True, check=True
    )
    lines = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    alive = [line for line in lines if int(line[0]) == group and not line[1].startswith("Z")]
    return [line[2] for line in alive if not line[2].startswith("[")]  # these have just ended


# A scheduler with a worker, as its own process; it ends with its stdin.
CLUSTER = """
from distributed import LocalCluster
with LocalCluster(1, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
    print(cluster.scheduler_address, flush=True)
    input()
"""


def test_a_killed_scheduler(started, whole_url, tmp_path):
    """No traceback of Dask, which tries to connect again."""
    url = tmp_path / "cube.zarr"
    cluster = subprocess.Popen(
        (sys.executable, "-c", CLUSTER),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": slow_paths(tmp_path)},
    )
    assert cluster.stdout
    with cluster:
        run = started(url, "--quiet", "--scheduler", cluster.stdout.readline().strip())
        cluster.kill()
        out, err = run.communicate(timeout=30)
    assert run.returncode == 1
    assert out == ""
    assert err.startswith("paradl: the Dask scheduler went away; finished blocks are kept")
    assert err.count("\n") == 1
    assert 0 < read_status(str(url))["blocks_done"] < read_status(str(url))["blocks"]


FULL = "the disk is full; finished blocks are kept"


def test_a_full_disk(marked_at_once, spec, whole_url, tmp_path, cli, monkeypatch):
    url = tmp_path / "cube.zarr"
    with monkeypatch.context() as patch:
        refuse_writes(patch, errno.ENOSPC, DONE)
        code, _, err = cli("sweep", spec, url, "--quiet")
    assert code == 1
    assert err.startswith(f"paradl: {url}: {FULL}")
    assert 0 < read_status(str(url))["blocks_done"] < read_status(str(url))["blocks"]
    assert cli("sweep", spec, url, "--quiet") == (0, "", "")
    assert arrays(url) == arrays(whole_url)


def test_a_full_disk_of_a_worker(spec, tmp_path, cli, monkeypatch):
    """Its error comes over the network, from a thread that the patch reaches.

    Refused after the first array of a block, so that not all blocks can be done before.
    """
    url = tmp_path / "cube.zarr"
    with LocalCluster(1, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
        refuse_writes(monkeypatch, errno.ENOSPC, "limit/c.")
        there = ("--scheduler", cluster.scheduler_address)
        code, _, err = cli("sweep", spec, url, "--quiet", *there)
    assert code == 1
    assert err.startswith(f"paradl: {url}: {FULL}")


def test_a_limit_on_file_sizes(tmp_path, cli, spec_file):
    """Metadata has 30 kB, a block's times more than the limit."""
    url = tmp_path / "cube.zarr"
    axes = SPEC["axes"] | {"model": "alexnet", "batch": {"range": [1, 1500]}}
    with limit_file_sizes(40_000):
        code, _, err = cli("sweep", spec_file(SPEC | {"axes": axes}), url, "--quiet")
    assert code == 1
    assert err.startswith(f"paradl: {url}: writing failed (File too large); ")
    assert err.count("\n") == 1
    assert read_status(str(url))["blocks_done"] == 0


def test_a_folder_that_may_not_be_made(small, tmp_path, cli, spec_file, monkeypatch):
    """As the system says to others than root, who may write everywhere."""
    url, make = tmp_path / "cube.zarr", Path.mkdir

    def refuse(path: Path, *arguments: Any, **options: Any) -> None:
        if path == url:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        make(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    code, _, err = cli("sweep", spec_file(small), url)
    assert code == 1
    assert "Permission denied" in err
