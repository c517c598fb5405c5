import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.sweep.cube.plan import (
    DONE,
    LAYER_CELLS,
    NOT_SERIAL,
    SERIAL,
    SHARD_CELLS,
    SUMMARY,
    find_part,
    find_shape,
    lay_out,
    make_plan,
    plan_cube,
)
from paradl.sweep.engine.run import read_grid

DIMS = ("model", "dataset", "system", "strategy", "pe", "batch")


@pytest.mark.parametrize(
    ("shape", "cells", "shard"),
    [
        ((2, 3, 1, 4, 5, 6), 1000, (1, 1, 1, 4, 5, 6)),  # all of a pair fits
        ((2, 3, 1, 4, 5, 6), 60, (1, 1, 1, 2, 5, 6)),  # two strategies do
        ((1, 1, 1, 1, 10, 6), 30, (1, 1, 1, 1, 10, 3)),  # half a line's
        ((1, 1, 1, 1, 60, 10), 18, (1, 1, 1, 1, 18, 1)),  # of the PEs
        ((1, 1, 1, 1, 1, 1), 1, (1,) * 6),
    ],
)
def test_a_shard_is_the_largest_box_with_whole_lines_of_pe_counts(shape, cells, shard):
    assert make_plan(DIMS, shape, 13, alone=2, shard_cells=cells).shard == shard


def test_sizes_are_products():
    plan = make_plan(DIMS, (2, 3, 1, 4, 5, 6), 13, alone=2, shard_cells=60)
    assert plan.cells == 720
    assert plan.nbytes == 720 * 13
    assert plan.grid == (2, 3, 1, 2, 1, 1)
    assert plan.blocks == 12


def test_a_cube_of_any_size_has_blocks_of_the_same_size():
    plan = make_plan(DIMS, (6, 7, 3, 10, 10_000, 10_000), 13, alone=2)
    assert math.prod(plan.shard) <= 1.1 * SHARD_CELLS
    assert plan.blocks == 6 * 7 * 3 * 10 * math.prod(
        math.ceil(10_000 / shard) for shard in plan.shard[4:]
    )


@pytest.mark.parametrize(
    ("pes", "bandwidths", "most"),
    [
        (1024, 2**10, 2**25),
        (1024, 2**17, 2**28),  # a trillion cells
        (2, 2**20, SHARD_CELLS),  # the summary has as many lines as two PE counts let it
        (64, 2**20, 2**24),
    ],
)
def test_blocks_of_a_search_grow_with_it_as_far_as_their_summaries_fit(pes, bandwidths, most):
    axes = {
        "model": "resnet50",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": ["data", "filter"],
        "pe": {"range": [1, pes]},
        "batch": {"range": [1, 2**12]},
        "inter_bandwidth": {"geomspace": [1e9, 1e12, bandwidths]},
    }
    grid = read_grid({"axes": axes})
    cells = math.prod(plan_cube(grid.drop_outputs()).shard)
    assert most / 2 < cells <= most
    assert math.prod(plan_cube(grid).shard) <= SHARD_CELLS


def test_axes_that_reduce_layers_anew_are_cut_to_fit_memory():
    dims = (*DIMS, "peak_flops")
    shape = (1, 1, 1, 10, 1024, 7, 50)
    layered = ("pe", "peak_flops")
    plan = make_plan(dims, shape, 13, alone=2, layers=514, layered=layered)
    assert plan.shard[4:6] == (1024, 7)  # PE counts stay together; batches reduce no layers
    assert plan.shard[4] * plan.shard[6] * 514 <= 1.1 * LAYER_CELLS


shapes = st.lists(st.integers(1, 7), min_size=3, max_size=5).map(tuple)


@given(shapes, st.integers(1, 400), st.integers(0, 2))
def test_blocks_tile_the_cube_exactly_once(shape, shard_cells, alone):
    plan = make_plan(DIMS[: len(shape)], shape, 4, alone, shard_cells)
    assert plan.shard[:alone] == (1,) * alone
    assert math.prod(plan.shard) <= shard_cells
    seen = np.zeros(shape, int)
    for block in range(plan.blocks):
        seen[plan.find_region(block)] += 1
    assert (seen == 1).all()


@given(shapes, st.integers(1, 400))
def test_blocks_start_at_whole_shards(shape, shard_cells):
    plan = make_plan(DIMS[: len(shape)], shape, 4, 0, shard_cells)
    starts = {tuple(part.start for part in plan.find_region(block)) for block in range(plan.blocks)}
    assert all(
        start % shard == 0
        for first in starts
        for start, shard in zip(first, plan.shard, strict=True)
    )


# Blocks along PE counts and batches, the last ones of each cut short.
PLAN = make_plan(DIMS, (2, 1, 1, 3, 5, 4), 13, alone=2, shard_cells=6)


@pytest.mark.parametrize("name", ["comm_time", SUMMARY, DONE, SERIAL])
def test_parts_cover_an_array(name) -> None:
    seen = Counter[tuple[int, ...]]()
    for block in range(PLAN.blocks):
        place = find_part(name, PLAN, PLAN.find_region(block))
        seen.update(product(*(range(value.start, value.stop) for value in place)))
    assert set(seen) == set(product(*map(range, find_shape(name, PLAN))))
    several = {PLAN.blocks // (2 * PLAN.grid[-1])} if name == SERIAL else {1}
    assert set(seen.values()) == several


def test_what_serial_time_does_not_vary_along() -> None:
    assert set(DIMS) - set(lay_out(SERIAL, PLAN)) == set(NOT_SERIAL)


def test_a_summary_has_statistics_in_the_place_of_pe_counts() -> None:
    dims = list(lay_out(SUMMARY, PLAN))
    assert dims == ["model", "dataset", "system", "strategy", "statistic", "pe_part", "batch"]
    assert PLAN.grid[4] == find_shape(SUMMARY, PLAN)[5]
