"""Resources of this machine, and what a sweep takes of them: estimates before it runs.

Memory: resident bytes, as the system counts them (VmHWM). `python -m benchmarks memory` sets them
against what sweeps take; every constant was measured with it, on two cores and on sixteen that it
pretends. Duration: CPU seconds of single runs on an AMD EPYC, 2026-11: the specs in `examples/`,
and eight axes with percentiles, slopes and choices (`python -m benchmarks user`).

A process may be deep in a tree of control groups, each of which may limit its memory. Linux tells
the place in /proc/self/cgroup: `0::/path` in version 2, `n:memory:/path` in version 1.
"""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from platformdirs import user_cache_path

from paradl.grids.entries.parameters import DEGREES, LAYERED
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import LABELS, Grid
from paradl.grids.inputs.case import count_layouts
from paradl.grids.inputs.groups import SIZES
from paradl.grids.inputs.runs import list_segments
from paradl.grids.outputs import INTERVALS, list_sloped
from paradl.grids.reading.errors import InputError, format_count
from paradl.kernels.blocks.fill import SMALL_CELLS
from paradl.kernels.blocks.tiles import TILE_CELLS
from paradl.kernels.divisors import list_divisors
from paradl.kernels.names.statistics import STATISTICS
from paradl.sweep.cube.plan import Plan
from paradl.sweep.engine.evaluation import has_few_cells

FLOAT = 8  # bytes
# Axes that say into how many parts layers are divided.
SIZED = ("pe", "group", *DEGREES)
# Python, JAX and Zarr, with the programs that every sweep compiles (one tiny block: 326 MB; a block
# of 262,144 cells: 419 MB; two models and eight strategies: 445 MB).
PROCESS_BYTES = 480_000_000
# What a pair of model and dataset adds a strategy, compiled (170 of them: 586 MB in all).
PROGRAM_BYTES = 1_500_000
# The same of the machine oracle, whose programs are longer (one tiny block: 540 MB; eight
# strategies of two models: 650 MB).
MACHINE_BYTES, MACHINE_PROGRAM_BYTES = 560_000_000, 8_000_000
# Programs of percentiles are larger, and so is compiling them (690 MB after the first).
CALIBRATED_BYTES = 450_000_000
# What elasticities in a parameter add to a strategy's programs (one strategy of Table III, none:
# 525 MB, in four 557, in eight 587), and to compiling the machine oracle's (none: 597, in four:
# 769).
SLOPE_PROGRAM_BYTES, MACHINE_SLOPE_BYTES = 10_000_000, 45_000_000
# A scheduler, and a client of it, in the process that drives others (230 MB, and 13 MB of Python's
# tracker of semaphores).
DRIVER_BYTES = 280_000_000

# The axes' values, read, checked and stored: a sweep of 8.4 million PE counts, 67 MB, took 691 MB,
# and 618 were promised without them.
AXIS_COPIES = 3

