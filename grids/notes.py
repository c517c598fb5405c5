"""Notes on a design space: what is odd, not used, or does not fit, said before anything runs."""

from typing import TYPE_CHECKING

from grids.divisible import list_whole
from grids.misfits import list_misfits
from grids.unused import list_unused, list_unused_choices

if TYPE_CHECKING:
    from grids.grid import Grid


def list_notes(grid: "Grid") -> list[str]:
    """All notes, a line each."""
    entries = (*grid.models, *grid.convergences.values())
    files = grid.models, grid.datasets, grid.systems, grid.convergences
    return [
        *(text for each in entries for text in each.warnings),
        *list_whole(grid.models, grid.fitting, grid.strategies),
        *list_unused(*files, grid.spec),
        *list_unused_choices(grid.strategies, grid.spec),
        *list_misfits(grid.labels, grid.misfit),
    ]
