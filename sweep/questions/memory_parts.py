"""Memory by part: what fills the fullest PE of a configuration, and the largest batch that fits."""

import math
from typing import Any

import numpy as np

from grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS
from grids.grid import Grid
from grids.models.layers import Floats
from kernels.case import Case
from kernels.memory import find_unit
from sweep.questions.plain_numbers import number


def list_memory_parts(grid: Grid, case: Case, system: int = 0) -> dict[str, Any]:
    """`memory_parts` [B] of the fullest PE, by name, and `largest_batch`: samples a replica that
    fit, 0 where none do. system: the case's, by its position.
    """
    unit, reserved = map(number, find_unit(case))
    activations, parameters = (
        unit * _of_stages(case.work.activations),
        unit * _of_stages(case.work.parameters),
    )
    batch = number(case.run.batch)
    fullest = int(np.argmax(batch * activations + parameters))
    room = number(case.pe.memory_capacity) - reserved - parameters
    bounding = activations > 0
    most = min((room[bounding] / activations[bounding]).tolist(), default=math.inf)
    return {
        "memory_parts": {
            "activations": float(batch * activations[fullest]),
            **_part_states(grid, system, float(parameters[fullest])),
            "reserved": reserved,
        },
        "largest_batch": max(0, math.floor(most)) if math.isfinite(most) else None,
    }


def _of_stages(values: Any) -> Floats:
    return np.asarray(values, float).reshape(np.shape(values)[0], -1)[:, 0]


def _part_states(grid: Grid, system: int, states: float) -> dict[str, float]:
    """What is there whatever the batch; Table III knows weights with their gradients alone."""
    if grid.spec.oracle == "paper":
        return {"parameters": states}
    precision, optimizer = PRECISIONS[grid.systems[system].precision], grid.spec.optimizer
    share = states / precision.count_state_bytes(optimizer)
    return {
        "weights": share * (precision.item + precision.master),
        "gradients": share * precision.gradient,
        "optimizer": share * OPTIMIZER_BYTES[optimizer],
    }
