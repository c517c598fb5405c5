from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import zarr
from cubes import MIXED, SMALL, arrays, stored

import paradl
from paradl.kernels import programs
from paradl.kernels.blocks.fill import fill_buffers
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import make_plan, plan_cube
from paradl.sweep.cube.store import Cube
from paradl.sweep.engine.block import compute, run_blocks
from paradl.sweep.engine.evaluation import evaluate
from paradl.sweep.engine.run import read_grid


def test_a_block_is_its_part_of_the_cube(small):
    grid = read_grid(small)
    plan = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=4)
    whole = plan_cube(grid)
    everything = compute(grid, whole, whole.find_region(1)).arrays
    for block in range(plan.blocks):
        region = plan.find_region(block)
        if region[:2] == (slice(0, 1), slice(1, 2)):
            part = compute(grid, plan, region).arrays["comm_time"]
            np.testing.assert_array_equal(
                part, everything["comm_time"][0:1, 0:1][:, :, *region[2:]]
            )


def test_serial_time_is_written_by_one_block_a_region(small):
    grid = read_grid(small)
    plan = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=4)
    fits = [
        n for n in range(plan.blocks) if grid.table(*(s.start for s in plan.find_region(n)[:2]))
    ]
    writers = [n for n in fits if "serial_time" in compute(grid, plan, plan.find_region(n)).arrays]
    places = [(plan.find_region(n)[:3], plan.find_region(n)[5]) for n in writers]
    assert len({str(place) for place in places}) == len(writers)
    assert all(plan.find_region(n)[3].start == plan.find_region(n)[4].start == 0 for n in writers)


def test_a_pair_that_cannot_exist_has_no_answers(small):
    grid = read_grid(small)
    assert evaluate(grid, (0, 0, 0, 0)) is None


def test_what_is_stored_is_float32(small):
    grid = read_grid(small)
    result = evaluate(grid, (0, 1, 0, 1))
    assert result is not None
    assert {name: str(value_.dtype) for name, value_ in result.items()} == {
        "comp_time": "float32",
        "comm_time": "float32",
        "memory": "float32",
        "limit": "uint16",
    }
    assert result["limit"].shape == (4, 2)


def test_a_new_store_has_no_answers_yet(small, tmp_path):
    grid = read_grid(small)
    cube = create_cube(str(tmp_path / "cube.zarr"), grid, plan_cube(grid))
    assert not cube.read_done().any()
    assert np.isnan(np.asarray(cube.arrays["comp_time"][:])).all()


def test_blocks_are_written_while_the_next_is_computed(small, tmp_path):
    """And the memory of one does not end up in another."""
    grid = read_grid(small)
    plan = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=4)
    cube = create_cube(str(tmp_path / "cube.zarr"), grid, plan)
    assert sorted(run_blocks(cube, range(plan.blocks))) == list(range(plan.blocks))
    whole = compute(grid, plan_cube(grid), plan_cube(grid).find_region(1)).arrays
    for name, values in whole.items():
        # Of blocks of another shape: other roundings.
        result = stored(cube.group, name)[0:1, 1:2]
        np.testing.assert_allclose(result, values, rtol=1e-6, err_msg=name)


def test_what_fails_is_told_after_what_was_done(small, tmp_path, monkeypatch):
    grid = read_grid(small)
    plan = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=4)
    cube = create_cube(str(tmp_path / "cube.zarr"), grid, plan)
    write, seen = Cube.write, list[int]()

    def failing(self, block, arrays):
        if block == 20:
            raise OSError("no more room")
        write(self, block, arrays)

    monkeypatch.setattr(Cube, "write", failing)
    with pytest.raises(OSError, match="no more room"):
        seen.extend(run_blocks(cube, range(plan.blocks)))
    assert 20 not in seen
    assert 0 < len(seen) < plan.blocks


TEN_ON_TWO: dict[str, Any] = {
    "oracle": "paper",
    "axes": {name: value for name, value in SMALL["axes"].items() if name != "strategy"}
    | {"model": "alexnet", "system": ["abci", "dgx-h100"]},
}


def test_strategies_and_machines_share_the_program_that_fills_blocks(tmp_path, monkeypatch):
    """All ten on two machines: whatever a program costs to compile, it is paid once."""
    monkeypatch.setattr("paradl.sweep.engine.evaluation.FEW_CELLS", 0)
    fill_buffers.clear()
    paradl.run(TEN_ON_TWO, tmp_path / "cube.zarr")
    assert fill_buffers.programs == 1


LAYOUTS: dict[str, Any] = {
    "axes": {
        "model": "llama2_7b",
        "dataset": "pile",
        "system": "dgx-h100",
        "strategy": ["data", "data+tensor:tensor=8"],
        "pe": [8, 16],
        "batch": 8,
    }
}


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Iterator[Callable[[], int]]:
    """Counts the programs kept on disk, where none are at first; there are none in memory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = programs.find_folder()
    fill_buffers.clear()

    def count() -> int:
        folder = programs.find_folder()
        assert folder is not None
        assert folder.is_relative_to(tmp_path)
        return len(list(folder.iterdir()))

    yield count
    programs.keep_in(before)


def test_layouts_are_filled_by_no_program_however_many_cells(kept, tmp_path, monkeypatch):
    paradl.run(LAYOUTS, tmp_path / "few.zarr")
    monkeypatch.setattr("paradl.sweep.engine.evaluation.FEW_CELLS", 0)
    paradl.run(LAYOUTS, tmp_path / "many.zarr")
    assert fill_buffers.programs == 0
    assert arrays(tmp_path / "many.zarr") == arrays(tmp_path / "few.zarr")


def test_a_flipped_bit_in_a_kept_program_changes_no_cube(
    kept, data_spec, data_url, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("paradl.sweep.engine.evaluation.FEW_CELLS", 0)
    paradl.run(data_spec, tmp_path / "first.zarr")
    for file in (tmp_path / "cache").rglob("programs/*"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 16
        file.write_bytes(content)
    fill_buffers.clear()  # as a new process
    paradl.run(data_spec, tmp_path / "second.zarr")
    assert arrays(tmp_path / "second.zarr") == arrays(data_url)
    assert "damaged" in capsys.readouterr().err


def test_few_cells_need_no_program_and_are_the_same(kept, tmp_path, monkeypatch):
    """As those of a program, which is kept on disk. Other strategies: tests/test_programs.py."""
    one = {"model": "alexnet", "strategy": "data+spatial:group=best"}
    spec = MIXED | {"axes": MIXED["axes"] | one}
    paradl.run(spec, tmp_path / "few.zarr")
    assert fill_buffers.programs == 0
    monkeypatch.setattr("paradl.sweep.engine.evaluation.FEW_CELLS", 0)
    paradl.run(spec, tmp_path / "many.zarr")
    assert kept() >= fill_buffers.programs == 1
    few, many = (dict(read_arrays(tmp_path / name)) for name in ("few.zarr", "many.zarr"))
    assert few.keys() == many.keys()
    for name, values in few.items():
        np.testing.assert_array_equal(values, many[name], err_msg=name)


def read_arrays(path):
    """All arrays of a store, its summary's too, by their paths."""
    for name, member in zarr.open_group(path, mode="r").members(max_depth=None):
        if isinstance(member, zarr.Array):
            yield name, np.asarray(member[...])
