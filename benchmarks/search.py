"""Search without storing: how fast a space is reduced to its answers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import interleaved
from grids.grid import Grid
from sweep import engine

Search = Callable[[Grid], object]

TITLE = "a space reduced to its answers, nothing stored"
# "A billion cells in a few seconds": five.
CELLS_PER_SECOND = 200e6


@dataclass(frozen=True)
class SearchRate:
    """Cells a second."""

    cells: int
    rate: float


def measure(effort: Effort) -> Report:
    """All strategies over one large block each."""
    search: Search | None = getattr(engine, "search", None)
    if search is None:
        return Report("search", TITLE, (), "Skipped: this paradl has no `sweep.engine.search`.")
    found = search_rate(search, effort)
    goals = (at_least(found.rate, CELLS_PER_SECOND, "cells/s"),)
    return Report(
        "search", TITLE, (Row(f"{found.cells:,} cells", found.rate, "cells/s", goals=goals),)
    )


def search_rate(search: Search, effort: Effort) -> SearchRate:
    """The median of some searches of the same space."""
    grid = spaces.space(spaces.ALL, effort.searched, 64, 64)
    timing = interleaved({"search": partial(search, grid)}, effort.rounds)["search"]
    cells = int(np.prod(grid.shape))
    return SearchRate(cells, cells / timing.median)
