"""Needs: the value of one parameter that meets a goal, or why no value does.

The parallel efficiency of a strategy is followed along a bandwidth, a latency or another continuous
parameter, and the value that meets the goal is refined to a relative 1e-9. The machine oracle adds
the percentiles of that value over draws of uncertain parameters.
"""

from dataclasses import dataclass, replace

import numpy as np

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Index
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import format_quantity, parse_quantity
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.numbers import find_ends, number, pick_ends
from paradl.sweep.answers.reasons import list_reasons
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import NeedFields, NeedRanges, NeedRow
from paradl.sweep.boundaries.fits import Cell, find_fits
from paradl.sweep.boundaries.rejection import MOST_SAMPLES, find_batch
from paradl.sweep.boundaries.roots import ROUNDS, close_in, find_last, span_values
from paradl.sweep.cells.selection import Selection, join_selection
from paradl.sweep.cells.source import Source, open_space
from paradl.sweep.cells.space import CellLabels, Space, look_up_capacity, write_cell
from paradl.sweep.configurations.degrees import write_layouts
from paradl.sweep.configurations.fitting import find_needed
from paradl.sweep.configurations.row_cases import UPGRADABLE, answer_expected, read_value
from paradl.sweep.uncertainty.draws import draw_times

# Values are tried up to this factor from the machine's; beyond it, times no longer change.
FAR = 1e6
# Most cells of a strategy, which are evaluated one by one.
MOST_CELLS = 256
NO_RANGES: NeedRanges = {
    "needed_p10": None,
    "needed_p90": None,
    "met_probability": None,
    "efficiency_p10": None,
    "efficiency_p90": None,
}
# The roots of all draws are refined together by this many steps and rounds, then interpolated.
DRAWN_STEPS, DRAWN_ROUNDS = 120, 2
LATENCIES = ("intra_latency", "inter_latency", "staging_latency")


def list_needs(
    cube: Source,
    parameter: str,
    selection: Selection | None = None,
    *,
    efficiency: float | str | None = None,
    **axes: object,
) -> list[NeedRow]:
    """One row for each cell of the slice: the value of a parameter that it needs.

    parameter: `memory_capacity` [B], the least that fits; `batch`, the largest that fits; or a
    continuous parameter, such as `inter_bandwidth`, whose needed value gives a parallel
    `efficiency`. An axis of the parameter itself with several values is ignored.

    The present and the needed value in SI units, and the `reason` if none suffices: the best
    reachable efficiency and the bottleneck there. A continuous parameter and the machine oracle add
    percentiles over draws of uncertain parameters, None if the goal is out of reach or met by any
    value. InputError: an unknown parameter, an efficiency not above 0 and at most 1.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> cell = {"strategy": "data", "pe": 64}
    >>> row = paradl.needs(ds, "inter_bandwidth", cell, efficiency=0.5).iloc[0]
    >>> round(row["needed"] / row["own"], 2)
    3.34
    """
    selection = join_selection(selection, axes)
    known = ("memory_capacity", "batch", *UPGRADABLE)
    if parameter not in known:
        raise InputError.unknown("need", parameter, known, where="need")
    if efficiency is not None:
        efficiency = parse_quantity(efficiency, "1", "efficiency", "80%")
    if parameter in UPGRADABLE and (efficiency is None or not 0 < efficiency <= 1):
        raise InputError(
            f"expected the efficiency for which {parameter} is needed, more than 0 and at most 1, "
            f"got {'none' if efficiency is None else efficiency}",
            where="efficiency",
            advice="for 80 % give 0.8",
        )
    space = open_space(cube, selection).ask_intervals()
    # Rows would repeat for each of its values, although it is what is sought.
    if parameter in space.axes and space.axes[parameter].size > 1:
        others = {name: values for name, values in space.axes.items() if name != parameter}
        space = replace(space, axes=others)
    space.expect_few(MOST_CELLS)
    rows: list[NeedRow] = []
    for index in space.list_indices():
        for cell in space.list_cells():
            if parameter == "memory_capacity":
                need = _need_memory(space, index, cell)
            elif parameter == "batch":
                need = _need_batch(space, index, cell)
            else:
                # The check above refuses these parameters without an efficiency.
                need = _need_value(Scaling(space, index, cell, parameter), efficiency or 1.0)
            place: CellLabels = {**space.name(index), **write_cell(cell)}
            rows.append({**place, "parameter": parameter, **need})
    return write_layouts(space.grid, complete_rows(space, rows))


