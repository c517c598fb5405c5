import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from socket import gethostname

import dask
import pytest
from cubes import DATA, arrays
from dask.base import get_scheduler
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.cube.store import Cube
from paradl.sweep.engine.block import run_block, run_blocks
from paradl.sweep.engine.dask_executor import (
    AHEAD,
    connect_cluster,
    make_local_environment,
    open_client,
    run_tasks,
)
from paradl.sweep.engine.run import read_grid
from paradl.sweep.errors import RunError


@pytest.fixture(scope="module", autouse=True)
def forked() -> Iterator[None]:
    """Workers forked from a process that has imported what they need: 2 s less for each.

    As sweeps start them: test_local_cluster.py, test_durability.py.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        context = get_mp_context()  # names what Dask itself would have imported
        context.set_forkserver_preload(
            ["distributed", "paradl.sweep.engine.run", "paradl.sweep.engine.block"]
        )
        yield


@pytest.fixture(scope="module")
def cluster():
    """A running scheduler with two worker processes."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", env=make_local_environment()
    ) as running:
        yield running


@pytest.fixture
def empty() -> Iterator[LocalCluster]:
    """A running scheduler that has no workers yet."""
    with LocalCluster(
        n_workers=0, threads_per_worker=1, dashboard_address=":0", env=make_local_environment()
    ) as running:
        yield running


def create_blocky(url: Path) -> Cube:
    """A store of many blocks, all of one shape, so that one program serves all."""
    grid = read_grid({"oracle": "paper", "axes": DATA["axes"] | {"pe": list(range(1, 33))}})
    shape = plan_cube(read_grid(DATA)).shard
    return create_cube(str(url), grid, replace(plan_cube(grid), shard=shape))


@pytest.fixture
def blocky(tmp_path) -> Cube:
    """Such a store, no block of which is done."""
    return create_blocky(tmp_path / "blocky.zarr")


@pytest.fixture(scope="module")
def blocky_url(tmp_path_factory) -> str:
    """Such a store, filled by this process."""
    cube = create_blocky(tmp_path_factory.mktemp("blocky") / "cube.zarr")
    assert sorted(run_blocks(cube, all_of(cube))) == all_of(cube)
    return cube.url


def all_of(cube: Cube) -> list[int]:
    return list(range(cube.plan.blocks))


def noting_workers(folder: Path) -> Callable[[int], None]:
    """A task that leaves a file, named after its process. All but the first wait for a second one,
    whose start may take seconds.
    """

    def task(block: int) -> None:
        (folder / str(os.getpid())).touch()
        deadline = time.monotonic() + 30
        while block > 0 and len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)

    return task


