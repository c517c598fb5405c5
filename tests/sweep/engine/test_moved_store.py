"""A store that is moved, deleted or replaced during a sweep: the sweep fails, and loses nothing."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cubes import arrays

import paradl
from paradl.grids.reading.errors import InputError
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
    assert not url.exists()
    moved.rename(url)
    paradl.run(SPEC, url)
    assert arrays(url) == arrays(whole)


def test_a_store_moved_beside_a_worker(url: Path, whole: Path, capfd: Any) -> None:
    moved = url.with_name("moved.zarr")
    with pytest.raises(RunError, match=f"{url}: the store was moved"):
        paradl.run(SPEC, url, workers=1, progress=during(lambda: url.rename(moved)))
    assert not url.exists()
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
    assert not url.exists()
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


def test_a_store_that_loses_its_root_as_it_is_deleted(url: Path, whole: Path) -> None:
    """A deletion fails where a block is written into a folder that it has just emptied."""
    with pytest.raises(RunError, match="deleted"):
        paradl.run(SPEC, url, progress=during(lambda: os.unlink(url / "zarr.json")))
    with pytest.raises(InputError, match=r"without its zarr.json"):
        paradl.run(SPEC, url)
    paradl.run(SPEC, url, overwrite=True)
    assert arrays(url) == arrays(whole)
    assert {path.name for path in url.iterdir()} == {path.name for path in whole.iterdir()}


def test_a_cube_with_a_damaged_root_can_be_overwritten(url: Path, whole: Path) -> None:
    shutil.copytree(whole, url)
    (url / "zarr.json").write_text("{")
    with pytest.raises(InputError, match="overwrite"):
        paradl.run(SPEC, url)
    paradl.run(SPEC, url, overwrite=True)
    assert arrays(url) == arrays(whole)


@pytest.mark.parametrize("other", ["notes.txt", "comp_time/notes.txt", "comp_time/c.link"])
def test_what_else_lies_beside_the_rest_of_a_cube_is_kept(
    other: str, url: Path, whole: Path
) -> None:
    shutil.copytree(whole, url)
    (url / "zarr.json").unlink()
    (url / other).symlink_to(whole) if other.endswith("link") else (url / other).touch()
    before = sorted(url.rglob("*"))
    with pytest.raises(InputError, match="left untouched"):
        paradl.run(SPEC, url, overwrite=True)
    assert sorted(url.rglob("*")) == before
