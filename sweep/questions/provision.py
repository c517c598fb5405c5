"""Provision: the fewest PEs that meet a deadline."""

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import Index
from paradl.grids.reading.units import format_quantity
from paradl.kernels.blocks.outputs import compute_outputs
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.objectives import Aim, Price, count_hours, look_up_price, read_epochs
from paradl.sweep.answers.reasons import write_commonest
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import ProvisionRow
from paradl.sweep.answers.types.words import CellPlaceOrNone, CostFields
from paradl.sweep.boundaries.deadlines import Deadline
from paradl.sweep.cells.selection import Selection, join_selection, write_place
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.cells.space import (
    CellLabels,
    Space,
    list_given,
    take_cell,
    write_axes,
    write_cell,
)
from paradl.sweep.configurations.degrees import (
    find_layout,
    list_degrees,
    list_no_degrees,
    write_layouts,
)
from paradl.sweep.configurations.fitting import find_memory_chance, require_fit

# PE counts whose times, and whose spreads, are computed together: few enough for numpy. All at
# once, and so compiled, ten strategies took 37 instead of 3.2 s of CPU (VGG-16 on ABCI, 2026-11).
TIMED, SPREAD = 32, 4
# PE counts of a slice whose layouts are all searched.
MOST_COUNTS = 64


def list_provisions(
    cube: Source,
    deadline: float | str,
    selection: Selection | None = None,
    *,
    epochs: float | None = None,
    price: Price = None,
    max_global_batch: int | None = None,
    holds: float | str | None = None,
    **axes: object,
) -> list[ProvisionRow]:
    """One row for each strategy in each place: the fewest PEs that meet a deadline, fewest first.

    deadline: seconds, or a text with a unit, such as "6 h". epochs: their number; None: those to
    the target, by the design space's convergence law. holds: required probability of meeting the
    deadline, and of fitting in memory, between 0 and 1; None: the expected time must meet it.

    Every whole number of PEs is tried up to the least count of the slice that meets the deadline
    (of layouts multiples of the largest power of two in a node, without a prime factor beyond 7),
    with all of the slice's batches, groups, segments and accumulated passes; each value of another
    axis, such as a bandwidth, has its own rows. `holds` of a row: probability of meeting the
    deadline (machine oracle); `reason`: why no count meets it. InputError: a deadline not above 0,
    unknown epochs, a probability not between 0 and 1.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> first = paradl.provision(ds, "6 h", epochs=90).iloc[0]
    >>> first["strategy"], first["pe"], round(first["train_time"] / 3600, 2)
    ('data', 21, 5.81)
    """
    selection = join_selection(selection, axes)
    if holds is not None:
        selection, cube = require_fit(open_source(cube), selection, holds)
    space = open_space(cube, selection, max_global_batch)
    space.expect_one_kind()
    epochs = read_epochs(epochs, space.grid)
    goal = Deadline.read(deadline, holds, space.grid.spec.oracle, epochs)
    aim = Aim("pe_hours", price)
    rows = [
        _find_fewest(part, index, goal, aim)
        for part in space.split_given()
        for index in part.list_indices()
    ]
    # Fewest PEs first, and strategies that meet it nowhere last.
    rows.sort(key=lambda row: (row["pe"] is None, row["pe"] or 0, row["train_time"] or 0))
    return write_layouts(space.grid, complete_rows(space, rows))


provision = tabulate("provision", list_provisions)


class Trainings:
    """Times of whole trainings [s] over PE counts and the other axes; NaN where forbidden.

    times: expected. bounds: not exceeded with the deadline's probability; equal to times without.
    """

    def __init__(self, space: Space, index: Index, pe: Floats, goal: Deadline) -> None:
        self.space, self.index = space, index
        self.goal, self.axes = goal, {**space.axes, "pe": pe}
        together = TIMED if goal.holds is None else SPREAD
        parts = [self._compute(space, index, some) for some in _split(pe, together)]
        columns = zip(*parts, strict=True)
        self.limit, self.memory, self.epochs, self.times, self.bounds = map(np.concatenate, columns)

    def _compute(
        self, space: Space, index: Index, pe: Floats
    ) -> tuple[NDArray[np.int64], Floats, Floats, Floats, Floats]:
        """Compute flags, memory, epochs, times and bounds at some PE counts."""
        by_law, axes = self.goal.epochs is None, {**self.axes, "pe": pe}
        names = ("comp_time", "comm_time", "memory", "limit", *(("epochs",) if by_law else ()))
        shape = tuple(values.size for values in axes.values())
        outputs = {
            name: np.broadcast_to(np.asarray(values), shape)
            for name, values in compute_outputs(space.build_case(index, axes), names=names).items()
        }
        limit = outputs["limit"].astype(np.int64)
        epochs = outputs["epochs"] if by_law else np.float64(self.goal.epochs)
        epoch_time = outputs["comp_time"].astype(float) + outputs["comm_time"]
        times = bounds = np.where((limit & FORBIDS) > 0, np.nan, epoch_time * epochs)
        if self.goal.holds is not None:
            answer = answer_case(space.ask_intervals().build_case(index, axes))
            bounds = self.goal.bound(times, answer)
        return limit, outputs["memory"], np.broadcast_to(epochs, shape), times, bounds

    def list_met(self) -> NDArray[np.bool_]:
        """Whether any cell meets the deadline, by PE count."""
        meets = self.bounds <= self.goal.seconds
        return np.asarray(meets.reshape(len(meets), -1).any(axis=1))

    def find_first(self) -> tuple[int, ...]:
        """Position of the fastest cell with the fewest PEs that meet the deadline."""
        fewest = int(np.argmax(self.list_met()))
        # Some cell with these PEs meets the deadline, so not all are NaN.
        quickest = np.unravel_index(int(np.nanargmin(self.bounds[fewest])), self.times.shape[1:])
        return (fewest, *map(int, quickest))

    def explain_miss(self) -> str:
        """Reason why no cell meets the deadline."""
        if np.isnan(self.times).all():
            return f"infeasible throughout ({write_commonest(self.limit)})"
        at = np.unravel_index(int(np.nanargmin(self.bounds)), self.times.shape)
        place, holds = write_place("pe", self.axes["pe"][at[0]]), self.goal.holds
        odds = "" if holds is None else f" with probability {holds:g}"
        layout = find_layout(self.space.grid, self.name_cell(map(int, at)))
        words = f" ({layout.words})" if layout else ""
        return f"at best {format_quantity(self.bounds[at], 's')}{odds}, on {place}{words}"

    def name_cell(self, at: Iterable[int]) -> CellLabels:
        """Labels and values of the cell at a position along each axis."""
        return {**self.space.name(self.index), **write_cell(take_cell(self.axes, at))}


