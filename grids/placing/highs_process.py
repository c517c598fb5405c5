"""Script that solves one mixed-integer program with HiGHS: pickled on stdin, answered on stdout.

It imports nothing from paradl, so it starts in half a second. SciPy's optimisers (0.3 s of CPU) are
imported only here.
"""

import os
import pickle
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array


def _solve(program: Mapping[str, Any], nodes: int) -> tuple[bool, Any, float | None]:
    """Solve the program and return the fields of a `Solution`."""
    terms = [row for row, _, _ in program["rows"]]
    low, high = (np.array([row[side] for row in program["rows"]]) for side in (1, 2))
    rows = np.repeat(np.arange(len(terms)), [len(row) for row in terms])
    columns = np.array([column for row in terms for column in row], np.int64)
    values = np.array([value for row in terms for value in row.values()])
    matrix = coo_array((values, (rows, columns)), (len(terms), len(program["cost"])))
    answer = milp(
        program["cost"],
        integrality=program["whole"],
        bounds=Bounds(program["low"], program["high"]),
        constraints=LinearConstraint(matrix.tocsc(), low, high),
        # The default gap of 1e-4 would not be a proof.
        options={"node_limit": nodes, "mip_rel_gap": 1e-7},
    )
    bound = getattr(answer, "mip_dual_bound", None)  # absent if no variable is an integer
    if bound is not None:
        bound = float(bound) if np.isfinite(bound) else None
    return answer.status == 2, answer.x, bound


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # HiGHS sometimes prints to stdout, which carries the answer
    answers.write(pickle.dumps(_solve(*pickle.load(sys.stdin.buffer))))
    answers.close()
