"""HiGHS in a process of its own: programs come on stdin, solutions go to stdout, pickled.

Imports nothing of paradl: it is started by its path, and answers as soon as SciPy is there, 0.4 s
later.
"""

import os
import pickle
import struct
import sys
from typing import IO, Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

LENGTH = struct.Struct("<Q")


def solve_arrays(program: dict[str, Any], limit: float) -> dict[str, Any]:
    """What HiGHS makes of a program within `limit` seconds.

    status: 0 optimal, 1 out of time, 2 infeasible, others failed. values: of the variables, None
    where it has none; bound: what no solution goes below, None where it has none.
    """
    shape = (len(program["row_low"]), len(program["cost"]))
    places = (program["rows"].astype(np.int64), program["columns"].astype(np.int64))
    matrix = coo_array((program["values"], places), shape=shape).tocsc()
    answer = milp(
        program["cost"],
        integrality=program["whole"].astype(np.int64),
        bounds=Bounds(program["low"], program["high"]),
        constraints=LinearConstraint(matrix, program["row_low"], program["row_high"]),
        options={"time_limit": limit, "mip_rel_gap": 1e-7},
    )
    bound = getattr(answer, "mip_dual_bound", None)  # None where nothing has to be whole
    return {
        "status": int(answer.status),
        "values": answer.x,
        "bound": float(bound) if bound is not None and np.isfinite(bound) else None,
    }


def read_message(stream: IO[bytes]) -> Any:
    """The next message, None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return pickle.loads(stream.read(LENGTH.unpack(head)[0]))


def write_message(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    content = pickle.dumps(message)
    stream.write(LENGTH.pack(len(content)) + content)
    stream.flush()


def serve() -> None:
    """Solve what comes, until nothing comes any more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # HiGHS writes a line there now and then
    while (message := read_message(sys.stdin.buffer)) is not None:
        write_message(answers, solve_arrays(*message))


if __name__ == "__main__":
    serve()