# Of a block's variables: the block itself, with what Zarr holds of it compressed; terms of 4.2
# million cells, in four blocks at once: 1.1.
BLOCK_COPIES = 1.25
# And once more in a process, whichever block is compressed just then: 1.3 for a single block.
WRITING_COPIES = 1
# A block's summary, as it is compressed; and in a process, as it is reduced, and as a table. (Two
# PE counts, 2 million lines, three blocks in hand: 928 MB in all.)
SUMMARY_COPIES = 1
REDUCING_COPIES = 2
# Float64 arrays of a tile that the machine oracle has at once (with percentiles,
# memory_analysis: 69; a search of two blocks at once without any: 173 MB, 83 each).
TILE_COPIES = 84
# And of each parameter that elasticities are in: an estimate, not measured.
SLOPE_COPIES = 12
# Float64 arrays of a block's PE counts and group sizes that its cells are answered from.
CHOICE_COPIES = 30
# Float64 arrays of stages and group sizes while a pipeline's layers are reduced.
STAGE_COPIES = 26
# Float64 arrays of layers and group sizes while a PE's own part of each layer is reduced, which
# Table III does not need (50,000 sizes of 175 layers at once took 430 MB more: 6; a search of 1,024
# PE counts 494 MB, and as many were promised without them).
OWN_COPIES = 8
# Partitions that are kept (grids/inputs/partition.py), and bytes of each of their ends.
PARTITIONS, END_BYTES = 256, 2


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of a process without any block, and what each block in hand adds."""

    process: int
    block: int

    def with_blocks(self, count: int) -> int:
        """Bytes of a process that has so many blocks in hand."""
        return self.process + count * self.block


def estimate_memory(grid: Grid, plan: Plan) -> MemoryEstimate:
    """The memory of each process that computes blocks of the plan."""
    cells, slopes = math.prod(plan.shard), len(list_sloped(grid.spec.outputs))
    variables = cells * plan.cell_bytes
    # Of a line of PE counts as many statistics, however few counts there are.
    summary = cells // _count_along(plan, ("pe",)) * len(STATISTICS) * FLOAT
    passing = WRITING_COPIES * variables + REDUCING_COPIES * summary + _estimate_layers(grid, plan)
    block = BLOCK_COPIES * variables + SUMMARY_COPIES * summary
    # What a block's cells are answered from, at each of the choices.
    choices = max(count_choices(grid, strategy) for strategy in grid.resolved)
    answering = choices * _count_along(plan, plan.layered) * FLOAT * CHOICE_COPIES
    # The cells that one program has at hand; Table III's are few.
    copies = (0 if grid.spec.oracle == "paper" else TILE_COPIES) + SLOPE_COPIES * slopes
    answering += min(TILE_CELLS, cells) * FLOAT * copies
    axes = AXIS_COPIES * sum(values.nbytes for values in grid.axes.values())
    programs = _estimate_programs(grid, slopes)
    return MemoryEstimate(programs + axes + passing, math.ceil(block) + answering)


def _estimate_programs(grid: Grid, slopes: int) -> int:
    """Bytes of a process that has compiled everything."""
    count = len(grid.fitting) * len(grid.strategies)
    kept = slopes * len(grid.strategies) * SLOPE_PROGRAM_BYTES
    if grid.spec.oracle == "paper":
        return PROCESS_BYTES + count * PROGRAM_BYTES + kept
    compiled = MACHINE_BYTES + count * MACHINE_PROGRAM_BYTES + kept + slopes * MACHINE_SLOPE_BYTES
    return compiled + (CALIBRATED_BYTES if grid.has_intervals else 0)


def count_choices(grid: Grid, strategy: Strategy) -> int:
    """Count the groups or degrees, times the segments, that each cell may choose from."""
    sizes = {*strategy.choices} - {"segments"}
    most = max(len(list_divisors(count)) for count in grid.axes["pe"].astype(int).tolist())
    return int(most ** len(sizes)) * _count_segments(grid, strategy)


def _count_segments(grid: Grid, strategy: Strategy) -> int:
    """Count the numbers of segments that each cell may choose from."""
    chosen = "segments" in strategy.choices
    return len(list_segments(strategy, float(grid.axes["batch"].max()))) if chosen else 1


def _estimate_layers(grid: Grid, plan: Plan) -> int:
    """Bytes to reduce layers: of one PE of each group size, and of the stages of pipelines.

    As many sizes as are reduced at once; the stages of one reduction, and partitions that are kept.
    """
    # The most sizes of groups in a block.
    sizes = math.prod(_count_distinct(grid, plan, dim, {*SIZED}) for dim in grid.axes)
    own = 0.0
    if grid.spec.oracle != "paper":
        at_once = min(sizes, SIZES)
        own = plan.layers * at_once * _count_other_layered(grid, plan, at_once) * FLOAT * OWN_COPIES
    pipelines = [one for one in grid.resolved if one.cut_by_axis and one.segmented]
    if not pipelines:
        return math.ceil(own)
    segments = max(_count_segments(grid, strategy) for strategy in pipelines)
    if not any(strategy.several for strategy in pipelines):
        sizes = min(sizes, plan.layers + 1)
    ends, partitions = plan.layers * sizes, len(pipelines) * len(grid.systems) * len(grid.fitting)
    along = zip(plan.dims, plan.shape, strict=True)
    partitions *= math.prod(n for dim, n in along if dim in plan.layered and dim not in SIZED)
    stages = ends * segments * _count_other_layered(grid, plan, sizes) * FLOAT * STAGE_COPIES
    return math.ceil(own) + math.ceil(stages) + min(PARTITIONS, partitions) * ends * END_BYTES


def _count_other_layered(grid: Grid, plan: Plan, sizes: int) -> float:
    """The most combinations, in a block, of what layers depend on beside so many sizes of groups.

    With the sizes there are no more of them than the block has along the axes of both: of rows
    that hold both, as many as rows.
    """
    others = {*LAYERED, "segments"} - {*SIZED}
    combinations = math.prod(_count_distinct(grid, plan, dim, others) for dim in plan.layered)
    return min(combinations, max(1.0, _count_along(plan, plan.layered) / sizes))


def _count_distinct(grid: Grid, plan: Plan, dim: str, names: set[str]) -> int:
    """The most combinations of some parameters along a dimension of a block."""
    if dim not in grid.rows:
        return _count_along(plan, (dim,)) if dim in names else 1
    columns = [values for name, values in grid.rows[dim].columns.items() if name in names]
    if not columns:
        return 1
    # Twice: distinct rows are padded to a power of two.
    distinct = 2 * int(np.unique(np.stack(columns), axis=1).shape[1])
    return min(_count_along(plan, (dim,)), distinct)


def _count_along(plan: Plan, dims: tuple[str, ...]) -> int:
    """Cells of a block along some dimensions."""
    return math.prod(n for dim, n in zip(plan.dims, plan.shard, strict=True) if dim in dims)


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

    Shortest: programs are on disk, and all cores share the work. Longest: all are compiled, and one
    core does the work. cells: of the blocks to compute; None: of all blocks.
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
    # Batches of as many bits share a list of candidates.
    bits = np.unique(np.frexp(grid.axes["batch"])[1]).size
    searched = sum(strategy.searched for strategy in grid.resolved)
    lists = problems * searched * grid.axes["pe"].size * bits
    most += LAYOUT[1] * layouts + LISTING * lists
    placing = PLACING * problems * any(strategy.placed for strategy in strategies)
    return START[0] + (loading + least) / cores, START[1] + loading + compiling + most + placing


def _count_mean_layouts(grid: Grid, plan: Plan) -> float:
    """Return the layouts that a cell is answered from, the mean of all cells or of some of many."""
    if not any(grid.transformers):
        return 0.0
    if plan.cells <= COUNTED:
        cells = np.argwhere(np.ones(plan.shape, bool))
    else:
        cells = np.random.default_rng(0).integers(plan.shape, size=(COUNTED, len(plan.shape)))
    return sum(_count_of_cell(grid, tuple(cell)) for cell in cells.tolist()) / len(cells)


def _count_of_cell(grid: Grid, cell: tuple[int, ...]) -> float:
    """Count the layouts of a cell, with its share of those of one PE, which speedups divide by."""
    model, dataset, system, strategy, *places = cell
    index = model, dataset, system, strategy
    pairs = zip(grid.axes.items(), places, strict=True)
    axes = {name: values[[place]] for (name, values), place in pairs}
    one = {**axes, "pe": np.ones(1)}
    own = grid.build(count_layouts, index, axes, None) or 0
    alone = grid.build(count_layouts, index, one, grid.find_alone(index)) or 0
    # All strategies and PE counts share it.
    return own + alone / (len(grid.strategies) * grid.axes["pe"].size)


# A handful of blocks, however many cores there are.
AT_ONCE = 4


def blocks_at_once(grid: Grid, plan: Plan) -> int:
    """Blocks that one process has in hand: each in a thread, while some wait for the disk.

    More cores than a few take more processes: Python's own part is one thread's work at a time.
    """
    memory = estimate_memory(grid, plan)
    fitting = (machine_memory() - memory.process) // memory.block
    return max(1, min(cores() + 1, AT_ONCE, plan.blocks, fitting))


def cores() -> int:
    """Cores that this process may use."""
    # Not os.cpu_count(): a batch job or a container may be bound to some of the cores.
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def needed_memory(grid: Grid, plan: Plan, workers: int) -> int:
    """Bytes that `workers` processes need, a block each, with what drives them; 0: this one."""
    memory = estimate_memory(grid, plan)
    if workers == 0:
        return memory.with_blocks(blocks_at_once(grid, plan))
    return DRIVER_BYTES + workers * memory.with_blocks(1)


def check_memory(grid: Grid, plan: Plan, workers: int) -> None:
    """Refuse a run that this machine's memory cannot hold."""
    needed, there = needed_memory(grid, plan, workers), machine_memory()
    if needed > there:
        what = f"{format_count(workers, 'worker')} with a block each" if workers else "a block"
        raise InputError(
            f"{needed / 1e9:.1f} GB of memory needed for {what}, this machine has "
            f"{there / 1e9:.1f} GB",
            advice="use fewer workers" if workers else "use a machine with more memory",
        )


