"""Needs: the value of one parameter that a goal takes, or why no value will do.

The efficiency of a strategy against a bandwidth, a latency or another continuous parameter, from
the machine's own value on towards the better end: closed in on to a relative 1e-9.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from grids.entries.parameters import PARAMETERS
from grids.entries.strategies import Strategy
from grids.grid import Index
from grids.models.layers import Floats
from grids.reading.errors import InputError, suggest_name
from grids.reading.units import format_quantity
from kernels.case import Case
from kernels.flags import Limit
from kernels.oracle import Answer, answer_case
from kernels.terms import list_terms
from sweep.answers.case_numbers import UPGRADABLE, number, read_value
from sweep.answers.fits import Cell, find_fits
from sweep.answers.reasons import list_reasons
from sweep.answers.rejection import find_batch, look_up_capacity
from sweep.answers.system_settings import add_software
from sweep.cells.design_space import MOST_BATCH
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cells.space import Space, open_space, write_axis
from sweep.questions.need_ranges import RANGES, find_need_ranges

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

# How far from the machine's own value a better one is sought: beyond, nothing changes any more.
FAR, STEPS, ROUNDS = 1e6, 240, 4
# Cells of a strategy that are asked about one by one.
MOST_CELLS = 256
LATENCIES = ("intra_latency", "inter_latency", "staging_latency")


def needs(
    cube: Source,
    parameter: str,
    selection: Selection | None = None,
    *,
    efficiency: float | None = None,
) -> "pd.DataFrame":
    """A row for each cell of the slice: the value of a parameter that it takes.

    parameter: `memory_capacity` [B] with which it fits; `batch`, the largest that fits; or a
    continuous one, such as `inter_bandwidth`, with which the parallel efficiency reaches a goal.
    Where the slice has several values of the parameter, these are no part of the cells.
    Columns: labels and axes, `own`: what the machine has, `needed`; `reason` where no value will
    do, with the efficiency that is reached at best and what binds there. Of a continuous one and
    the machine oracle, over draws of what is not known: `needed_p10`, `needed_p90`, None where the
    goal is beyond reach, `met_probability`: in what part of the draws some value will do;
    `efficiency_p10`, `efficiency_p90` of what is reached at best. InputError: no such parameter, an
    efficiency that is not more than 0 and at most 1.
    """
    import pandas as pd

    return pd.DataFrame(list_needs(cube, parameter, selection, efficiency=efficiency), dtype=object)


def list_needs(
    cube: Source,
    parameter: str,
    selection: Selection | None = None,
    *,
    efficiency: float | None = None,
) -> list[Row]:
    """The rows of `needs` as plain data."""
    known = ("memory_capacity", "batch", *UPGRADABLE)
    if parameter not in known:
        raise InputError(
            f"nothing is known of {parameter!r} as a need",
            where="need",
            advice=suggest_name(parameter, known),
        )
    if parameter in UPGRADABLE and (efficiency is None or not 0 < efficiency <= 1):
        raise InputError(
            f"expected more than 0 and at most 1, got {efficiency or 'none'}",
            where="efficiency",
            advice=f"what is {parameter} needed for? For 80 % give 0.8",
        )
    space = _drop_sought(open_space(cube, selection).ask_intervals(), parameter)
    space.expect_few(MOST_CELLS)
    rows = []
    for index in space.list_indices():
        for cell in space.list_cells():
            axes = {name: write_axis(name, value) for name, value in cell.items()}
            if parameter == "memory_capacity":
                answer = _need_memory(space, index, cell)
            elif parameter == "batch":
                answer = _need_batch(space, index, cell)
            else:
                answer = _need_value(space, index, cell, parameter, efficiency or 1.0)
            rows.append(space.name(index) | axes | {"parameter": parameter} | answer)
    return add_software(space.systems, rows)


def _drop_sought(space: Space, parameter: str) -> Space:
    """The space without the parameter's axis, if it has several values: it is what is sought."""
    if parameter not in space.axes or space.axes[parameter].size == 1:
        return space
    kept = {name: values for name, values in space.axes.items() if name != parameter}
    return replace(space, axes=kept)


def _need_memory(space: Space, index: Index, cell: Cell) -> Row:
    """The memory of a PE [B] with which a cell fits."""
    fit = find_fits(space.grid, index, {name: np.array([each]) for name, each in cell.items()})
    needed = float(fit.memory.item())
    others = list_reasons(fit.limit.item() & ~Limit.MEMORY)
    own = look_up_capacity(space.grid, index, cell)
    if others or not np.isfinite(needed):
        return {"own": own, "needed": None, "reason": f"never: {', '.join(others)}"}
    return {"own": own, "needed": needed, "reason": None}


def _need_batch(space: Space, index: Index, cell: dict[str, float]) -> Row:
    """The largest batch that fits, whatever the cell's is."""
    largest = cell | {"batch": float(MOST_BATCH)}
    batch = find_batch(space.grid, index, {name: largest[name] for name in space.grid.axes})
    reason = None if batch else "never: no batch fits"
    own = int(cell["batch"]) if "batch" in cell else None
    return {"own": own, "needed": batch, "reason": reason}


