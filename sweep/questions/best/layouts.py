"""The best layouts of a design space, each as a strategy of its own, and why others are none."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.entries.layout_words import write_layout
from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.case import find_space
from paradl.grids.inputs.layouts import LayoutSpace
from paradl.grids.inputs.machine import Machine
from paradl.grids.inputs.values import RowValues
from paradl.kernels.arrays import Cells, use_numpy
from paradl.kernels.names.arrays import Integers
from paradl.kernels.oracle.answer import answer_case
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.search.ranking import Ranked, Tally
from paradl.kernels.work.layouts import Layouts
from paradl.sweep.answers.objectives import Aim
from paradl.sweep.answers.types.questions import LoserRow
from paradl.sweep.cells.space import Space, take_cell, write_cell
from paradl.sweep.configurations.layout_cells import find_cell
from paradl.sweep.questions.best.picks import Pick, PickedCell

if TYPE_CHECKING:
    from paradl.sweep.boundaries.deadlines import Deadline

FASTEST = Aim()
# Layouts of which a deadline is asked together.
TOGETHER = 256
Place = tuple[str, str, str]  # model, data set and system


@dataclass(frozen=True)
class FoundLayouts:
    """The best layouts of a strategy that leaves them open, in one place.

    layouts: all of them. best: the best, with the cell of each. strategies: the same in words.
    """

    place: Space
    index: Index
    layouts: LayoutSpace
    best: Ranked
    strategies: tuple[Strategy, ...]

    def list_picks(self, aim: Aim, draws: int) -> Iterator[Pick]:
        """Yield what `pick_strategies` does, with the layouts and the spreads of their times."""
        labels, axes, grid = self.place.name(self.index), self.place.axes, self.place.grid
        trains = aim.trains(grid, labels["model"], labels["dataset"])
        # All at once: ten layouts of Llama 2 70B take 0.1 instead of 0.3 s of CPU (2026-11).
        case = self.layouts.build_rows(self.best, draws)
        answer = answer_case(case if trains else replace(case, training=None))
        # As `predict` has it: an epoch over its iterations may differ in the last digit.
        with use_numpy():
            seconds = time_iteration(case)
        for n, strategy in enumerate(self.strategies):
            # Choices come first; of parameters that layouts do not depend on, the first value.
            at = np.unravel_index(int(self.best.cell[n]), self.layouts.shape)[-len(axes) :]
            cell = write_cell(take_cell(axes, map(int, at)))
            alone = self.layouts.build_rows(self.best.take(np.array([n])), 0)
            layout = replace(
                find_cell(grid, alone, self.index),
                strategy=strategy,
                seconds=(_take(seconds.compute, n), _take(seconds.communication, n)),
            )
            of_epoch = answer.spread.total if answer.spread else None
            spread = of_epoch if answer.train_spread is None else answer.train_spread
            found = PickedCell(
                axes=cell,
                comp_time=_take_single(answer.compute, n),
                comm_time=_take_single(answer.communication, n),
                memory=_take_single(answer.memory, n),
                epochs=None if answer.epochs is None else _take_single(answer.epochs, n),
                layout=layout,
                spread=None if spread is None else _take(spread, n),
            )
            yield {**labels, "strategy": strategy.label}, found


def _take_single(values: Cells, n: int) -> float:
    """Take a number in single precision, as cells are stored: all questions have the same."""
    return float(np.float32(_take(values, n)))


def _take(values: Cells, n: int) -> float:
    """Take the number of a cell; cells may share one."""
    return float(np.ravel(values)[n if np.size(values) > 1 else 0])


@dataclass(frozen=True)
class BestLayouts:
    """Layouts of a space, as strategies of its grid; by place the reasons against others.

    others: labels of strategies that state their layouts, or have none that is feasible, by place.
    """

    grid: Grid
    found: list[FoundLayouts]
    others: dict[Place, set[str]]
    losers: dict[Place, list[LoserRow]]


def find_best_layouts(
    space: Space,
    most: int | None,
    aim: Aim = FASTEST,
    deadline: "Deadline | None" = None,
    *,
    fronts: bool = False,
) -> BestLayouts:
    """Replace strategies that leave layouts open by the best layouts of all cells of the slice.

    most: number per place and value of a machine's parameter; None: the best of each cell, or with
    `fronts` all that no other beats in both time and memory. deadline: only those that meet it. A
    strategy of which no layout is left stays as it is.
    """
    strategies: dict[Strategy, None] = {}
    best = BestLayouts(space.grid, [], {}, {})
    for index in space.list_indices():
        names, stated = space.name(index), space.grid.strategy(index)
        tally = Tally(room=_find_room(space.grid, index))
        is_open = stated.searched and stated.of_blocks
        found = [*_search(space, index, most, tally, aim, deadline, fronts)] if is_open else []
        best.found.extend(found)
        place = names["model"], names["dataset"], names["system"]
        others = best.others.setdefault(place, set())
        best.losers.setdefault(place, []).extend(_list_losers(tally))
        strategies |= {strategy: None for layouts in found for strategy in layouts.strategies}
        if not found:
            others.add(names["strategy"])
            strategies[space.grid.strategies[index[3]]] = None
    return replace(best, grid=replace(space.grid, strategies=tuple(strategies)))


def _find_room(grid: Grid, index: Index) -> float:
    """Find the share of a PE's memory up to which layouts fit."""
    values = RowValues({**grid.spec.parameters, "memory_capacity": 1.0})
    return Machine(grid.systems[index[2]]).find_room(values, of_blocks=True).item()


