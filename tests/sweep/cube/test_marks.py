"""Marks wait for each other, and not for long."""

import time

import pytest

from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.cube.store import MARK_SECONDS, Cube, collect_marks
from paradl.sweep.engine.run import read_grid


@pytest.fixture
def cube(small, tmp_path) -> Cube:
    grid = read_grid(small)
    return create_cube(str(tmp_path / "cube.zarr"), grid, plan_cube(grid))


def marked(cube: Cube) -> list[int]:
    return cube.read_done().nonzero()[0].tolist()


def test_the_last_of_several_waits_for_no_other(cube: Cube) -> None:
    """Blocks may take minutes: a kill meanwhile must not cost those that are done."""
    with collect_marks(cube) as mark:
        mark(0)
        mark(2)
        deadline = time.monotonic() + 50 * MARK_SECONDS
        while marked(cube) != [0, 2]:
            assert time.monotonic() < deadline
            time.sleep(MARK_SECONDS / 4)
        mark(3)
    assert marked(cube) == [0, 2, 3]


def test_all_are_written_whatever_ends_the_sweep(cube: Cube) -> None:
    def interrupted() -> None:
        with collect_marks(cube) as mark:
            mark(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert marked(cube) == [1]


def test_what_fails_meanwhile_is_told(cube: Cube, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no more room")

    def mark_on() -> None:
        with collect_marks(cube) as mark:
            while True:
                mark(0)
                time.sleep(MARK_SECONDS)

    monkeypatch.setattr(Cube, "mark", fail)
    with pytest.raises(OSError, match="no more room"):
        mark_on()
