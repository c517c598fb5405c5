"""One block of the cube: evaluate, write. The task of every executor, in any process.

To add an executor: a context manager that yields an `Execute`, which takes a cube and numbers of
blocks and yields each number when its block is done; `run_blocks` here is the specification. It is
chosen in sweep/engine/run.py (`Where`, `_open_executor`). Test:
tests/sweep/engine/test_dask_executor.py, the same cube bit for bit.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product
from threading import Lock

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS, Grid
from paradl.kernels.arrays import AnyArray
from paradl.kernels.blocks.fill import SMALL_CELLS, Buffers
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.statistics import STATISTICS
from paradl.sweep.cube.object_store import translate_failures
from paradl.sweep.cube.plan import NOT_SERIAL, SERIAL, SUMMARY, Plan, Region
from paradl.sweep.cube.store import Cube, open_shared_cube
from paradl.sweep.cube.variables import VARIABLES, Arrays
from paradl.sweep.engine.evaluation import SERIAL_TIMES, answer, compile_fill, fill, has_few_cells
from paradl.sweep.engine.resources import blocks_at_once, cores, keep_programs


class Spare:
    """Memory of written blocks of one size, kept for those to come; of another size it is let go.

    A block has tens of megabytes. Memory that the system has just handed out is slow to touch
    first: evaluating a block into it takes 1.5 to 2.6 times as long as into memory that is there
    (2 cores, 2026-11, 2**22 cells).
    """

    def __init__(self) -> None:
        self._free: dict[tuple[object, ...], list[Buffers]] = {}
        self._lock = Lock()

    def take(self, places: int, shape: tuple[int, ...], names: tuple[str, ...]) -> Buffers:
        """Arrays [places, cells]; what is in them means nothing."""
        size = (places, *shape), frozenset(names)
        with self._lock:
            free = self._free.get(size, [])
            self._free = {size: free}
            # Under the lock only what is quick: arrays are made outside of it.
            if free:
                return free.pop()
        # JAX's own arrays: `kernels.blocks.fill` writes in them, donated, and gives them back,
        # which it cannot with numpy's. Zeros, as jnp.empty writes them, too (JAX 0.10.2).
        return {name: jnp.zeros((places, *shape), VARIABLES[name].dtype) for name in names}

    def give(self, buffers: Buffers) -> None:
        """Arrays that nobody reads any more."""
        if buffers:
            size = tuple(next(iter(buffers.values())).shape), frozenset(buffers)
            with self._lock:
                self._free.get(size, []).append(buffers)


# Of this process: a worker runs its blocks one after the other.
SPARE = Spare()


# Runs blocks of a cube, and yields the number of each when it is done.
Execute = Callable[[Cube, Iterable[int]], Iterator[int]]

# Outputs [places, cells], the buffers that they lie in, and the table of each place.
Filled = tuple[Mapping[str, AnyArray], Buffers, Sequence[AnyArray]]

# Places whose programs are compiled ahead: each takes some milliseconds to look at.
MOST_AHEAD = 64

# One thread at a time asks for answers, which then are found side by side: of two that ask for the
# same for the first time, each would trace and compile the same programs.
ASKING = Lock()


@dataclass(frozen=True)
class BlockArrays:
    """The arrays of one block, which lie in `buffers`; none where no cell can exist."""

    arrays: Arrays
    buffers: Buffers


def run_block(url: str, identity: str, block: int) -> int:
    """Compute and write one block of the cube at `url`; returns its number."""
    keep_programs()
    return _run_one(open_shared_cube(url, identity), block)


def run_blocks(cube: Cube, blocks: Iterable[int]) -> Iterator[int]:
    """Compute and write blocks in threads of this process, a few at a time, beside each other."""
    keep_programs()
    count = blocks_at_once(cube.grid, cube.plan)
    waiting, running = iter(blocks), set[Future[int]]()
    # Threads, not processes: what takes the time, XLA's programs and blosc, runs without Python's
    # lock, and memory and compiled programs are shared. Left by a failure or Ctrl-C, the pool waits
    # for the blocks at work: none is cut short.
    with ThreadPoolExecutor(count, "paradl-block") as pool, _compile_ahead() as start_compiling:
        while True:
            for block in islice(waiting, count - len(running)):
                start_compiling(cube, block)
                running.add(pool.submit(_run_one, cube, block))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            # Failures last: what is done beside them is told first.
            for future in sorted(done, key=lambda future: future.exception() is not None):
                yield future.result()


@contextmanager
def _compile_ahead() -> Iterator[Callable[[Cube, int], None]]:
    """Yield a function that compiles the programs of small blocks of one size side by side.

    Percentiles of eight strategies, from an empty cache on two shared cores: 20.1 -> 17.3 and
    11.9 -> 7.6 s. Programs of large blocks take all cores each: a billion cells took 20 -> 25 s.
    """
    pool, shapes = ThreadPoolExecutor(cores(), "paradl-compile"), set[tuple[int, ...]]()

    def start(cube: Cube, block: int) -> None:
        grid, region = cube.grid, cube.plan.find_region(block)
        model, dataset = region[0].start, region[1].start
        places, shape = _split_sizes(region)
        programs = not has_few_cells(grid, cube.plan) and math.prod(shape) < SMALL_CELLS
        if not programs or shape in shapes or grid.table(model, dataset) is None:
            return
        shapes.add(shape)
        buffers = {
            name: jax.ShapeDtypeStruct((math.prod(places), *shape), VARIABLES[name].dtype)
            for name in grid.spec.outputs
        }
        systems, strategies = len(grid.systems), len(grid.strategies)
        axes = _cut_axes(grid, cube.plan, region)
        for system, strategy in islice(product(range(systems), range(strategies)), MOST_AHEAD):
            compile_fill(pool, buffers, grid, (model, dataset, system, strategy), axes)

    try:
        yield start
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def compute(grid: Grid, plan: Plan, region: Region) -> BlockArrays:
    """Compute one block: all its variables, and their summary."""
    if grid.table(region[0].start, region[1].start) is None:
        return BlockArrays({}, {})
    with ASKING:
        axes = _cut_axes(grid, plan, region)
        # Every block needs it, for the efficiency in its summary; one of them also stores it.
        serial = SERIAL_TIMES.find(grid, plan, region, axes)
        few = has_few_cells(grid, plan)
        filled, buffers, tables = _fill_places(grid, region, axes, serial, few)
    places, shape = _split_sizes(region)
    summary = np.empty((*places, len(STATISTICS), 1, *shape[1:]))
    for index, table in zip(np.ndindex(*places), tables, strict=True):  # only now wait for them
        summary[(*index, slice(None), 0)] = table
    arrays = {name: np.asarray(values).reshape(*places, *shape) for name, values in filled.items()}
    # Blocks that differ only in strategy and PEs would write the same file: the first does.
    parts = zip(plan.dims, region, strict=True)
    if all(part.start == 0 for dim, part in parts if dim in NOT_SERIAL):
        arrays[SERIAL] = serial[None, None]
    return BlockArrays(arrays | {SUMMARY: summary}, buffers)


def _fill_places(
    grid: Grid, region: Region, axes: dict[str, Floats], serial: NDArray[np.float32], few: bool
) -> Filled:
    """Return the block's outputs and tables; few: by numpy, not by programs in spare buffers."""
    places, shape = _split_sizes(region)
    sizes, names = (math.prod(places), *shape), grid.spec.outputs
    buffers = {} if few else SPARE.take(sizes[0], shape, names)
    arrays = {name: np.empty(sizes, VARIABLES[name].dtype) for name in names} if few else {}
    tables: list[AnyArray] = []
    labels = product(*(range(part.start, part.stop) for part in region[: len(LABELS)]))
    for place, (model, dataset, system, strategy) in enumerate(labels):
        index, of_system = (model, dataset, system, strategy), serial[system - region[2].start]
        if few:
            answers, table = answer(grid, index, axes, of_system)
            for name, values in answers.items():
                arrays[name][place] = values
            tables.append(table)
        else:
            buffers, compiled = fill(buffers, place, grid, index, axes, of_system)
            tables.append(compiled)
    return arrays or buffers, buffers, tables


def _run_one(cube: Cube, block: int) -> int:
    """Compute and write one block, and keep its memory for the next one."""
    answers = compute(cube.grid, cube.plan, cube.plan.find_region(block))
    with translate_failures(cube.url):
        cube.write(block, answers.arrays)
    answers.arrays.clear()  # they are views of the buffers
    SPARE.give(answers.buffers)
    return block


def _split_sizes(region: Region) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a block's sizes along the labelled dimensions, and along the others."""
    sizes = tuple(part.stop - part.start for part in region)
    return sizes[: len(LABELS)], sizes[len(LABELS) :]


def _cut_axes(grid: Grid, plan: Plan, region: Region) -> dict[str, Floats]:
    """Return the block's values of the numeric axes."""
    parts = dict(zip(plan.dims, region, strict=True))
    return {name: values[parts[name]] for name, values in grid.axes.items()}