@pytest.mark.parametrize("own", ["", "--xla_dump_to=here", "--xla_cpu_multi_thread_eigen=false"])
def test_local_workers_keep_the_users_flags(own, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", own)
    flags = make_local_environment()["XLA_FLAGS"].split()
    assert set(flags) == {"--xla_cpu_multi_thread_eigen=false", *own.split()}
    assert len(flags) == len(set(flags))


def test_a_local_process_makes_the_same_cube(data_spec, data_url, tmp_path):
    paradl.run(data_spec, tmp_path / "cube.zarr", workers=1)
    assert arrays(tmp_path / "cube.zarr") == arrays(data_url)


def test_a_running_scheduler_makes_the_same_cube(cluster, data_spec, data_url, tmp_path):
    paradl.run(data_spec, tmp_path / "cube.zarr", scheduler=cluster.scheduler_address)
    assert arrays(tmp_path / "cube.zarr") == arrays(data_url)


def test_workers_that_filled_a_cube_extend_it(cluster, data_spec, data_url, tmp_path):
    """Each has the cube open as it was."""
    url, whole = tmp_path / "cube.zarr", shutil.copytree(data_url, tmp_path / "whole.zarr")
    there = {"scheduler": cluster.scheduler_address}
    paradl.run(data_spec, url, **there)
    data_spec["axes"]["pe"] = [1, 2, 4, 8, 65]
    paradl.run(data_spec, url, extend=True, **there)
    paradl.run(data_spec, whole, extend=True)
    assert arrays(url) == arrays(whole)


def test_every_block_is_told_once(cluster, blocky, blocky_url):
    with connect_cluster(0, cluster.scheduler_address) as execute:
        assert sorted(execute(blocky, all_of(blocky))) == all_of(blocky)
    assert arrays(blocky.url) == arrays(blocky_url)


def test_the_store_may_be_named_from_here(cluster, data_spec, data_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the workers stay where they were started
    paradl.run(data_spec, "cube.zarr", scheduler=cluster.scheduler_address)
    assert arrays("cube.zarr") == arrays(data_url)


def test_a_worker_that_dies_is_replaced(cluster, blocky, blocky_url):
    with connect_cluster(0, cluster.scheduler_address) as execute:
        running = execute(blocky, all_of(blocky))
        seen = [next(running)]
        with Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        seen += running
    assert sorted(seen) == all_of(blocky)
    assert arrays(blocky.url) == arrays(blocky_url)


def test_workers_that_join_later(empty, tmp_path):
    with Client(empty, set_as_default=False) as client:
        blocks = run_tasks(client, noting_workers(tmp_path), range(60))
        threading.Timer(0.5, empty.scale, [1]).start()
        seen = [next(blocks)]
        assert len(list(tmp_path.iterdir())) == 1
        empty.scale(2)
        seen += blocks
    assert sorted(seen) == list(range(60))
    assert len(list(tmp_path.iterdir())) == 2


def test_an_adaptive_cluster_grows_and_shrinks(empty, tmp_path):
    with Client(empty, set_as_default=False) as client:
        empty.adapt(minimum=0, maximum=2, interval="100ms", target_duration="50ms")
        assert sorted(run_tasks(client, noting_workers(tmp_path), range(40))) == list(range(40))
        assert len(list(tmp_path.iterdir())) == 2


def test_few_blocks_are_in_flight_however_many_there_are(cluster):
    handed_out = 0

    def blocks() -> Iterator[int]:
        nonlocal handed_out
        for block in range(100_000):
            handed_out += 1
            yield block

    with Client(cluster, set_as_default=False) as client:
        for done, _ in zip(count(1), islice(run_tasks(client, abs, blocks()), 150), strict=False):
            assert handed_out - done < AHEAD * 2  # two threads; the block just told is not in it
            assert len(client.futures) < 50  # those that are done go a moment later


def test_a_block_that_kills_every_worker():
    """Closed while Dask starts the worker again: 6 of 48 ended in its own assertion, under load."""

    def task(block: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        with open_client(1, None) as client:
            assert isinstance(client.cluster, LocalCluster)
            assert client.cluster.scheduler is not None
            client.cluster.scheduler.allowed_failures = 1  # three by default: seconds each
            list(run_tasks(client, task, [0]))

    with pytest.raises(RunError, match=r"2 workers died at the same block; .* kept"):
        run()


def test_a_worker_that_cannot_read_the_store(cluster, blocky, tmp_path):
    blocky.group.update_attributes({"paradl_incomplete": True})
    with (
        connect_cluster(0, cluster.scheduler_address) as execute,
        pytest.raises(RunError, match=f"worker on {gethostname()} .* interrupted"),
    ):
        list(execute(blocky, [0]))


def test_a_worker_on_another_disk(cluster, blocky, tmp_path):
    elsewhere = replace(blocky, url=str(tmp_path / "elsewhere.zarr"))
    with (
        connect_cluster(0, cluster.scheduler_address) as execute,
        pytest.raises(RunError, match=f"worker on {gethostname()} .* no such folder.* share"),
    ):
        list(execute(elsewhere, [0]))
    assert not (tmp_path / "elsewhere.zarr").exists()


def test_a_worker_whose_disk_has_another_cube_there(cluster, blocky, data_url, tmp_path):
    """Its blocks would be marked in this sweep's store, and lie in the other one."""
    url = shutil.copytree(data_url, tmp_path / "elsewhere.zarr")
    with (
        connect_cluster(0, cluster.scheduler_address) as execute,
        pytest.raises(RunError, match=f"worker on {gethostname()} .* another cube"),
    ):
        list(execute(replace(blocky, url=str(url)), [0]))
    assert arrays(url) == arrays(data_url)


def test_a_scheduler_that_goes_away(blocky):
    brief = LocalCluster(n_workers=1, processes=False, dashboard_address=":0", protocol="tcp")
    with brief, connect_cluster(0, brief.scheduler_address) as execute:
        running = execute(blocky, all_of(blocky))
        next(running)
        brief.close()
        with pytest.raises(RunError, match=r"scheduler went away; .* kept"):
            list(running)


def test_no_scheduler_answers(data_spec, tmp_path, monkeypatch):
    monkeypatch.setattr("paradl.sweep.engine.dask_executor.CONNECT_SECONDS", 0.5)
    with pytest.raises(InputError, match=r"no Dask scheduler answers.*start one with"):
        paradl.run(data_spec, tmp_path / "cube.zarr", scheduler="tcp://127.0.0.1:9")
    assert not (tmp_path / "cube.zarr").exists()


@pytest.mark.parametrize("address", ["", " ", "nonsense", "http://host:8786", "tls://127.0.0.1:9"])
def test_an_address_that_is_none(address, data_spec, tmp_path, monkeypatch):
    """No client is made: as it goes, Dask waits 10 s for it and prints a traceback."""
    made = []
    monkeypatch.setattr("paradl.sweep.engine.dask_executor.Client", lambda *_, **__: made.append(1))
    with pytest.raises(InputError, match="scheduler"):
        paradl.run(data_spec, tmp_path / "cube.zarr", scheduler=address)
    assert not made
    assert get_scheduler() is None  # what Dask does next in this process is not sent there


def test_a_task_is_three_short_values(blocky):
    assert run_block(blocky.location, blocky.identity, 5) == 5
