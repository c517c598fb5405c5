"""Definitions: grids written down as plain data, complete: nothing in them refers to a file."""

from typing import TYPE_CHECKING

from grids.entries.entry import define_once

if TYPE_CHECKING:
    from grids.grid import Grid


def define_grid(grid: "Grid") -> dict[str, object]:
    """The spec of a grid, with the entries that it names spelled out."""
    # As the user wrote it: generators of axes stay generators, and what was left out stays out.
    plain = grid.spec.model_dump(mode="json", exclude_unset=True)
    plain["axes"] |= {
        "model": [each.definition() for each in grid.models],
        "dataset": [each.definition() for each in grid.datasets],
        "system": [each.definition() for each in grid.systems],
        "strategy": [each.label for each in grid.strategies],
    }
    plain["oracle"] = grid.spec.oracle
    if grid.spec.oracle == "paper":
        plain["conventions"] = grid.spec.conventions
    plain["calibration"] = define_once(grid.calibrations) or "none"
    if grid.convergences:
        plain["convergence"] = define_once(grid.convergences)
    if grid.has_placed:
        from grids.workloads import define_placements

        plain["placements"] = define_placements(
            grid.labels, grid.fitting, grid.strategies, grid.axes["batch"], grid.workload
        )
    return plain
