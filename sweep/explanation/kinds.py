"""Choose how a configuration is explained: by layers, or by blocks. No other module does."""

from collections.abc import Mapping

from paradl.grids.grid import Grid, Index
from paradl.kernels.configuration.case import Case
from paradl.sweep.answers.mapping import Row
from paradl.sweep.cells.selection import locate_row
from paradl.sweep.configurations.layout_cells import find_cell
from paradl.sweep.configurations.row_cases import build_row_case
from paradl.sweep.explanation import blocks, group_memory
from paradl.sweep.explanation.formulas import WorkFacts
from paradl.sweep.explanation.group_facts import find_group_facts


def find_facts(grid: Grid, case: Case, predicted: Row) -> WorkFacts:
    """Find the facts of the one configuration of a grid. predicted: the answer for it."""
    find = blocks.find_block_facts if case.of_blocks else find_group_facts
    return find(grid, case, predicted)


def measure_parts(grid: Grid, case: Case, index: Index) -> tuple[dict[str, float], int | None]:
    """Measure the memory of the fullest PE by part [B], and the most samples per replica that fit:
    0 if none do; None where any number does, and for layouts.
    """
    if case.of_blocks:
        cell = find_cell(grid, case, index)
        return blocks.measure_parts(cell.net, cell.layout, cell.training), None
    return group_memory.measure_parts(grid, case, index[2])


def measure_row_parts(grid: Grid, row: Mapping[str, object]) -> dict[str, float]:
    """Measure the memory of the fullest PE of a row's cell by part [B]."""
    parts, _ = measure_parts(grid, build_row_case(grid, row), locate_row(grid, row))
    return parts
