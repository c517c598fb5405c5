"""The two oracles: the machine's rate as a part of Table III's, of blocks and of a whole sweep."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.endtoend import clear
from benchmarks.kernel import Block
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import Action, Timing, interleaved
from grids.grid import Grid
from sweep.engine.progress import silent
from sweep.engine.run import Where, sweep

# Of Table III's rate: what a machine as it is may cost.
SHARE = 0.6


def measure(effort: Effort) -> Report:
    """Each strategy's largest block, variables and summary, on one core; then several to disk."""
    rows = []
    for kind, make in (("three axes", spaces.wide), ("two axes", spaces.dense)):
        paper, machine = (make(effort.blocks[-1], spaces.EIGHT, each) for each in spaces.ORACLES)
        cells = int(np.prod(machine.shape[4:]))
        for position, name in enumerate(spaces.EIGHT):
            actions = {"paper": Block(paper, position), "machine": Block(machine, position)}
            timings = interleaved(actions, effort.short_rounds)
            rows.append(_row(f"{name}, {kind}", cells, timings))
    return Report("oracles", "the machine oracle, against Table III", (*rows, _sweep(effort)))


def _sweep(effort: Effort) -> Row:
    """The cube of `disk`, a block a strategy, from the first layer to the last file."""
    grids = [spaces.wide(22, spaces.ALL[: effort.strategies], each) for each in spaces.ORACLES]
    with TemporaryDirectory() as folder:
        target = Path(folder) / "cube.zarr"
        actions: dict[str, Action] = {
            grid.spec.oracle: partial(_write, grid, target) for grid in grids
        }
        timings = interleaved(actions, effort.rounds, partial(clear, target))
    return _row("sweep to disk", int(np.prod(grids[0].shape)), timings)


def _write(grid: Grid, target: Path) -> None:
    sweep(grid, str(target), False, Where(), silent)


def _row(what: str, cells: int, timings: dict[str, Timing]) -> Row:
    share = timings["machine"].rate_against(timings["paper"])
    rate = cells / timings["machine"].median
    return Row(what, rate, "cells/s", share, "oracle: paper", (at_least(share, SHARE),))