def machine_memory(limits: Iterable[int] | None = None) -> int:
    """Bytes of memory of this machine, or of the container or batch job that this process is in."""
    # Not what is free just now: much of what is taken is a cache that the system gives back.
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *(memory_limits() if limits is None else limits)])


MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def memory_limits(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> list[int]:
    """Bytes that each of this process' groups grants, where it sets a limit."""
    limits = []
    for line in _read_text(membership).splitlines():
        # At most two cuts: a path may have colons of its own.
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = mount, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = mount / "memory", "memory.limit_in_bytes"
        else:
            continue
        # Above the top ("..") there is only what is mounted here.
        place = PurePosixPath("/" if ".." in PurePosixPath(path).parts else path)
        # The group, and its ancestors: in a container often the root alone is there.
        for group in (place, *place.parents):
            text = _read_text(root.joinpath(*group.parts[1:], name)).strip()
            # "max" sets no limit; version 1 has a number near 2**63 instead, and the least counts.
            if text.isdecimal():
                limits.append(int(text))
    return limits


def _read_text(file: Path) -> str:
    """Return the text of a file of the kernel; empty where there is none."""
    try:
        return file.read_text()
    except OSError:
        return ""


def keep_programs() -> None:
    """Keep programs in the user's cache, unless JAX keeps them in a place of the user's choice."""
    import jax  # late: estimates do without

    from paradl.kernels import programs

    if jax.config.values["jax_compilation_cache_dir"] is None:
        # One folder for all runs: workers that share a home share programs (docs/scale.md).
        programs.keep_in(user_cache_path("paradl") / "programs")
