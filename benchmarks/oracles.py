"""The two oracles: the machine's rate as a part of Table III's, of blocks and of a whole sweep."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.endtoend import clear
from benchmarks.kernel import Block
from benchmarks.report import Report, Row, compare_rates
from benchmarks.timing import Action, Timing, interleaved
from grids.grid import Grid
from grids.inputs.draws import DRAWS
from grids.outputs import INTERVALS
from sweep.engine.progress import silent
from sweep.engine.run import Where, sweep

# Of Table III's rate: what a machine as it is may cost.
SHARE = 0.6
# Of the rate without: percentiles of three times, from DRAWS draws.
UNSURE = 1 / 64
SMALLER = 2  # a block with percentiles is so many sizes smaller, or a round takes minutes


NOTE = f"Percentiles of an epoch's time are those of {DRAWS} draws."


def measure(effort: Effort) -> Report:
    """Each strategy's largest block, variables and summary, on one core; then several to disk."""
    rows = []
    for kind, make in (("three axes", spaces.wide), ("two axes", spaces.dense)):
        paper, machine = (make(effort.blocks[-1], spaces.EIGHT, each) for each in spaces.ORACLES)
        cells = int(np.prod(machine.shape[4:]))
        for position, name in enumerate(spaces.EIGHT):
            actions = {"paper": Block(paper, position), "machine": Block(machine, position)}
            timings = interleaved(actions, effort.short_rounds)
            rows.append(_compare_oracles(f"{name}, {kind}", cells, timings))
    unsure = [_compare_percentiles(effort, name) for name in spaces.STRATEGIES]
    rows += [*unsure, _sweep(effort)]
    return Report("oracles", "the machine oracle, against Table III", tuple(rows), NOTE)


def _compare_percentiles(effort: Effort, strategy: str) -> Row:
    """A block with the percentiles of an epoch's time, against one without them."""
    size = effort.blocks[max(0, len(effort.blocks) - 1 - SMALLER)]
    plain = spaces.wide(size, (strategy,), "machine")
    asked = (*plain.spec.outputs, *(name for name in INTERVALS if name.startswith("epoch")))
    with_them = replace(plain, spec=plain.spec.model_copy(update={"outputs": asked}))
    actions = {"plain": Block(plain, 0), "percentiles": Block(with_them, 0)}
    timings = interleaved(actions, effort.short_rounds)
    what, cells = f"{strategy}, with percentiles", int(np.prod(plain.shape[4:]))
    return compare_rates(what, cells, timings["percentiles"], timings["plain"], "without", UNSURE)


def _sweep(effort: Effort) -> Row:
    """The cube of `disk`, a block a strategy, from the first layer to the last file."""
    grids = [spaces.wide(22, spaces.ALL[: effort.strategies], each) for each in spaces.ORACLES]
    with TemporaryDirectory() as folder:
        target = Path(folder) / "cube.zarr"
        actions: dict[str, Action] = {
            grid.spec.oracle: partial(_write, grid, target) for grid in grids
        }
        timings = interleaved(actions, effort.rounds, partial(clear, target))
    return _compare_oracles("sweep to disk", int(np.prod(grids[0].shape)), timings)


def _write(grid: Grid, target: Path) -> None:
    sweep(grid, str(target), False, Where(), silent)


def _compare_oracles(what: str, cells: int, timings: dict[str, Timing]) -> Row:
    return compare_rates(what, cells, timings["machine"], timings["paper"], "oracle: paper", SHARE)