def _search(
    space: Space,
    index: Index,
    most: int | None,
    tally: Tally,
    aim: Aim,
    deadline: "Deadline | None",
    fronts: bool,
) -> Iterator[FoundLayouts]:
    """Yield the best layouts of a strategy that leaves them open, of each place with any."""
    for place in space.split_given():
        layouts = place.grid.build(find_space, index, place.axes, None)
        assert isinstance(layouts, LayoutSpace)  # its samples fit, and it has blocks
        of_cell = None if fronts else most or 1
        found = layouts.search(of_cell, tally, by_memory=aim.goal == "memory")
        if most:  # of all cells together
            if deadline:
                found = _keep_met(layouts, found, aim, deadline, most, space.grid.draws)
            found = found.pick_together(most, _count_pes(found, aim))
        if len(found.cell):
            words = (
                write_layout(columns, layouts.strategy.schedule)
                for columns in Layouts.from_rows(found.rows).to_names()
            )
            strategies = tuple(map(parse_strategy, words))
            yield FoundLayouts(place, index, layouts, found, strategies)


def _count_pes(found: Ranked, aim: Aim) -> Integers | int:
    """Count the PEs of each layout, if a time counts once for each of them."""
    return Layouts.from_rows(found.rows).pes if aim.counts_pes else 1


def _keep_met(
    layouts: LayoutSpace, found: Ranked, aim: Aim, deadline: "Deadline", most: int, draws: int
) -> Ranked:
    """Keep those that meet the deadline, until enough of the best are found."""
    found = found.take(np.flatnonzero(deadline.can_be_met(found.value)))
    if deadline.holds is None:
        return found
    order = np.argsort(found.value * _count_pes(found, aim), kind="stable")
    kept = found.take(order[:0])
    for some in np.split(order, range(TOGETHER, order.size, TOGETHER)):
        part = found.take(some)
        answer = answer_case(layouts.build_rows(part, draws))
        met = deadline.bound(np.broadcast_to(answer.train_time, some.shape), answer)
        kept = kept.join(part.take(np.flatnonzero(met <= deadline.seconds)))
        if kept.cell.size >= most:
            break
    return kept


def _list_losers(tally: Tally) -> list[LoserRow]:
    """List reasons that forbid candidates, the most frequent first, and what would help."""
    return [
        {"reason": reason, "layouts": count, "remedy": tally.remedies[reason]}
        for reason, count in tally.reasons.most_common()
        if count
    ]
