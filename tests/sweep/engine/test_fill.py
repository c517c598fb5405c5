"""Filling: tiles change nothing, and memory is reused."""

from collections.abc import Iterator

import jax
import numpy as np
import pytest

import paradl.kernels.blocks.fill
from paradl.grids.grid import Grid
from paradl.kernels import programs
from paradl.kernels.arrays import on_gpu
from paradl.kernels.blocks.fill import fill_buffers
from paradl.kernels.blocks.summary import Line, tabulate_line
from paradl.kernels.blocks.tiles import Tiles, count_tile_cells, tiles
from paradl.kernels.names.statistics import EFFICIENCY
from paradl.sweep.engine.block import Spare
from paradl.sweep.engine.evaluation import evaluate, fill
from paradl.sweep.engine.run import read_grid

TABULATE = jax.jit(tabulate_line)
NAMES = ("comp_time", "comm_time", "memory", "limit", "replicas")


@pytest.fixture(scope="module")
def grid() -> Grid:
    """PE counts of which tiles of all sizes overlap; every variable varies along some axis."""
    return read_grid(
        {
            "oracle": "paper",
            "axes": {
                "model": "resnet50",
                "dataset": "imagenet",
                "system": "abci",
                "strategy": ["data", "spatial", "pipeline", "data+filter:group=best"],
                "pe": {"range": [1, 37]},
                "batch": [4, 64, 65],
                "inter_bandwidth": [1e9, 1e10],
                "memory_capacity": [16e9, 64e9],
            },
            "parameters": {"gamma": 0.25},
            "outputs": list(NAMES),
        }
    )


def filled(grid: Grid, strategy: int):
    sizes = grid.shape[4:]
    serial = np.linspace(1, 2, int(np.prod(sizes[1:])), dtype=np.float32).reshape(sizes[1:])
    buffers = Spare().take(2, sizes, NAMES)
    buffers, table = fill(buffers, 1, grid, (0, 0, 0, strategy), grid.axes, serial * 1e4)
    return {name: np.asarray(values)[1] for name, values in buffers.items()}, table, serial * 1e4


# Some PE counts of a column, two batches of three: the last tiles overlap the ones before, along
# both. Of one tile: tests/sweep/engine/test_block.py.
FEW_CELLS = 24


@pytest.fixture(scope="module")
def asked() -> Iterator[list[int]]:
    """Tiles of a few cells; a list of how many each program asked for when it was made."""
    seen: list[int] = []

    def cut(shape: tuple[int, ...], cells: int) -> Tiles:
        seen.append(cells)
        return tiles(shape, min(cells, FEW_CELLS))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paradl.kernels.blocks.fill, "tiles", cut)
        fill_buffers.clear()
        # On disk are programs of other tiles.
        folder = programs.find_folder()
        programs.keep_in(None)
        yield seen
        programs.keep_in(folder)
    fill_buffers.clear()


@pytest.mark.parametrize("strategy", range(4))
def test_tiles_hold_the_same_answers(grid, asked, strategy) -> None:
    arrays, table, serial = filled(grid, strategy)
    expected = evaluate(grid, (0, 0, 0, strategy))
    assert expected is not None
    for name, values in arrays.items():
        np.testing.assert_allclose(
            values, np.broadcast_to(expected[name], values.shape), rtol=1e-6, err_msg=name
        )
    p = grid.axes["pe"].reshape(-1, 1, 1, 1)
    known = Line(
        p=p, enough=serial[None] / EFFICIENCY, **{name: arrays[name] for name in NAMES[:4]}
    )
    with jax.enable_x64(True):
        of_line = np.asarray(TABULATE(known))
    np.testing.assert_allclose(np.asarray(table), of_line, rtol=1e-6)


def test_a_tile_of_many_group_sizes_has_fewer_cells(grid, asked) -> None:
    """Each of its cells is answered for all of them at once: 36 has eight above 1."""
    for strategy in (0, 3):
        filled(grid, strategy)
    assert asked == [count_tile_cells(), count_tile_cells() // 8]


@pytest.mark.skipif(on_gpu(), reason="what numpy sees of a GPU's arrays is a copy")
def test_a_block_is_filled_where_an_earlier_one_was(grid) -> None:
    spare = Spare()
    serial = np.ones(grid.shape[5:], np.float32)
    buffers = spare.take(2, grid.shape[4:], NAMES)
    at_first = {name: buffer.unsafe_buffer_pointer() for name, buffer in buffers.items()}
    for strategy in range(3):
        buffers, _ = fill(buffers, 0, grid, (0, 0, 0, strategy), grid.axes, serial)
        views = {name: np.asarray(buffer) for name, buffer in buffers.items()}
        assert {name: view.ctypes.data for name, view in views.items()} == at_first
        views.clear()
        spare.give(buffers)
        buffers = spare.take(2, grid.shape[4:], NAMES)


def test_what_is_still_read_is_not_overwritten(grid) -> None:
    serial = np.ones(grid.shape[5:], np.float32)
    buffers = Spare().take(2, grid.shape[4:], NAMES)
    buffers, _ = fill(buffers, 0, grid, (0, 0, 0, 0), grid.axes, serial)
    view = np.asarray(buffers["comm_time"])
    before = view.copy()
    fill(buffers, 0, grid, (0, 0, 0, 1), grid.axes, serial)
    np.testing.assert_array_equal(view, before)


def test_blocks_of_another_size_get_memory_of_their_own() -> None:
    spare = Spare()
    one = spare.take(1, (2, 3), ("limit",))
    spare.give(one)
    assert spare.take(1, (3, 3), ("limit",))["limit"].shape == (1, 3, 3)
    spare.give(one)  # late, and no longer of use
    assert spare.take(1, (3, 3), ("limit",))["limit"].shape == (1, 3, 3)