needs = tabulate("needs", list_needs)


def _write_need(
    present: float | None,
    needed: float | None,
    reason: str | None,
    ranges: NeedRanges | None = None,
) -> NeedFields:
    return {"own": present, "needed": needed, "reason": reason, **(ranges or NeedRanges())}


def _need_memory(space: Space, index: Index, cell: Cell) -> NeedFields:
    """Least memory of a PE [B] with which a cell fits."""
    fit = find_fits(space.grid, index, {name: np.array([value]) for name, value in cell.items()})
    needed = find_needed(space.grid, index, cell, float(fit.memory.item()))
    others = list_reasons(fit.limit.item() & ~Limit.MEMORY)
    present = look_up_capacity(space.grid, index, cell)
    if others:  # limits that no memory lifts
        return _write_need(present, None, f"never: {', '.join(others)}")
    return _write_need(present, needed, None)


def _need_batch(space: Space, index: Index, cell: Cell) -> NeedFields:
    """Largest batch that fits, whatever that of the cell."""
    # The search begins at the batch of a cell, and first looks below it.
    largest = {**cell, "batch": float(MOST_SAMPLES)}
    batch = find_batch(space.grid, index, {name: largest[name] for name in space.grid.axes})
    present = int(cell["batch"]) if "batch" in cell else None
    if batch and 2 * batch > MOST_SAMPLES:
        # Most pipelines keep no more micro-batches in memory than they have stages.
        return _write_need(present, None, "any: more samples take no more memory")
    return _write_need(present, batch, None if batch else "never: no batch fits")


@dataclass(frozen=True)
class Scaling:
    """The parallel efficiency of one cell along a continuous parameter."""

    space: Space
    index: Index
    cell: Cell
    name: str

    def build(self, values: Floats, alone: bool = False) -> Case:
        """The case with each value of the parameter; alone: of one PE."""
        pe = {"pe": 1.0} if alone else {}
        strategy = self.space.grid.find_alone(self.index) if alone else None
        return self.space.build_case(self.index, {**self.cell, self.name: values, **pe}, strategy)

    def find_efficiencies(self, values: Floats) -> Floats:
        """The parallel efficiency with each value."""
        serial, parallel = (
            np.broadcast_to(np.ravel(answer.compute + answer.communication), values.shape)
            for answer in (answer_expected(self.build(values, alone)) for alone in (True, False))
        )
        efficiencies: Floats = serial / parallel / self.cell["pe"]
        return efficiencies

    def draw_efficiencies(self, values: Floats) -> Floats:
        """The parallel efficiency [value, draw]."""
        serial, parallel = (
            np.broadcast_to(times.reshape(-1, DRAWS), (values.size, DRAWS))
            for times in (draw_times(self.build(values, alone)) for alone in (True, False))
        )
        efficiencies: Floats = serial / parallel / self.cell["pe"]
        return efficiencies

    def list_last_terms(self, values: Floats) -> dict[str, float]:
        """The terms at the last value [s], but for the work itself."""
        answer = answer_expected(self.build(values))
        return {
            term: float(np.broadcast_to(np.ravel(seconds), values.shape)[-1])
            for term, seconds in vars(answer.terms).items()
            if EVERY_TERM[term].part != "hidden" and EVERY_TERM[term].kind != "work"
        }


