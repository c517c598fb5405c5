"""The time left, on recorded sweeps with nothing compiled before (two busy cores, 2026-11)."""

from collections.abc import Sequence

import numpy as np
import pytest

from paradl.sweep.cube.plan import Plan
from paradl.sweep.engine.progress import Remaining

DIMS = ("model", "dataset", "system", "strategy", "pe", "batch")
# Blocks of one cell, and seconds at which each ended: pairs of a model and a data set, two of
# three of which do not fit, with all strategies in a block; blocks of one strategy; of two.
PAIRS = (3, 3, 1, 1, 1, 1)
ORDER = (2, 0, 1, 5, 6, 7, 3, 4, 8)
SWEEPS = {
    "eight axes": (PAIRS, ORDER, (3.6, 31.86, 32.68, 32.68, 32.68, 32.68, 33.05, 33.42, 33.87)),
    "percentiles, best and a slope": (
        PAIRS,
        ORDER,
        (4.11, 147.03, 149.48, 149.48, 149.48, 149.48, 151.44, 152.66, 153.36),
    ),
    "stored": (
        (2, 1, 2, 4, 1, 2),
        (
            *(0, 1, 3, 2, 4, 5, 8, 7, 6, 10, 9, 12, 11, 13, 14, 15),
            *(16, 18, 17, 19, 20, 21, 22, 23, 24, 26, 27, 25, 28, 29, 30, 31),
        ),
        (
            *(11.227, 11.363, 22.154, 22.154, 30.988, 31.188, 31.34, 31.34, 31.34, 31.452),
            *(31.709, 31.756, 31.763, 31.957, 31.957, 31.96, 32.36, 32.361, 32.384, 32.644),
            *(32.661, 32.661, 32.818, 32.876, 32.988, 32.988, 33.05, 33.076, 33.128, 33.156),
            *(33.172, 33.197),
        ),
    ),
    "percentiles": (
        (2, 1, 2, 2, 1, 1),
        (0, 2, 1, 4, 3, 5, 6, 7),
        (23.03, 38.0, 38.27, 42.52, 43.58, 49.9, 50.95, 54.83),
    ),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_what_is_stated_is_near_what_was_left(name) -> None:
    """Within a factor of five; from half of the blocks on, of two and a half."""
    shape, order, ends = SWEEPS[name]
    now, stated = [0.0], list[float]()
    plan = Plan(DIMS, shape, (1,) * len(shape), 4)
    remaining = Remaining(plan, np.arange(0), lambda: now[0])
    for number, (block, now[0]) in enumerate(zip(order, ends, strict=True), 1):
        remaining.advance(block)
        left, truth = remaining.estimate(), ends[-1] - now[0]
        if left is not None and number < 0.8 * len(order):
            factor = 2.5 if number >= len(order) / 2 else 5
            assert truth / factor <= left <= truth * factor, (number, left, truth)
            stated.append(number / len(order))
    assert min(stated) <= 0.5
    assert remaining.estimate() == 0


def test_nothing_is_stated_while_programs_compile() -> None:
    plan = Plan(DIMS, (1, 1, 1, 4, 1, 2), (1,) * 6, 4)
    now = [0.0]
    remaining = Remaining(plan, np.arange(0), lambda: now[0])
    for now[0], block in ((9.0, 0), (18.0, 2), (27.0, 4)):
        remaining.advance(block)
        assert remaining.estimate() is None


def time_blocks(done: Sequence[int], *ends: tuple[float, int]) -> tuple[Remaining, list[float]]:
    """Return what is left of ten blocks after those that ended, and the clock."""
    now = [0.0]
    remaining = Remaining(
        Plan(DIMS, (1, 1, 1, 1, 1, 10), (1,) * 6, 4), np.array(done, int), lambda: now[0]
    )
    for now[0], block in ends:
        remaining.advance(block)
    return remaining, now


def test_blocks_of_an_earlier_run_are_not_left() -> None:
    remaining, _ = time_blocks(range(6), (5.0, 6), (6.0, 7), (7.0, 8))
    assert remaining.finished == 9
    assert remaining.estimate() == pytest.approx(1)


def test_blocks_of_an_earlier_run_may_be_any() -> None:
    """As where an axis has grown, and blocks in between are new: here the large ones are done."""
    plan, now = Plan(DIMS, (3, 1, 1, 1, 5, 11), (1, 1, 1, 1, 1, 10), 4), [0.0]
    remaining = Remaining(plan, np.arange(0, plan.blocks, 2), lambda: now[0])
    for now[0], block in ((float(block), block) for block in range(1, plan.blocks - 2, 2)):
        remaining.advance(block)
    assert remaining.finished == plan.blocks - 1
    assert remaining.estimate() == pytest.approx(2)


def test_nothing_is_stated_once_a_block_takes_longer_than_all_that_were_left() -> None:
    remaining, now = time_blocks((), (5.0, 0), (6.0, 1), (7.0, 2))
    now[0] = 13.5
    assert remaining.estimate() == pytest.approx(0.5)
    now[0] = 14.5
    assert remaining.estimate() is None
