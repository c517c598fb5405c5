"""Search without storing: how fast a space is reduced to its answers."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import interleaved
from grids.grid import Grid
from sweep.engine.progress import silent
from sweep.engine.run import Where, sweep

TITLE = "a space reduced to its answers (--reduce-only), no cell stored"
# "A billion cells in a few seconds": five.
CELLS_PER_SECOND = 200e6


@dataclass(frozen=True)
class SearchRate:
    """Cells a second."""

    cells: int
    rate: float


def measure(effort: Effort) -> Report:
    """All strategies over large blocks."""
    result = search_rate(effort)
    goals = (at_least(result.rate, CELLS_PER_SECOND, "cells/s"),)
    return Report(
        "search", TITLE, (Row(f"{result.cells:,} cells", result.rate, "cells/s", goals=goals),)
    )


def search_rate(effort: Effort) -> SearchRate:
    """The median of some searches of the same space."""
    grid = spaces.space(spaces.ALL, effort.searched, 64, 64)
    with TemporaryDirectory() as folder:
        store = Path(folder) / "answers.zarr"
        action = partial(_search, grid.drop_outputs(), store)
        prepare = partial(rmtree, store, ignore_errors=True)
        timing = interleaved({"search": action}, effort.rounds, prepare)["search"]
    cells = int(np.prod(grid.shape))
    return SearchRate(cells, cells / timing.median)


def _search(grid: Grid, store: Path) -> None:
    sweep(grid, str(store), False, Where(), silent)