def _need_value(scaling: Scaling, goal: float) -> NeedFields:
    """Value of a continuous parameter with which the efficiency reaches a goal."""
    space, cell, name = scaling.space, scaling.cell, scaling.name
    case = space.build_case(scaling.index, cell)
    # The machine has one value, whatever the strategy; layouts of transformers keep none of it.
    alone = space.build_case(scaling.index, cell, Strategy("serial"))
    present = float(cell[name]) if name in cell else read_value(alone, name)
    ranges: NeedRanges = {} if space.grid.spec.oracle == "paper" else NO_RANGES
    reasons = list_reasons(int(number(answer_expected(case).limit)))
    if reasons:
        return _write_need(present, None, f"never: {', '.join(reasons)}", ranges)
    if not 0 < present < np.inf:
        return _write_need(None, None, f"this system has no {name}", ranges)
    values = span_values(name, present / FAR, present * FAR)
    reached = scaling.find_efficiencies(values)
    if reached[0] > reached[-1]:  # less is better, as for a latency
        values, reached = values[::-1], reached[::-1]
    if case.uncertainty is not None:
        ranges = _find_ranges(scaling, values, goal)
    if reached[-1] < goal:
        never = _explain_never(scaling, values, reached[-1])
        return _write_need(present, None, never, ranges)
    below = np.flatnonzero(reached < goal)
    if not below.size:
        return _write_need(present, None, "any value will do", ranges)
    # From here on the goal is met by every better value.
    low, high = values[below[-1]], values[below[-1] + 1]
    needed = close_in(lambda tried: scaling.find_efficiencies(tried) >= goal, low, high, ROUNDS - 1)
    return _write_need(present, needed, None, ranges)


def _explain_never(scaling: Scaling, values: Floats, best: float) -> str:
    """Reason with the best reachable efficiency and the bottleneck there."""
    terms = scaling.list_last_terms(values)
    largest = max(terms, key=terms.__getitem__)
    # If most of the bottleneck vanishes without latencies, it was start-ups.
    quick = {name: 0.0 for name in LATENCIES if name != scaling.name}
    without = replace(scaling, cell={**scaling.cell, **quick}).list_last_terms(values)
    if scaling.name not in LATENCIES and without[largest] < terms[largest] / 2:
        largest = f"start-ups of {largest}"
    end = format_quantity(float(values[-1]), PARAMETERS[scaling.name].unit)
    return f"never: {best:.0%} at best, with {end}; bottleneck: {largest}"


def _find_ranges(scaling: Scaling, values: Floats, goal: float) -> NeedRanges:
    """Find percentiles over draws of uncertain parameters. values: from the worst to the best."""
    reached = scaling.draw_efficiencies(values)
    best, is_met = reached[-1], reached[-1] >= goal
    for _ in range(DRAWN_ROUNDS):
        # The needs of all draws lie between these positions.
        last = np.maximum(find_last(reached[:, is_met] < goal), 0)
        if not last.size:
            break
        low, high = int(last.min()), min(int(last.max()) + 1, len(reached) - 1)
        if low == high:
            break
        values = np.geomspace(values[low], values[high], DRAWN_STEPS + 1)
        reached = scaling.draw_efficiencies(values)
    # A draw whose goal no value meets needs more than any value; for a latency, less than 0.
    beyond, anything = (np.inf, 0.0) if values[-1] > values[0] else (0.0, np.inf)
    needed = np.where((reached >= goal).all(axis=0), anything, _find_roots(values, reached, goal))
    lowest, highest = (
        value if 0 < value < np.inf else None
        for value in pick_ends(np.where(is_met, needed, beyond), float)
    )
    least, most = find_ends(best)
    return {
        "needed_p10": lowest,
        "needed_p90": highest,
        "met_probability": float(is_met.mean()),
        "efficiency_p10": least,
        "efficiency_p90": most,
    }


def _find_roots(values: Floats, reached: Floats, goal: float) -> Floats:
    """Worst value from which each draw reaches the goal, interpolated in logarithms [draw]."""
    last = find_last(reached < goal)
    at = np.clip(last, 0, len(values) - 2)[None]
    first, second = (np.log(np.take_along_axis(reached, n, 0)[0]) for n in (at, at + 1))
    low, high = np.log(values[at[0]]), np.log(values[at[0] + 1])
    with np.errstate(all="ignore"):  # of draws without a root, which the next lines replace
        roots = np.exp(low + (high - low) * (np.log(goal) - first) / (second - first))
    roots = np.where(last + 1 < values.size, roots, values[-1])
    roots[last < 0] = values[0]
    return np.asarray(roots, float)
