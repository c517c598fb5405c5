"""The best layouts of a design space, each as a strategy of its own, and why others are none."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from paradl.grids.entries.layout_words import write_layout
from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.case import find_space
from paradl.grids.inputs.layouts import LayoutSpace
from paradl.kernels.search.ranking import Ranked, Tally
from paradl.kernels.work.layouts import Layouts
from paradl.sweep.answers.types.questions import LoserRow
from paradl.sweep.cells.space import Space

Place = tuple[str, str, str]  # model, data set and system


@dataclass(frozen=True)
class BestLayouts:
    """Layouts of a space, as its strategies; by place their labels, and reasons against others."""

    grid: Grid
    labels: dict[Place, set[str]]
    losers: dict[Place, list[LoserRow]]


def find_best_layouts(space: Space, most: int | None, *, by_pe: bool = False) -> BestLayouts:
    """Replace strategies that leave layouts open by the best layouts of all cells of the slice.

    most: number per place and value of a machine's parameter; None: the fronts of time and memory
    of each cell. by_pe: best are those of the fewest PE-seconds. A strategy of which no layout is
    feasible stays as it is.
    """
    grid = space.grid
    strategies: dict[Strategy, None] = {}
    labels: dict[Place, set[str]] = {}
    losers: dict[Place, list[LoserRow]] = {}
    for index in space.list_indices():
        names, stated, tally = space.name(index), grid.strategy(index), Tally()
        is_open = stated.searched and stated.of_blocks
        found = [*_search(space, index, most, tally, by_pe=by_pe)] if is_open else []
        found = found or [grid.strategies[index[3]]]
        place = names["model"], names["dataset"], names["system"]
        strategies |= dict.fromkeys(found)
        labels.setdefault(place, set()).update(strategy.label for strategy in found)
        losers.setdefault(place, []).extend(_list_losers(tally))
    return BestLayouts(replace(grid, strategies=tuple(strategies)), labels, losers)


def _search(
    space: Space, index: Index, most: int | None, tally: Tally, *, by_pe: bool
) -> Iterator[Strategy]:
    """Yield the best layouts of a strategy that leaves them open."""
    for place in space.split_given():
        layouts = space.grid.build(find_space, index, place.axes, None)
        assert isinstance(layouts, LayoutSpace)  # its samples fit, and it has blocks
        found = layouts.search(most, tally)
        found = found.take(found.forbidden < 2)
        if most:  # of all cells together
            pes = Layouts.from_rows(found.rows).pes if by_pe else 1
            alike = np.zeros_like(found.cell)
            found = replace(found, cell=alike, value=found.value * pes).pick_best(most)
        yield from _write_strategies(found, layouts.strategy.schedule)


def _write_strategies(found: Ranked, schedule: str) -> Iterator[Strategy]:
    """Yield layouts as strategies in short words."""
    for columns in Layouts.from_rows(found.rows).to_names():
        yield parse_strategy(write_layout(columns, schedule))


def _list_losers(tally: Tally) -> list[LoserRow]:
    """List reasons that forbid candidates, the most frequent first, and what would help."""
    return [
        {"reason": reason, "layouts": count, "remedy": tally.remedies[reason]}
        for reason, count in tally.reasons.most_common()
        if count
    ]
