"""A store that is moved, deleted or replaced during a sweep: the sweep fails, and loses nothing."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cubes import arrays

import paradl
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.engine.block import run_block
from paradl.sweep.engine.run import read_grid
from paradl.sweep.errors import RunError

# Nine blocks, answered in numpy.
SPEC: dict[str, Any] = {
    "oracle": "paper",
    "axes": {
        "model": ["alexnet", "vgg16", "resnet50"],
        "dataset": ["imagenet", "imagenet-226", "imagenet-299"],
        "system": "abci",
        "strategy": "data",
        "pe": {"pow2": [1, 64]},
        "batch": 32,
    },
}
SHORT = SPEC | {"axes": SPEC["axes"] | {"pe": [1, 2]}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    url = tmp_path_factory.mktemp("whole") / "cube.zarr"
    paradl.run(SPEC, url)
    return url


@pytest.fixture
def url(tmp_path: Path) -> Path:
    return tmp_path / "cube.zarr"


@pytest.fixture(params=[False, True])
def extend(request: pytest.FixtureRequest, url: Path) -> bool:
    """Whether a sweep extends a store that is there, or makes one."""
    if request.param:
        paradl.run(SHORT, url)
    return bool(request.param)


def during(action: Callable[[], object]) -> Callable[..., Any]:
    """Progress that acts once, as the first block is done."""

    @contextmanager
    def progress(*_: object) -> Iterator[Callable[[int], None]]:
        waiting = [action]

        def step(block: int) -> None:
            if waiting:
                waiting.pop()()

        yield step

    return progress


def test_a_moved_store(extend: bool, url: Path, whole: Path) -> None:
    moved = url.with_name("moved.zarr")
    with pytest.raises(RunError, match=f"{url}: the store was moved"):
        paradl.run(SPEC, url, extend=extend, progress=during(lambda: url.rename(moved)))
    shutil.rmtree(url, ignore_errors=True)  # blocks that were being written
    moved.rename(url)
    paradl.run(SPEC, url)
    assert arrays(url) == arrays(whole)


def test_a_store_moved_beside_a_worker(url: Path, whole: Path, capfd: Any) -> None:
    moved = url.with_name("moved.zarr")
    with pytest.raises(RunError, match=f"{url}: the store was moved"):
        paradl.run(SPEC, url, workers=1, progress=during(lambda: url.rename(moved)))
    shutil.rmtree(url, ignore_errors=True)  # blocks that were being written
    assert capfd.readouterr() == ("", "")
    moved.rename(url)
    paradl.run(SPEC, url)
    assert arrays(url) == arrays(whole)


def test_a_deleted_store(extend: bool, url: Path, whole: Path) -> None:
    def delete() -> None:
        # A deletion in place may fail, as blocks are written meanwhile: see below.
        shutil.rmtree(url.rename(url.with_name("trash")))

    with pytest.raises(RunError, match=f"{url}: the store was moved or deleted"):
        paradl.run(SPEC, url, extend=extend, progress=during(delete))
    shutil.rmtree(url, ignore_errors=True)  # blocks that were being written
    paradl.run(SPEC, url)
    assert arrays(url) == arrays(whole)


def test_a_store_that_another_replaces(url: Path, whole: Path) -> None:
    """Blocks of the first are not written into the other, by a worker that has the first open."""
    grid = read_grid(SPEC)
    cube = create_cube(str(url), grid, plan_cube(grid))
    run_block(cube.location, cube.identity, 0)
    url.rename(url.with_name("moved.zarr"))
    shutil.copytree(whole, url)
    before = {path: path.stat().st_mtime_ns for path in url.rglob("*")}
    with pytest.raises(RunError, match=f"{url}: the store was moved or deleted"):
        run_block(cube.location, cube.identity, 1)
    with pytest.raises(RunError, match=f"{url}: the store was moved or deleted"):
        cube.mark([0])
    assert {path: path.stat().st_mtime_ns for path in url.rglob("*")} == before
