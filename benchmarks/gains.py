"""Measure what each optimisation of the kernel gains, leaving out one at a time.

Comments at the optimisations quote these figures; one that no longer gains anything should go.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from unittest.mock import patch

import jax
import numpy as np
from jax import Array

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row
from benchmarks.timing import Action, interleaved
from grids.grid import Grid
from kernels.arrays import Cells
from kernels.blocks.fill import Buffers, fill_buffers
from kernels.compiled import compiled
from kernels.configuration.answers import AnyCase
from sweep.engine.buffer_pool import Spare

# Constants of the kernels, with values that switch the optimisation off.
WITHOUT: Mapping[str, Mapping[str, object]] = {
    "invariants ahead of the tiles": {"kernels.blocks.fill.FEW": 2**60},
    "tiles": {"kernels.blocks.fill.TILE_CELLS": 2**60},
    "rows by steps": {"kernels.blocks.summary.STEP_CELLS": 2**60},
    "eight rows per step": {"kernels.blocks.summary.STEPS": 1},
}


def measure(effort: Effort) -> Report:
    """Measure each strategy's largest block with its summary, on one core."""
    rows = []
    for kind, grid in (
        ("three axes", spaces.wide(effort.blocks[-1])),
        ("two axes", spaces.dense(effort.blocks[-1])),
    ):
        for position, name in enumerate(spaces.STRATEGIES):
            rows += _rows(f"{name}, {kind}", grid, position, effort)
    return Report("gains", "a block's rate over that without the optimisation", tuple(rows))


def _rows(what: str, grid: Grid, strategy: int, effort: Effort) -> list[Row]:
    blocks: dict[str, Action] = {
        "as it is": Block(grid, strategy),
        "reused buffers": Block(grid, strategy, reuse=False),
    }
    blocks |= {name: Block(grid, strategy, names) for name, names in WITHOUT.items()}
    timings = interleaved(blocks, effort.short_rounds)
    return [
        Row(
            f"{what}: {name}",
            np.prod(grid.shape[4:]) / timings["as it is"].median,
            "cells/s",
            timings["as it is"].rate_against(timing),
            "without",
        )
        for name, timing in timings.items()
        if name != "as it is"
    ]


class Block:
    """One strategy's block with a program of its own, to be evaluated repeatedly."""

    def __init__(
        self,
        grid: Grid,
        strategy: int,
        without: Mapping[str, object] | None = None,
        reuse: bool = True,
    ) -> None:
        case = grid.case((0, 0, 0, strategy))
        assert case is not None  # the spaces' data sets fit
        self._grid, self._case, self._without = grid, case, without or {}
        self._program, self._spare, self._reuse = _compile(), Spare(), reuse

    def __call__(self) -> None:
        shape = self._grid.shape[4:]
        enough = np.ones((1, *shape[1:]), np.float32)
        buffers = self._spare.take(1, shape, self._grid.spec.outputs)
        with ExitStack() as stack:
            for name, value in self._without.items():
                stack.enter_context(patch(name, value))
            buffers, _ = self._program(buffers, self._case, enough, shape)
        jax.block_until_ready(buffers)
        if self._reuse:
            self._spare.give(buffers)


Program = Callable[[Buffers, AnyCase, Cells, tuple[int, ...]], tuple[Buffers, Array]]


def _compile() -> Program:
    """Make a program that fills a block, compiled with the constants as they are by then."""

    @compiled("shape", donated=("buffers",))
    def fill(
        buffers: Buffers, case: AnyCase, enough: Cells, shape: tuple[int, ...]
    ) -> tuple[Buffers, Array]:
        # Unwrapped: a compiled function inside another is traced once, with the old constants.
        trace: Callable[..., tuple[Buffers, Array]] = inspect.unwrap(fill_buffers)
        return trace(buffers, 0, case, enough, shape=shape)

    return fill
