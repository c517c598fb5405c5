"""Where the time of one block goes: from the spec's values to bytes on disk."""

from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Buffers, block_cells, fill_block, new_buffers
from benchmarks.rawzarr import Layout, write
from benchmarks.report import Report, Row
from benchmarks.timing import Action, interleaved
from grids.grid import Grid
from sweep import variables
from sweep.creation import CODEC
from sweep.evaluate import evaluate, group_work
from sweep.plan import CHUNK_CELLS, SHARD_CELLS


@dataclass(frozen=True)
class BlockProfile:
    """Seconds of each step of a block, in order.

    problem: parameters looked up, layers placed (a placement that an earlier block worked out is
    reused; the first of a sweep shows in `disk`). layers: stage one. closed_form: stage two.
    spread: into the block. fresh_memory: what spreading into new pages costs more. store: compress
    and write.
    """

    problem: float
    layers: float
    closed_form: float
    spread: float
    fresh_memory: float
    store: float


def measure(effort: Effort) -> Report:
    """Blocks of the engine's size."""
    grid = spaces.wide(22)
    rows = [
        row
        for position, name in enumerate(spaces.STRATEGIES)
        for row in _rows(name, block_profile(grid, position, effort))
    ]
    cells = block_cells(grid)
    return Report("profile", f"where the time of a block of {cells:,} cells goes", tuple(rows))


def block_profile(grid: Grid, strategy: int, effort: Effort) -> BlockProfile:
    """Each step is timed on its own, or as the difference that it makes."""
    buffers = new_buffers(grid)
    fill_block(grid, strategy, buffers)
    with TemporaryDirectory() as folder:
        actions: dict[str, Action] = {
            "problem": partial(grid.problem, (0, 0, 0, strategy)),
            "layers": partial(_through_layers, grid, strategy),
            "closed_form": partial(evaluate, grid, (0, 0, 0, strategy)),
            "spread": partial(fill_block, grid, strategy, buffers),
            "fresh_memory": partial(_into_new_pages, grid, strategy),
            "store": partial(_store, Path(folder), buffers),
        }
        timings = interleaved(actions, effort.short_rounds)
    problem, layers, closed, spread, fresh, store = (each.median for each in timings.values())
    steps = (problem, layers - problem, closed - layers, spread - closed, fresh - spread, store)
    return BlockProfile(*(max(0.0, seconds) for seconds in steps))


def _through_layers(grid: Grid, strategy: int) -> None:
    problem = grid.problem((0, 0, 0, strategy))
    assert problem is not None  # the space's model and dataset fit
    jax.block_until_ready(group_work(problem, grid.options))


def _into_new_pages(grid: Grid, strategy: int) -> None:
    shape = grid.shape[4:]
    empty = {name: np.empty(shape, variables.dtype(name)) for name in grid.spec.outputs}
    fill_block(grid, strategy, empty)


def _store(folder: Path, buffers: Buffers) -> None:
    write(folder, buffers, Layout(CODEC, CHUNK_CELLS, SHARD_CELLS))


def _rows(name: str, profile: BlockProfile) -> list[Row]:
    steps = [field.name for field in fields(profile)]
    seconds: tuple[float, ...] = astuple(profile)
    total = sum(seconds)
    return [
        Row(f"{name}: {step.replace('_', ' ')}", each, "s", each / total, "the block")
        for step, each in zip(steps, seconds, strict=True)
    ]
