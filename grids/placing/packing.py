"""Whether a graph fits the memory of its devices, and how many devices would be enough."""

import math
from dataclasses import dataclass, replace

import numpy as np

from paradl.grids.placing.highs import IntegerProgram, solve_rows
from paradl.grids.placing.problem import Placement, Problem
from paradl.grids.placing.program import add_memory, place_operators, read_placement


@dataclass(frozen=True)
class Packing:
    """A placement that fits, or None; impossible: proven that none exists."""

    placement: Placement | None
    impossible: bool = False


def pack(problem: Problem, nodes: int) -> Packing:
    """Find a placement that fits, whatever its time."""
    # The cheap answers first: in operator order, or too many bytes for one device, or for all.
    in_turn = _fill_in_turn(problem)
    if in_turn is not None:
        return Packing(in_turn)
    room = problem.room
    if problem.least_memory.max() > room or problem.held.sum() > room * problem.devices:
        return Packing(None, impossible=True)
    rows = IntegerProgram()
    x = place_operators(rows, problem)
    _number_devices(rows, x)
    add_memory(rows, x, problem)
    solution = solve_rows(rows, nodes)
    if solution.values is None:
        return Packing(None, solution.infeasible)
    placement = read_placement(solution.values, x)
    # HiGHS tolerates small violations, so its placement is checked.
    return Packing(placement if problem.fits(placement) else None)


def count_devices(problem: Problem, nodes: int) -> int | None:
    """Return the fewest devices that the graph fits; None if `nodes` of a program do not tell, or
    if no number is enough.
    """
    least = max(1, math.ceil(float(problem.held.sum()) / problem.room))
    # More than one for each operator would be empty.
    for devices in range(least, problem.operators + 1):
        # Only memory matters, so messages take no time.
        delays = np.zeros((len(problem.tensors), devices, devices))
        packing = pack(replace(problem, delays=delays), nodes)
        if packing.placement is not None:
            return devices
        if not packing.impossible:
            break
    return None


def _number_devices(rows: IntegerProgram, x: list[list[int]]) -> None:
    """Number identical devices in the order of their first operators.

    Without links all devices are alike. This breaks the symmetry; otherwise infeasibility would be
    proven again for every permutation of devices.
    """
    for operator, flags in enumerate(x):
        for device in range(1, len(flags)):
            earlier = {x[before][device - 1]: -1.0 for before in range(operator)}
            rows.add_row({flags[device]: 1.0} | earlier, high=0.0)


def _fill_in_turn(problem: Problem) -> Placement | None:
    """Fill the devices one after another in operator order; None if that does not fit."""
    placement: list[int] = []
    device, used = 0, 0.0
    for held in problem.held.tolist():
        if used + held > problem.room:
            device, used = device + 1, 0.0
        used += held
        placement.append(device)
    fits = device < problem.devices and problem.fits(tuple(placement))
    return tuple(placement) if fits else None
