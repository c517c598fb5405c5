"""Memory: what fills the fullest PE, by part, against what a PE has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from grids.grid import Grid
from kernels.flags import FORBIDS, Limit
from sweep.answers.numbers import number
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.questions.pictures.cases import build_case, narrow_grid
from sweep.questions.pictures.cells import (
    describe_place,
    expect_any,
    find_beyond,
    name_reasons,
    open_slice,
    read_grid,
    read_slice,
)

if TYPE_CHECKING:
    import xarray as xr

MOST_BARS = 20


@dataclass(frozen=True)
class Bar:
    """Bytes of the fullest PE by part, of a strategy, or of a PE count; of its capacity [B]."""

    name: str
    parts: Mapping[str, float]
    capacity: float
    fits: bool

    @property
    def total(self) -> float:
        """Bytes."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Memory:
    """Bars of strategies (by: strategy) or of PE counts (by: pe); place: what all are about.

    forbidden: what is left out, with why; that memory is too small leaves nothing out. beyond: bars
    whose global batch is larger than the data set.
    """

    place: str
    by: str
    bars: tuple[Bar, ...]
    forbidden: Mapping[str, str] = field(default_factory=dict)
    beyond: tuple[str, ...] = ()


def describe_memory(source: Source, selection: Selection | None = None) -> Memory:
    """The bars of a slice with several strategies, or with several PE counts, parts computed anew.

    Of more than 20 PE counts, those nearest to equal steps of their logarithm. InputError: an axis
    beside one of the two with several values. NothingFeasibleError: no bar, whatever the memory.
    """
    cells = open_slice(source, selection)
    by: Literal["strategy", "pe"] = "strategy" if cells.sizes["strategy"] > 1 else "pe"
    cells = read_slice(cells, (by,))
    single = [cells.isel({by: [number]}) for number in _spread_positions(cells, by)]
    names = [_name_bar(cell, by) for cell in single]
    existing = {name: cell for name, cell in zip(names, single, strict=True) if _exists(cell)}
    expect_any(existing, name_reasons(cells["limit"].values.reshape(-1)))
    grid = read_grid(cells)
    parts = {name: _list_parts(grid, cell) for name, cell in existing.items()}
    return Memory(
        describe_place(cells, told=(by,)),
        by,
        tuple(
            Bar(name, bytes_, capacity, not int(existing[name]["limit"].item()) & Limit.MEMORY)
            for name, (bytes_, capacity) in parts.items()
        ),
        {
            name: name_reasons(cell["limit"].values.reshape(-1))
            for name, cell in zip(names, single, strict=True)
            if name not in existing
        },
        tuple(name for name, cell in existing.items() if find_beyond(cell["limit"].values).any()),
    )


def _exists(cell: "xr.Dataset") -> bool:
    """Whether nothing but memory forbids a cell."""
    return not int(cell["limit"].item()) & FORBIDS & ~Limit.MEMORY


def _spread_positions(cells: "xr.Dataset", by: str) -> list[int]:
    """All positions, or of many PE counts those that exist, evenly on a logarithmic scale."""
    if by == "strategy" or cells.sizes["pe"] <= MOST_BARS:
        return list(range(cells.sizes[by]))
    flags = cells["limit"].values.reshape(-1) & np.uint16(FORBIDS & ~Limit.MEMORY)
    existing = np.flatnonzero(flags == 0)
    if not existing.size:
        return [0]
    logs = np.log(cells["pe"].values[existing].astype(float))
    nearest = np.abs(logs - np.linspace(logs[0], logs[-1], MOST_BARS)[:, None]).argmin(axis=1)
    return sorted(set(existing[nearest].tolist()))


def _name_bar(cell: "xr.Dataset", by: str) -> str:
    """A strategy, or a PE count."""
    return str(cell["strategy"].item()) if by == "strategy" else f"p = {cell['pe'].item():,.0f}"


def _list_parts(grid: Grid, cell: "xr.Dataset") -> tuple[dict[str, float], float]:
    """Bytes of the fullest PE by part, and those that it has."""
    from kernels.oracle import settle_choices
    from sweep.answers.memory_parts import list_memory_parts

    grid = narrow_grid(grid, cell)
    case = settle_choices(build_case(grid, cell))
    return list_memory_parts(grid, case)["memory_parts"], number(case.pe.memory_capacity)
