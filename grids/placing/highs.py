"""Mixed-integer programs, row by row, and HiGHS in a process of its own.

HiGHS (Huangfu and Hall, Math. Prog. Comp. 10, 2018) through SciPy looks at its clock now and then,
hears no Ctrl-C, and writes to stdout. So it runs in a script, which solves one program and is ended
when its time is over.
"""

import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Clock = Callable[[], float]  # seconds that are left
# The part of its time that HiGHS knows of: on a busy machine it took 1.3 s more than it had, of 15.
TOLD = 0.85
SCRIPT = Path(__file__).with_name("highs_process.py")


@dataclass
class IntegerProgram:
    """A program: minimise c v, with low <= A v <= high.

    Variables are numbered as they come; a row maps them to their coefficients.
    """

    cost: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def add_variable(
        self, low: float, high: float, *, cost: float = 0.0, whole: bool = False
    ) -> int:
        """The number of a further variable."""
        for column, value in zip((self.cost, self.low, self.high), (cost, low, high), strict=True):
            column.append(value)
        self.whole.append(int(whole))
        return len(self.cost) - 1

    def add_flag(self) -> int:
        """The number of a further variable that is 0 or 1."""
        return self.add_variable(0, 1, whole=True)

    def add_row(
        self, terms: Mapping[int, float], low: float = -np.inf, high: float = np.inf
    ) -> None:
        """low <= the sum of the terms <= high."""
        self.rows.append((dict(terms), low, high))


@dataclass(frozen=True)
class Solution:
    """The answer of HiGHS: optimal where it is proven, infeasible where there is none.

    values: of the variables, None where it met none; bound: no solution costs less, None: unknown.
    """

    optimal: bool = False
    infeasible: bool = False
    values: Floats | None = None
    bound: float | None = None


def solve_rows(rows: IntegerProgram, limit: float) -> Solution:
    """The solution within `limit` seconds."""
    if limit <= 0:
        return Solution()
    program = pickle.dumps((vars(rows), TOLD * limit))
    try:
        run = subprocess.run(
            [sys.executable, "-P", SCRIPT],
            input=program,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            check=True,
            start_new_session=True,  # Ctrl-C is for us, and `run` ends the process then
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return Solution()
    return Solution(**pickle.loads(run.stdout))
