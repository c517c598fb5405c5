"""Names of configurations, layouts and limits, as a page's reader would write them."""

from collections.abc import Iterable, Mapping

from paradl.grids.grid import Grid
from paradl.sweep.cells.selection import locate_row
from paradl.sweep.configurations.degrees import name_layout, settle_known
from paradl.sweep.questions.limits import END

REASONS = {
    "memory": "does not fit the memory",
    "too_many_pes": "more PEs than it can use",
    "batch_too_small": "batch too small",
    "incompatible": "samples do not fit the network",
    "group_does_not_divide": "groups do not divide the PEs",
    "uneven": "parts of unequal size",
    "batch_exceeds_dataset": "batch larger than the data set",
    "unsupported": "not run by the named software",
    "too_slow": "misses the deadline",
    "machine_too_small": "machine too small",
    "no_convergence": "batch too large to converge",
    "does_not_divide": "degrees do not divide the network or the batch",
}


def write_reasons(limits: Iterable[str]) -> str:
    """Write the names of limits in words."""
    return ", ".join(REASONS[name] for name in limits)


def write_stop(forbidden_by: str) -> str:
    """Write in words what stops a strategy, as `list_limits` names it."""
    return END if forbidden_by == END else write_reasons(forbidden_by.split(", "))


def name_cell(grid: Grid, row: Mapping[str, object], chosen: Mapping[str, object]) -> str:
    """Name a cell's configuration: `data+filter:group=4`, or `tp8 pp4 dp16` of a transformer.

    chosen: group_size, degrees and segment_count where a strategy takes the best.
    """
    return (
        name_layout(grid, row) or settle_known(grid.strategy(locate_row(grid, row)), chosen).label
    )
