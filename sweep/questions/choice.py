"""Choice: the one group of those among which `group=best` chose."""

from collections.abc import Mapping
from dataclasses import replace

from grids.grid import Grid, Index
from grids.inputs.problem import Problem
from grids.models.layers import Floats


def with_group(
    grid: Grid, index: Index, group: float, axes: Mapping[str, Floats] | None = None
) -> Problem | None:
    """The problem at `index` without alternatives: `best` is replaced by the chosen `group` [PEs].

    As `grid.problem` gives it for every other strategy; None where the samples do not fit.
    """
    strategy = grid.strategies[index[3]]
    if strategy.group == "best":
        strategy = replace(strategy, group=int(group))
    return grid.problem(index, axes, strategy)