def _need_value(space: Space, index: Index, cell: Cell, name: str, goal: float) -> Row:
    """The value of a continuous parameter with which the efficiency reaches a goal."""
    case = space.grid.case(index, {axis: np.array([each]) for axis, each in cell.items()})
    assert case is not None  # its samples fit
    case = replace(case, uncertainty=None)
    own = float(cell[name]) if name in cell else read_value(case, name)
    nothing = {} if space.grid.spec.oracle == "paper" else dict.fromkeys(RANGES)
    reasons = list_reasons(int(number(answer_case(case).limit)))
    if reasons:
        reason = f"never: {', '.join(reasons)}"
        return {"own": own, "needed": None, "reason": reason} | nothing
    if not 0 < own < np.inf:
        reason = f"no {name} is given for this system"
        return {"own": None, "needed": None, "reason": reason} | nothing
    parameter = PARAMETERS[name]
    values = np.geomspace(max(own / FAR, parameter.low), min(own * FAR, parameter.high), STEPS + 1)
    reached = _find_efficiencies(space, index, cell, name, values)
    if reached[0] > reached[-1]:  # less of it is better, as of a latency
        values, reached = values[::-1], reached[::-1]
    row: Row = {"own": own, "needed": None, "reason": None}
    ranges = find_need_ranges(partial(_build, space, index, cell, name), values, goal, cell["pe"])
    if reached[-1] < goal:
        row["reason"] = _tell_never(space, index, cell, name, values)
    elif reached.min() >= goal:
        row["reason"] = "any value will do"
    else:
        row["needed"] = _close_in(space, index, cell, name, values, goal)
    return row | ranges


def _close_in(
    space: Space, index: Index, cell: Cell, name: str, values: Floats, goal: float
) -> float:
    """The worst value from which on the goal is reached, values being from worse to better."""
    for _ in range(ROUNDS):
        below = _find_efficiencies(space, index, cell, name, values) < goal
        last = int(np.flatnonzero(below)[-1]) if below.any() else 0
        values = np.geomspace(values[last], values[min(last + 1, values.size - 1)], STEPS + 1)
    return float(values[-1])


def _find_efficiencies(space: Space, index: Index, cell: Cell, name: str, values: Floats) -> Floats:
    """The parallel efficiency of a cell with each value of a parameter."""
    together = _answer(space, index, cell, name, values)
    alone = _answer(space, index, cell, name, values, Strategy("serial"))
    times = (np.ravel(each.compute + each.communication) for each in (alone, together))
    serial, parallel = (np.broadcast_to(each, values.shape) for each in times)
    efficiencies: Floats = serial / parallel / cell["pe"]
    return efficiencies


def _answer(
    space: Space,
    index: Index,
    cell: Cell,
    name: str,
    values: Floats,
    strategy: Strategy | None = None,
) -> Answer:
    """The oracle's answer for a cell with each value of a parameter."""
    case = _build(space, index, cell, name, values, strategy)
    return answer_case(replace(case, uncertainty=None))


def _build(
    space: Space,
    index: Index,
    cell: Cell,
    name: str,
    values: Floats,
    strategy: Strategy | None = None,
) -> Case:
    """The case of a cell with each value of a parameter; of one PE alone where it is serial."""
    given = {axis: np.array([each]) for axis, each in cell.items()} | {name: values}
    if strategy is not None:
        given["pe"] = np.ones(1)
    axes = {each: given[each] for each in PARAMETERS if each in given}
    case = space.grid.case(index, axes, strategy)
    assert case is not None  # its samples fit
    return case


def _tell_never(space: Space, index: Index, cell: Cell, name: str, values: Floats) -> str:
    """The best efficiency within reach, and its bottleneck there."""
    answer = _answer(space, index, cell, name, values)
    terms = _read_last_terms(answer, values)
    binds = max(terms, key=terms.__getitem__)
    # Without any start-ups: what then is gone were start-ups.
    quick = {**cell, **{each: 0.0 for each in LATENCIES if each != name}}
    without = _read_last_terms(_answer(space, index, quick, name, values), values)
    if name not in LATENCIES and without[binds] < terms[binds] / 2:
        binds = f"start-ups of {binds}"
    best = float(_find_efficiencies(space, index, cell, name, values)[-1])
    end = format_quantity(float(values[-1]), PARAMETERS[name].unit)
    return f"never: {best:.0%} at best, with {end}; bottleneck: {binds}"


def _read_last_terms(answer: Answer, values: Floats) -> dict[str, float]:
    """The terms at the last value, but for the work itself."""
    return {
        each: float(np.broadcast_to(np.ravel(getattr(answer.terms, each)), values.shape)[-1])
        for each in (*list_terms("compute"), *list_terms("communication"))
        if each != "forward_backward"
    }
