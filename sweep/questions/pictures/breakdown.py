"""Breakdown: the terms of an iteration's time, stacked over p, of one strategy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grids.grid import LABELS, Grid
from grids.models.layers import Floats
from kernels.terms import TERMS, list_terms
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.questions.pictures.cases import build_case, narrow_grid
from sweep.questions.pictures.cells import (
    describe_place,
    expect_any,
    find_allowed,
    find_beyond,
    name_reasons,
    name_stop,
    open_slice,
    read_grid,
    read_slice,
)

if TYPE_CHECKING:
    import xarray as xr

SUMMED = (*list_terms("compute"), *list_terms("communication"))


@dataclass(frozen=True)
class Breakdown:
    """Seconds an iteration of each term that is not zero throughout, by PE count, ascending.

    The PE counts are those that nothing forbids; cause: what forbids the next one, None: the axis
    ends. beyond: where the global batch is larger than the data set.
    """

    place: str
    strategy: str
    pe: Floats
    terms: Mapping[str, Floats]
    cause: str | None = None
    beyond: NDArray[np.bool_] | None = None

    @property
    def total(self) -> Floats:
        """Seconds an iteration."""
        total: Floats = np.sum([*self.terms.values()], axis=0)
        return total


def describe_breakdown(source: Source, selection: Selection | None = None) -> Breakdown:
    """The terms of a slice with one strategy: as the cube holds them, else of the kernels.

    InputError: an axis beside pe with several values. NothingFeasibleError: no PE count.
    """
    cells = read_slice(open_slice(source, selection, (*TERMS, "replicas")), ("pe",))
    limit = cells["limit"].values.reshape(-1)
    allowed = np.flatnonzero(find_allowed(limit))
    place, strategy = describe_place(cells, told=("pe", "strategy")), str(cells["strategy"].item())
    expect_any(allowed, name_reasons(limit))
    line = cells.isel(pe=allowed)
    grid = narrow_grid(read_grid(line), line)
    terms = _read_terms(line) if _holds_terms(grid, line) else _compute_terms(grid, line)
    return Breakdown(
        place,
        strategy,
        line["pe"].values.astype(float),
        {name: seconds for name, seconds in terms.items() if (seconds > 0).any()},
        name_stop(limit, int(allowed[-1])),
        find_beyond(limit[allowed]),
    )


def _holds_terms(grid: Grid, line: "xr.Dataset") -> bool:
    """Whether the cube has all that the terms of an iteration follow from."""
    counted = "replicas" in line or grid.strategies[0].group != "best"
    return counted and all(name in line for name in SUMMED)


def _read_terms(line: "xr.Dataset") -> dict[str, Floats]:
    """Stored seconds an epoch, of an iteration."""
    from sweep.cube.derived import Paradl

    iterations = Paradl(line).iterations.broadcast_like(line["limit"]).values.reshape(-1)
    return {name: line[name].values.astype(float).reshape(-1) / iterations for name in SUMMED}


def _compute_terms(grid: Grid, line: "xr.Dataset") -> dict[str, Floats]:
    """The terms of the cells as the kernels have them."""
    from kernels.oracle import answer_case

    answer = answer_case(build_case(grid, line))
    shape = line["limit"].shape[len(LABELS) :]

    def spread(values: object) -> Floats:
        """Over all cells, also where the kernels know that nothing varies."""
        return np.broadcast_to(np.asarray(values, float), shape).reshape(-1)

    iterations = spread(answer.iterations)
    return {name: spread(getattr(answer.terms, name)) / iterations for name in SUMMED}
