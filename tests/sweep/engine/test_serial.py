import numpy as np
import pytest

from paradl.grids.entries.strategies import Strategy
from paradl.sweep.cube.plan import make_plan
from paradl.sweep.engine import evaluation
from paradl.sweep.engine.evaluation import SerialTimes, evaluate
from paradl.sweep.engine.run import read_grid


def cut(small):
    """The grid, and a plan whose blocks hold one strategy and a few cells each."""
    grid = read_grid(small)
    return grid, make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=2)


def list_times(times, grid, plan):
    for block in range(plan.blocks):
        region = plan.find_region(block)
        if grid.table(region[0].start, region[1].start) is None:
            continue
        parts = dict(zip(plan.dims, region, strict=True))
        axes = {name: values[parts[name]] for name, values in grid.axes.items()}
        yield region, axes, times.find(grid, plan, region, axes)


@pytest.mark.parametrize("kept", [evaluation.KEPT, 0])
def test_every_block_gets_the_times_of_its_cells(kept, small, monkeypatch):
    monkeypatch.setattr(evaluation, "KEPT", kept)
    grid, plan = cut(small)
    for region, axes, times in list_times(SerialTimes(), grid, plan):
        for system, values in enumerate(times, region[2].start):
            index = (region[0].start, region[1].start, system, 0)
            one = axes | {"pe": np.ones(1)}
            alone = evaluate(grid, index, one, ("comp_time",), Strategy("serial"))
            assert alone is not None
            expected = np.broadcast_to(alone["comp_time"][0], values.shape)
            np.testing.assert_array_equal(values, expected)


def test_blocks_that_differ_in_strategy_and_pes_share_them(small):
    grid, plan = cut(small)
    result = [times for *_, times in list_times(SerialTimes(), grid, plan)]
    assert len({id(times) for times in result}) < len(result)


def test_another_grid_shares_nothing(small):
    grid, plan = cut(small)
    times = SerialTimes()
    ours = [result for *_, result in list_times(times, grid, plan)]
    others = [result for *_, result in list_times(times, read_grid(small), plan)]
    assert not {id(result) for result in ours} & {id(result) for result in others}
