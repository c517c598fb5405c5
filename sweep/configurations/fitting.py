"""The chance that a PE's memory suffices for a configuration."""

from collections.abc import Mapping
from dataclasses import replace
from math import isnan

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.reserves import Reserve, find_fit_chance, find_least_capacity
from paradl.grids.grid import Grid, Index
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_quantity
from paradl.sweep.cells.reader import Reader
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import open_source
from paradl.sweep.cells.space import look_up_capacity, look_up_value


def find_memory_chance(
    grid: Grid, index: Index, cell: Mapping[str, object], memory: float | None
) -> float | None:
    """Find the probability that a cell's memory [B] suffices in all of a PE's, headroom included.

    None where memory is unknown, and for Table III.
    """
    if memory is None or isnan(memory) or grid.spec.oracle == "paper":
        return None
    capacity = look_up_capacity(grid, index, cell)
    return find_fit_chance(memory, capacity, *_find_reserve(grid, index, cell))


def find_needed(grid: Grid, index: Index, cell: Mapping[str, object], memory: float) -> float:
    """Find the capacity of a PE [B] that a cell's memory needs, with headroom and probability."""
    headroom, chance = (
        look_up_value(grid, cell, name) or 0.0 for name in ("headroom", "fit_chance")
    )
    least = find_least_capacity(memory, chance, *_find_reserve(grid, index, cell))
    return max(memory / (1 - headroom), least)


def _find_reserve(grid: Grid, index: Index, cell: Mapping[str, object]) -> tuple[Reserve, float]:
    """Find by what memory exceeds formulas, and memory beside tensors by formulas [B]."""
    reserve = grid.systems[index[2]].find_reserve(of_blocks=grid.find_blocks(index) is not None)
    return reserve, _look_up_reserved(grid, index, cell)


def _look_up_reserved(grid: Grid, index: Index, cell: Mapping[str, object]) -> float:
    """Memory of a PE beside tensors [B], from an axis, the spec, a calibration or its prior."""
    stated = look_up_value(grid, cell, "reserved")
    if stated is not None:
        return stated
    system = grid.systems[index[2]]
    calibration, prior = grid.calibrations.get(system.name), PARAMETERS["reserved"].prior
    assert prior is not None
    fitted = None if calibration is None else calibration.parameters.get("reserved")
    return prior.median[system.precision] if fitted is None else fitted.value


def read_chance(holds: float | str, oracle: str) -> float:
    """Read a required probability. InputError: it is none, or one of Table III."""
    chance = parse_quantity(holds, "1", "holds", "90%")
    if not 0 < chance < 1:
        raise InputError(
            f"expected a probability above 0 and below 1, got {shorten(chance)}",
            where="holds",
            advice="such as 0.9",
        )
    if oracle == "paper":
        raise InputError(
            "the oracle 'paper' has no intervals",
            where="holds",
            advice="leave it out, or use the oracle 'machine'",
        )
    return chance


def require_fit(
    reader: Reader, selection: Selection | None, holds: float | str
) -> tuple[Selection, Reader]:
    """Return a slice, and its cells computed anew: feasible if memory suffices so probably."""
    grid = reader.grid
    given = {**grid.spec.parameters, "fit_chance": read_chance(holds, grid.spec.oracle)}
    spec = grid.spec.model_copy(update={"parameters": given})
    # A Dataset may be a slice of its grid.
    return reader.list_values(selection or {}), open_source(replace(grid, spec=spec))
