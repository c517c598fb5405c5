"""Mixed-integer programs, built row by row and solved by HiGHS in a separate process.

HiGHS (Huangfu and Hall, Math. Prog. Comp. 10, 2018), called through SciPy, ignores Ctrl-C and
writes to stdout. So a script solves one program, and is killed by Ctrl-C. Its nodes are limited,
not its time: it has the same answer on any machine.
"""

import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paradl.kernels.names.arrays import Floats

SCRIPT = Path(__file__).with_name("highs_process.py")


@dataclass
class IntegerProgram:
    """A program: minimise c v subject to low <= A v <= high.

    Variables are numbered in the order they are added; a row maps numbers to coefficients.
    """

    cost: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def add_variable(
        self, low: float, high: float, *, cost: float = 0.0, whole: bool = False
    ) -> int:
        """Add a variable and return its number."""
        for column, value in zip((self.cost, self.low, self.high), (cost, low, high), strict=True):
            column.append(value)
        self.whole.append(int(whole))
        return len(self.cost) - 1

    def add_flag(self) -> int:
        """Add a 0/1 variable and return its number."""
        return self.add_variable(0, 1, whole=True)

    def add_row(
        self, terms: Mapping[int, float], low: float = -np.inf, high: float = np.inf
    ) -> None:
        """Add the constraint low <= sum of the terms <= high."""
        self.rows.append((dict(terms), low, high))


@dataclass(frozen=True)
class Solution:
    """HiGHS's answer: `infeasible` means proven.

    values: of the variables, None if no solution was found. bound: a lower bound of the cost, None
    if unknown.
    """

    infeasible: bool = False
    values: Floats | None = None
    bound: float | None = None


class SolverError(RuntimeError):
    """HiGHS died; an answer without it would depend on the machine."""


def solve_rows(rows: IntegerProgram, nodes: int) -> Solution:
    """Solve the program, or do what `nodes` of its tree allow. SolverError: HiGHS died."""
    if nodes < 1:
        return Solution()
    try:
        run = subprocess.run(
            # -P: files beside the script must not take the place of Python's modules.
            [sys.executable, "-P", SCRIPT],
            input=pickle.dumps((vars(rows), nodes)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            start_new_session=True,  # Ctrl-C reaches us alone; `run` then kills the process
        )
    except subprocess.CalledProcessError as error:
        raise SolverError(f"HiGHS died (exit code {error.returncode})") from error
    return Solution(*pickle.loads(run.stdout))