def _find_fewest(space: Space, index: Index, goal: Deadline, aim: Aim) -> ProvisionRow:
    """Row of a strategy."""
    # Each count has layouts of its own to choose from, which is slow: only usual ones are tried.
    is_slow = space.grid.strategy(index).searched
    node = space.grid.systems[index[2]].pes_per_node
    step = node & -node if is_slow else 1  # 8 of nodes of 8, and of racks of 72
    slice_of_pe = space.axes["pe"]
    if is_slow and slice_of_pe.size > MOST_COUNTS:
        slice_of_pe = _keep_usual(slice_of_pe, step)
    rough = _find_first_met(space, index, slice_of_pe, goal)
    if rough is None:
        return _describe_miss(space, index, Trainings(space, index, slice_of_pe, goal), aim)
    # Counts between those of the slice may suffice: without a search try all up to the least that
    # does, else usual ones from the largest count of the slice that does not suffice.
    least = rough.axes["pe"][rough.find_first()[0]]
    below = slice_of_pe[slice_of_pe < least].max(initial=0) if is_slow else 0
    between = np.arange(below + 1, least)
    if is_slow:
        between = _keep_usual(between, step)
    fine = _find_first_met(space, index, between, goal) or rough
    return _describe_cell(space, fine, aim)


def _find_first_met(space: Space, index: Index, pe: Floats, goal: Deadline) -> Trainings | None:
    """Trainings at a few PE counts, the first that meet the deadline; None if none do."""
    if pe.size and goal.holds is not None:
        expected = Trainings(space, index, pe, replace(goal, holds=None))
        pe = pe[goal.can_be_met(expected.times).reshape(pe.size, -1).any(axis=1)]
    if not pe.size:
        return None
    # Four at a time without draws, too, VGG-16 on ABCI took 9.0 instead of 2.7 s (2026-11).
    together = TIMED if goal.holds is None else SPREAD
    parts = (Trainings(space, index, counts, goal) for counts in _split(pe, together))
    return next((part for part in parts if part.list_met().any()), None)


def _keep_usual(pe: Floats, step: int) -> Floats:
    """Keep multiples of `step` without a prime factor beyond 7, by which networks divide."""
    whole = pe[pe % step == 0]
    return np.array([count for count in whole if _is_smooth(int(count))], float)


def _is_smooth(number: int) -> bool:
    """True if a number has no prime factor beyond 7, the largest that layers of models have."""
    for factor in (2, 3, 5, 7):
        while number % factor == 0:
            number //= factor
    return number == 1


def _split(pe: Floats, together: int) -> list[Floats]:
    return np.split(pe, range(together, pe.size, together))


def _describe_cell(space: Space, trainings: Trainings, aim: Aim) -> ProvisionRow:
    """Row of the fastest cell with the fewest PEs: axes, degrees, time, cost and probability."""
    at = trainings.find_first()
    cell = trainings.name_cell(at)
    degrees = list_degrees(space.grid, cell)
    seconds = float(trainings.times[at])
    hours = count_hours(cell["pe"], seconds)
    price = look_up_price(aim.price, cell["system"])
    cost: CostFields = {} if price is None else {"cost": hours * price}
    return {
        **cell,
        **degrees,
        **cell,  # an axis may have the name of a degree
        "epochs": float(trainings.epochs[at]),
        "train_time": seconds,
        "pe_hours": hours,
        **cost,
        "holds": trainings.goal.find_chance(space.grid, {**cell, **degrees}, seconds),
        "fits": find_memory_chance(space.grid, trainings.index, cell, float(trainings.memory[at])),
        "reason": None,
    }


def _describe_miss(space: Space, index: Index, trainings: Trainings, aim: Aim) -> ProvisionRow:
    """Row of a strategy that meets the deadline at none of the slice's PE counts."""
    given = write_axes({name: space.axes[name][0] for name in list_given(space.grid, space.axes)})
    place = cast(CellPlaceOrNone, dict.fromkeys(trainings.axes) | given)
    cost: CostFields = {} if aim.price is None else {"cost": None}
    labels = space.name(index)
    return {
        **labels,
        **place,
        **list_no_degrees(space.grid, labels),
        **place,
        "epochs": None,
        "train_time": None,
        "pe_hours": None,
        **cost,
        "holds": None,
        "fits": None,
        "reason": trainings.explain_miss(),
    }
