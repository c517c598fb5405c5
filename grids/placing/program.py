"""The mixed-integer program of a placement (docs/placement.md has it with its formulas).

Variables, with times in units of a thousandth of the serial time:

    x[i, d]     1 if operator i is on device d
    w[e]        what the message of edge e takes, in either pass
    s[k, i]     when i begins in pass k
    T[k]        how long pass k takes: the objective is their sum
    o[k, i, j]  1 if i is before j in pass k, of two that a device must not run at once

Two operators exclude each other only where a row says so, and few pairs need one: the program is
solved without, and those that overlap on a device join it, until none does (`solve_exactly`).
"""

from itertools import combinations, product

import numpy as np

from grids.placing.packing import add_memory, add_placement, number_devices
from grids.placing.problem import Edge, Placement, Problem
from grids.placing.rows import Floats, Rows
from grids.placing.search import Fixed
from grids.placing.symmetry import Symmetry

Pair = tuple[int, int, int]  # pass, and two operators that could run at once
UNITS = 1000.0
# Windows of each pass in which the work of a device has to fit.
MOST_WINDOWS = 40


class Program:
    """The program of a problem; `rows` is what a solver takes.

    fixed: operators whose device is given. upper [s]: a step's time that is known to be possible.
    """

    def __init__(self, problem: Problem, fixed: Fixed, symmetry: Symmetry, upper: float) -> None:
        self.problem, self.symmetry, self.fixed = problem, symmetry, fixed
        self.unit = problem.serial / UNITS or 1.0
        self.durations = problem.durations / self.unit
        self.heads, self.tails = problem.heads / self.unit, problem.tails / self.unit
        # A pass takes at most what the others leave of the best step that is known.
        least = self.tails.max(axis=1)
        self.most = upper / self.unit * (1 + 1e-9) - (least.sum() - least)
        self.rows = Rows()
        self._place_operators()
        self._time_messages()
        self._time_operators()
        self._fill_windows()
        self._fill_devices()
        if np.isfinite(problem.room):
            add_memory(self.rows, self.x, problem)

    def read_placement(self, values: Floats) -> Placement:
        """The device of each operator."""
        x = np.array([values[row] for row in self.x])
        return tuple(np.argmax(x, axis=1).tolist())

    def read_starts(self, values: Floats) -> Floats:
        """When each begins [passes by n], in the program's units."""
        return np.array([values[row] for row in self.s])

    def exclude(self, pair: Pair) -> None:
        """Two operators do not overlap in a pass where they are on one device."""
        k, i, j = pair
        rows, problem = self.rows, self.problem
        first, second = rows.add_flag(), rows.add_flag()
        for device in range(problem.devices):
            on_it = {self.x[i][device]: 1.0, self.x[j][device]: 1.0}
            rows.add_row({first: 1.0, second: 1.0} | dict.fromkeys(on_it, -1.0), low=-1.0)
        for flag, one, other in ((first, i, j), (second, j, i)):
            # The other begins behind this one, or as early as it ever can.
            slack = self.most[k] - self.tails[k, one] + self.durations[k, one]
            slack = max(0.0, slack - self.heads[k, other])
            terms = {self.s[k][other]: 1.0, self.s[k][one]: -1.0, flag: -slack}
            rows.add_row(terms, low=self.durations[k, one] - slack)

    def _place_operators(self) -> None:
        """Each is on one device."""
        rows, problem = self.rows, self.problem
        self.x = add_placement(rows, problem)
        for operator, device in self.fixed.items():
            rows.low[self.x[operator][device]] = 1.0
        if not self.fixed:
            self._break_symmetry()

    def _break_symmetry(self) -> None:
        """Of placements that differ by an exchange of devices alone, one is enough."""
        firsts = self.symmetry.list_first()
        self.rows.add_row({self.x[0][device]: 1.0 for device in firsts}, low=1.0)
        if not self.symmetry.uniform:
            return
        number_devices(self.rows, self.x)

    def _time_messages(self) -> None:
        """w: nothing on one device, else what the tensor takes between the two."""
        self.w = [self._time_message(edge) for edge in self.problem.edges]

    def _time_message(self, edge: Edge) -> int:
        rows, makers, takers = self.rows, self.x[edge.maker], self.x[edge.taker]
        delays = np.array(edge.delays) / self.unit
        devices = range(self.problem.devices)
        w = rows.add_variable(0.0, float(delays.max()))
        if self.symmetry.uniform:
            for device in devices:
                delay = float(delays.max())
                rows.add_row({w: 1.0, makers[device]: -delay, takers[device]: delay}, low=0.0)
            return w
        # Which pair of devices it is: a product of two choices, as a transport between them.
        z = [[rows.add_variable(0.0, 1.0) for _ in devices] for _ in devices]
        for device in devices:
            rows.add_row(dict.fromkeys(z[device], 1.0) | {makers[device]: -1.0}, 0.0, 0.0)
            rows.add_row({row[device]: 1.0 for row in z} | {takers[device]: -1.0}, 0.0, 0.0)
        paid = {z[a][b]: -float(delays[a, b]) for a in devices for b in devices if delays[a, b]}
        rows.add_row({w: 1.0} | paid, low=0.0)
        return w

    def _time_operators(self) -> None:
        """s: behind what an operator takes; T: behind all operators."""
        rows, problem = self.rows, self.problem
        self.s: list[list[int]] = []
        self.total = []
        for k, durations in enumerate(self.durations):
            total = rows.add_variable(float(self.tails[k].max()), float(self.most[k]), cost=1.0)
            starts = [
                rows.add_variable(float(head), float(max(head, self.most[k] - tail)))
                for head, tail in zip(self.heads[k], self.tails[k], strict=True)
            ]
            for edge, w in zip(problem.edges, self.w, strict=True):
                terms = {starts[edge.taker]: 1.0, starts[edge.maker]: -1.0, w: -1.0}
                rows.add_row(terms, low=durations[edge.maker])
            for operator in range(problem.operators):
                if not problem.leaving[operator]:
                    rows.add_row({total: 1.0, starts[operator]: -1.0}, low=durations[operator])
            self.s.append(starts)
            self.total.append(total)

    def _fill_windows(self) -> None:
        """What neither begins before a time nor ends after another fits between, device by device.

        Rows that hold anyway once all pairs exclude each other: they bring the bound up.
        """
        for k, durations in enumerate(self.durations):
            after = self.tails[k] - durations
            windows = {(0.0, 0.0)} | set(zip(self.heads[k], after, strict=True))
            for head, tail in _choose_windows(windows):
                inside = [
                    operator
                    for operator, duration in enumerate(durations)
                    if duration and self.heads[k, operator] >= head and after[operator] >= tail
                ]
                for device in range(self.problem.devices if len(inside) > 1 else 0):
                    work = {self.x[each][device]: -float(durations[each]) for each in inside}
                    self.rows.add_row({self.total[k]: 1.0} | work, low=float(head + tail))

    def _fill_devices(self) -> None:
        """A device waits for its first operator's inputs, and others for what its last one made.

        Which operators these are is open: any mixture of those on the device is as good for a
        bound. Of part 17 of Inception-v3 on two devices the bound comes up from 19.6 to 22.3 ms.
        """
        devices = range(self.problem.devices if self.problem.devices > 1 else 0)
        for k, device in product(range(len(self.durations)), devices):
            used = self.rows.add_variable(0.0, 1.0)
            for row in self.x:
                self.rows.add_row({used: 1.0, row[device]: -1.0}, low=0.0)
            terms = {self.total[k]: 1.0}
            for row, duration in zip(self.x, self.durations[k], strict=True):
                terms[row[device]] = -float(duration)
            for idle in (self._wait_before(k, device), self._wait_behind(k, device)):
                chosen = {self.rows.add_variable(0.0, 1.0): wait for wait in idle}
                self.rows.add_row(dict.fromkeys(chosen, 1.0) | {used: -1.0}, 0.0, 0.0)
                for each, row in zip(chosen, self.x, strict=True):
                    self.rows.add_row({each: 1.0, row[device]: -1.0}, high=0.0)
                terms |= {each: -wait for each, wait in chosen.items()}
            self.rows.add_row(terms, low=0.0)

    def _wait_before(self, k: int, device: int) -> list[float]:
        """When each operator can begin if it is the first on a device: its makers are elsewhere."""
        ends = self.heads[k] + self.durations[k]
        return [
            max((ends[edge.maker] + self._find_least(edge, device) for edge in edges), default=0.0)
            for edges in self.problem.entering
        ]

    def _wait_behind(self, k: int, device: int) -> list[float]:
        """What is still to do behind each if it is the last on a device: takers are elsewhere."""
        tails = self.tails[k]
        return [
            max((tails[edge.taker] + self._find_least(edge, device) for edge in edges), default=0.0)
            for edges in self.problem.leaving
        ]

    def _find_least(self, edge: Edge, device: int) -> float:
        """What the message of an edge takes at least from a device to another one."""
        return min(each for to, each in enumerate(edge.delays[device]) if to != device) / self.unit


def list_rivals(problem: Problem) -> list[tuple[int, int]]:
    """Pairs of operators that could run at once: neither waits for the other."""
    return [
        (i, j)
        for i, j in combinations(range(problem.operators), 2)
        if not problem.before[j] >> i & 1
    ]


def _choose_windows(windows: set[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that leave least room, as many as are worth their rows."""
    return sorted(windows, key=lambda window: (-sum(window), window))[:MOST_WINDOWS]
