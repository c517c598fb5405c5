"""Where the time of one block goes: from the spec's values to bytes on disk."""

from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Block, block_cells
from benchmarks.rawzarr import Layout, write
from benchmarks.report import Report, Row
from benchmarks.timing import Action, interleaved
from grids.grid import Grid
from sweep.cube.creation import CODEC
from sweep.cube.plan import CHUNK_CELLS, SHARD_CELLS
from sweep.cube.variables import Arrays


@dataclass(frozen=True)
class BlockProfile:
    """Seconds of each step of a block, in order.

    case: parameters looked up, layers placed and reduced (what an earlier block worked out is
    reused; the first of a sweep shows in `disk`). fill: stage two, into the block, with its
    summary. store: compress and write.
    """

    case: float
    fill: float
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
    block = Block(grid, strategy)
    with TemporaryDirectory() as folder:
        actions: dict[str, Action] = {
            "case": partial(grid.case, (0, 0, 0, strategy)),
            "fill": block,
            "store": partial(_store, Path(folder), block.arrays()),
        }
        timings = interleaved(actions, effort.short_rounds)
    case, fill, store = (each.median for each in timings.values())
    steps = (case, fill - case, store)
    return BlockProfile(*(max(0.0, seconds) for seconds in steps))


def _store(folder: Path, arrays: Arrays) -> None:
    write(folder, arrays, Layout(CODEC, CHUNK_CELLS, SHARD_CELLS))


def _rows(name: str, profile: BlockProfile) -> list[Row]:
    steps = [field.name for field in fields(profile)]
    seconds: tuple[float, ...] = astuple(profile)
    total = sum(seconds)
    return [
        Row(f"{name}: {step.replace('_', ' ')}", each, "s", each / total, "the block")
        for step, each in zip(steps, seconds, strict=True)
    ]
