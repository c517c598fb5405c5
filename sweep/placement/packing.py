"""Whether a graph fits the memory of its devices, and of how many it would."""

import math
from dataclasses import dataclass, replace

import numpy as np

from sweep.placement.highs import Clock, Highs
from sweep.placement.problem import Placement, Problem
from sweep.placement.rows import Rows


@dataclass(frozen=True)
class Packing:
    """A placement that fits, None: none is known; impossible: it is proven that there is none."""

    placement: Placement | None
    impossible: bool = False


def pack(problem: Problem, highs: Highs, left: Clock) -> Packing:
    """A placement that fits, whatever its time."""
    in_turn = _fill_in_turn(problem)
    if in_turn is not None:
        return Packing(in_turn)
    if problem.held.sum() > problem.room * problem.devices:
        return Packing(None, impossible=True)
    rows = Rows()
    x = add_placement(rows, problem)
    number_devices(rows, x)
    add_memory(rows, x, problem)
    solution = highs.solve(rows, left())
    if solution.values is None:
        return Packing(None, solution.infeasible)
    flags = np.array([solution.values[row] for row in x])
    placement = tuple(np.argmax(flags, axis=1).tolist())
    return Packing(placement if problem.fits(placement) else None)


def count_devices(problem: Problem, highs: Highs, left: Clock) -> int | None:
    """The fewest devices that the graph fits; None: not known in the time that is left."""
    devices = max(1, math.ceil(float(problem.held.sum()) / problem.room))
    while True:
        delays = np.zeros((len(problem.tensors), devices, devices))
        packing = pack(replace(problem, delays=delays), highs, left)
        if packing.placement is not None:
            return devices
        if not packing.impossible:
            return None
        devices += 1


def add_placement(rows: Rows, problem: Problem) -> list[list[int]]:
    """Flags, operators by devices: each operator is on one device."""
    x = [[rows.add_flag() for _ in range(problem.devices)] for _ in range(problem.operators)]
    for row in x:
        rows.add_row(dict.fromkeys(row, 1.0), 1.0, 1.0)
    return x


def number_devices(rows: Rows, x: list[list[int]]) -> None:
    """Devices that are alike have numbers in the order in which operators first use them."""
    for operator, row in enumerate(x):
        for device in range(1, len(row)):
            earlier = {x[each][device - 1]: -1.0 for each in range(operator)}
            rows.add_row({row[device]: 1.0} | earlier, high=0.0)


def add_memory(rows: Rows, x: list[list[int]], problem: Problem) -> None:
    """What each device holds, and what it is sent, has room on it."""
    for device in range(problem.devices):
        held = (problem.held / problem.room).tolist()
        terms = {row[device]: each for row, each in zip(x, held, strict=True)}
        for tensor in problem.tensors:
            sent = rows.add_variable(0.0, 1.0)
            for taker in tensor.takers:
                there = {x[taker][device]: -1.0, x[tensor.maker][device]: 1.0}
                rows.add_row({sent: 1.0} | there, low=0.0)
            terms[sent] = tensor.bytes / problem.room
        rows.add_row(terms, high=1.0)


def _fill_in_turn(problem: Problem) -> Placement | None:
    """Operators in their order, each device until it is full; None: that does not fit."""
    placement: list[int] = []
    device, used = 0, 0.0
    for held in problem.held.tolist():
        if used + held > problem.room:
            device, used = device + 1, 0.0
        used += held
        placement.append(device)
    fits = device < problem.devices and problem.fits(tuple(placement))
    return tuple(placement) if fits else None
