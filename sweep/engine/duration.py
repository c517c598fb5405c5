"""Duration: how long a sweep takes, as a range, before anything runs.

The constants are CPU seconds of single runs on an AMD EPYC, 2026-11: the specs in `examples/`, and
eight axes with percentiles, slopes and choices (`python -m benchmarks user`).
"""

import math

import numpy as np

from paradl.grids.grid import LABELS, Grid
from paradl.grids.inputs.case import count_layouts
from paradl.grids.outputs import INTERVALS, list_sloped
from paradl.kernels.blocks.fill import SMALL_CELLS
from paradl.sweep.cube.plan import Plan
from paradl.sweep.engine.evaluation import has_few_cells
from paradl.sweep.engine.memory import count_choices

# Python, JAX and the catalogue, at least and at most [s].
START = (1.2, 3.0)
# One (model, data set, system, strategy) in numpy; placing one model's operators, at most [s].
PLACE, PLACING = 0.02, 4.0
# Loading a strategy's program; compiling it for small blocks, and for large ones [s].
LOAD, COMPILE_SMALL, COMPILE_LARGE = 0.05, 1.3, 2.3
# Factors on programs with percentiles and with choices; what each parameter with slopes adds.
PERCENTILES, CHOICES, SLOPE = 1.7, 2.5, 0.8
# Seconds per cell, and what percentiles and each slope add; at least and at most.
CELL, CELL_PERCENTILES, CELL_SLOPE = (9e-9, 30e-9), (0.15e-6, 1.5e-6), (50e-9, 250e-9)
# A layout that a transformer's cell is answered from: 1.7 us where rules forbid most, 4.5 us where
# none does (llama3_8b, llama2_70b, deepseek_v3). A list of candidates: 0.55 ms of 3,000 PE counts.
LAYOUT, LISTING = (1.5e-6, 5e-6), 0.6e-3
# Cells whose layouts are counted: each takes 0.5 to 3 ms.
COUNTED = 64


def estimate_duration(
    grid: Grid, plan: Plan, cores: int, cells: int | None = None
) -> tuple[float, float]:
    """Return the shortest and the longest time [s] that a sweep should take.

    cells: of the blocks to compute; None: of all blocks.

    Shortest: compiled programs are on disk, and so many cores share the work. Longest: all programs
    are compiled, and one core does the work.
    """
    problems, strategies = len(grid.fitting) * len(grid.systems), grid.strategies
    drawn = any(name in INTERVALS for name in grid.spec.outputs)
    slopes = len(list_sloped(grid.spec.outputs))
    # Cells with choices take several answers.
    counts = [count_choices(grid, strategy) if strategy.choices else 1 for strategy in strategies]
    fitting = len(grid.fitting) / (len(grid.models) * len(grid.datasets))
    answers = (plan.cells if cells is None else cells) * fitting * sum(counts) / len(counts)
    least, most = (
        answers * (cell + drawn * percentiles + slopes * slope)
        for cell, percentiles, slope in zip(CELL, CELL_PERCENTILES, CELL_SLOPE, strict=True)
    )
    if has_few_cells(grid, plan):
        loading, compiling = PLACE * problems * len(strategies), 0.0
    else:
        # How much longer a strategy's program takes to make than that of plain outputs.
        weight = (1 + SLOPE * slopes) * (PERCENTILES if drawn else 1)
        weight *= sum(CHOICES if strategy.choices else 1 for strategy in strategies)
        is_small = math.prod(plan.shard[len(LABELS) :]) < SMALL_CELLS
        loading, compiling = LOAD * weight, (COMPILE_SMALL if is_small else COMPILE_LARGE) * weight
    layouts = _count_mean_layouts(grid, plan) * (plan.cells if cells is None else cells)
    least += LAYOUT[0] * layouts
    most += LAYOUT[1] * layouts + LISTING * _count_lists(grid)
    placing = PLACING * problems * any(strategy.placed for strategy in strategies)
    return START[0] + (loading + least) / cores, START[1] + loading + compiling + most + placing


def _count_mean_layouts(grid: Grid, plan: Plan) -> float:
    """Return the layouts that a cell is answered from, the mean of all cells or of some of many."""
    if not any(grid.transformers):
        return 0.0
    if plan.cells <= COUNTED:
        cells = [*np.ndindex(plan.shape)]
    else:
        draws = np.random.default_rng(0).integers(plan.shape, size=(COUNTED, len(plan.shape)))
        cells = draws.tolist()
    return sum(_count_of_cell(grid, tuple(cell)) for cell in cells) / len(cells)


def _count_of_cell(grid: Grid, cell: tuple[int, ...]) -> float:
    """Count the layouts of a cell, with its share of those of one PE, which speedups divide by."""
    model, dataset, system, strategy, *places = cell
    index = model, dataset, system, strategy
    axes = {
        name: values[[place]]
        for (name, values), place in zip(grid.axes.items(), places, strict=True)
    }
    one = {**axes, "pe": np.ones(1)}
    own = grid.build(count_layouts, index, axes, None) or 0
    alone = grid.build(count_layouts, index, one, grid.find_alone(index)) or 0
    # All strategies and PE counts share it.
    return own + alone / (len(grid.strategies) * grid.axes["pe"].size)


def _count_lists(grid: Grid) -> int:
    """Count the lists of candidates, which batches of as many bits share."""
    bits = np.unique(np.frexp(grid.axes["batch"])[1]).size
    searched = sum(strategy.searched for strategy in grid.resolved)
    return len(grid.fitting) * len(grid.systems) * searched * grid.axes["pe"].size * bits
