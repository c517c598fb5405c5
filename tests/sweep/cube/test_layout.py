"""Every block has a part of every array to itself, and together they are all of it."""

from collections import Counter
from itertools import product

import pytest

from paradl.sweep.cube.plan import (
    DONE,
    NOT_SERIAL,
    SERIAL,
    SUMMARY,
    find_part,
    find_shape,
    lay_out,
    make_plan,
)

DIMS = ("model", "dataset", "system", "strategy", "pe", "batch")
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
