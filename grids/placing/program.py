"""The mixed-integer program of a placement (formulas in docs/placement.md).

Variables; times are in thousandths of the serial time:

    x[i, d]     1 if operator i is on device d
    w[e]        time of the message of edge e, in either pass
    s[k, i]     start of i in pass k
    T[k]        length of pass k; the objective is their sum
    o[k, i, j]  1 if i runs before j in pass k, where both are on one device

To add a row: a method of `_Program`, and its formula in docs/placement.md. Test:
tests/grids/placing/test_solve.py, nothing beats the proven bound. Of its memory rows alone, `pack`
says whether a graph fits its devices, and how many would be enough.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from paradl.grids.placing.highs import IntegerProgram, solve_rows
from paradl.grids.placing.problem import Edge, Placement, Problem
from paradl.grids.placing.schedule import PlacementPlan, follow_starts, plan_placement
from paradl.kernels.names.arrays import Floats

# The serial step in units of the program: HiGHS has absolute tolerances, so times should be neither
# tiny nor huge.
UNITS = 1000.0


def improve_plan(problem: Problem, plan: PlacementPlan, nodes: int) -> tuple[PlacementPlan, float]:
    """Return the better of a plan and the program's, and a lower bound of all plans [s]."""
    program = _Program(problem, plan.time)
    solution = solve_rows(program.rows, nodes)
    if solution.infeasible:
        # The program only admits steps at most as long as the known plan: none exists.
        return plan, plan.time
    bound = 0.0 if solution.bound is None else min(solution.bound * program.unit, plan.time)
    if solution.values is None:
        return plan, bound
    placement, starts = program.read(solution.values)
    if problem.fits(placement):  # HiGHS tolerates small violations
        others = plan_placement(problem, placement), follow_starts(problem, placement, starts)
        plan = min(plan, *others, key=lambda other: other.time)
    return plan, bound


class _Program:
    """The program of a problem; upper [s]: a step time known to be possible."""

    def __init__(self, problem: Problem, upper: float) -> None:
        self.problem = problem
        self.unit = problem.serial / UNITS or 1.0
        self.durations = problem.durations / self.unit
        self.heads, self.tails = problem.heads / self.unit, problem.tails / self.unit
        # A pass takes at most what the other pass leaves of the best known step.
        least = self.tails.max(axis=1)
        # The slack keeps the known step feasible in spite of rounding.
        self.most = upper / self.unit * (1 + 1e-9) - (least.sum() - least)
        self.rows = IntegerProgram()
        self.x = place_operators(self.rows, problem)
        self.w = [self._time_message(edge) for edge in problem.edges]
        self.s = [self._time_pass(k) for k in range(len(self.durations))]
        if np.isfinite(problem.room):
            add_memory(self.rows, self.x, problem)

    def read(self, values: Floats) -> tuple[Placement, Floats]:
        """Return the device of each operator, and the starts [s, passes by n]."""
        return read_placement(values, self.x), values[np.array(self.s)] * self.unit

    def _time_message(self, edge: Edge) -> int:
        """Add w: 0 on one device, else the tensor's time between the two."""
        rows, makers, takers = self.rows, self.x[edge.maker], self.x[edge.taker]
        delays = np.array(edge.delays) / self.unit
        # One w serves both passes, since links are symmetric.
        w = rows.add_variable(0.0, float(delays.max()))
        for maker, delays_from in zip(makers, delays.tolist(), strict=True):
            # w >= sum_e c(d, e) x_je where x_md = 1: the product of two choices, linearised.
            longest = max(delays_from)
            arriving = {taker: -delay for taker, delay in zip(takers, delays_from, strict=True)}
            rows.add_row({w: 1.0, maker: -longest} | arriving, low=-longest)
        return w

    def _time_pass(self, k: int) -> list[int]:
        """Add s, after an operator's inputs, and T, after all operators and any device's work."""
        rows, problem, durations = self.rows, self.problem, self.durations[k].tolist()
        total = rows.add_variable(float(self.tails[k].max()), float(self.most[k]), cost=1.0)
        starts = [
            rows.add_variable(float(head), float(max(head, self.most[k] - tail)))
            for head, tail in zip(self.heads[k], self.tails[k], strict=True)
        ]
        for edge, w in zip(problem.edges, self.w, strict=True):
            terms = {starts[edge.taker]: 1.0, starts[edge.maker]: -1.0, w: -1.0}
            rows.add_row(terms, low=durations[edge.maker])
        for start, duration in zip(starts, durations, strict=True):
            rows.add_row({total: 1.0, start: -1.0}, low=duration)
        for flags in zip(*self.x, strict=True):
            work = {flag: -duration for flag, duration in zip(flags, durations, strict=True)}
            rows.add_row({total: 1.0} | work, low=0.0)
        # Operators that depend on each other never overlap.
        for i, j in problem.list_rivals():
            self._exclude(k, starts, i, j)
        return starts

    def _exclude(self, k: int, starts: list[int], i: int, j: int) -> None:
        """Keep two operators from overlapping in a pass if they share a device."""
        rows, durations = self.rows, self.durations[k]
        first, second = rows.add_flag(), rows.add_flag()
        for flag_i, flag_j in zip(self.x[i], self.x[j], strict=True):
            rows.add_row({first: 1.0, second: 1.0, flag_i: -1.0, flag_j: -1.0}, low=-1.0)
        for flag, one, other in ((first, i, j), (second, j, i)):
            # Either it begins after this one, or the row only repeats its earliest start.
            slack = self.most[k] - self.tails[k, one] + durations[one]
            slack = max(0.0, slack - self.heads[k, other])
            terms = {starts[other]: 1.0, starts[one]: -1.0, flag: -slack}
            rows.add_row(terms, low=durations[one] - slack)


def place_operators(rows: IntegerProgram, problem: Problem) -> list[list[int]]:
    """Add flags [operators][devices], with each operator on one device."""
    x = [[rows.add_flag() for _ in range(problem.devices)] for _ in range(problem.operators)]
    for flags in x:
        rows.add_row(dict.fromkeys(flags, 1.0), 1.0, 1.0)
    return x


def add_memory(rows: IntegerProgram, x: list[list[int]], problem: Problem) -> None:
    """Limit each device's memory: held bytes plus each received tensor once."""
    for device in range(problem.devices):
        # As shares of the room: bytes would dwarf the flags.
        held = (problem.held / problem.room).tolist()
        terms = {flags[device]: part for flags, part in zip(x, held, strict=True)}
        for tensor in problem.tensors:
            sent = rows.add_variable(0.0, 1.0)
            for taker in tensor.takers:
                flags = {x[taker][device]: -1.0, x[tensor.maker][device]: 1.0}
                rows.add_row({sent: 1.0} | flags, low=0.0)
            terms[sent] = tensor.bytes / problem.room
        rows.add_row(terms, high=1.0)


def read_placement(values: Floats, x: list[list[int]]) -> Placement:
    """Return the device of each operator."""
    return tuple(np.argmax(values[np.array(x)], axis=1).tolist())


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
