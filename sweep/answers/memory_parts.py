"""Memory by part: what fills the fullest PE of a configuration, and the largest batch that fits."""

import math
from dataclasses import fields
from typing import Any

import numpy as np

from grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS
from grids.grid import Grid
from grids.models.layers import Floats
from kernels.case import Case
from kernels.formulas import find_unit
from kernels.touched import Touched
from sweep.answers.numbers import number


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
    held, states = float(batch * activations[fullest]), float(parameters[fullest])
    parts = {"activations": held} | _part_states(grid, system, states)
    if grid.spec.oracle == "machine" and case.machine_work.touched is not None:
        parts = _part_touched(grid, system, case.machine_work.touched, (held, states), batch)
    return {
        "memory_parts": parts | {"reserved": reserved},
        "largest_batch": max(0, math.floor(most)) if math.isfinite(most) else None,
    }


def _of_stages(values: Any) -> Floats:
    return np.asarray(values, float).reshape(np.shape(values)[0], -1)[:, 0]


def _part_touched(
    grid: Grid, system: int, touched: Touched, bytes_held: tuple[float, float], batch: float
) -> dict[str, float]:
    """The parts where gradients have touched rows alone; of `bytes_held`, those of a sample are in
    the first, with activations, and the others in the second.
    """
    precision, optimizer = PRECISIONS[grid.systems[system].precision], grid.spec.optimizer
    of_weight, of_state = precision.weight, precision.count_state_bytes(optimizer)
    of_row = of_state - of_weight
    whole, tables, biases, drawn, looked_up = (
        _of_stages(getattr(touched, each.name)) for each in fields(touched)
    )
    held, states = bytes_held
    tables, rows = tables + biases, drawn + batch * looked_up
    # The fullest stage is the one that comes nearest: what it lacks are the others' few biases.
    left = states - (of_state * whole + of_weight * tables + of_row * drawn)
    stage = int(np.argmin(np.abs(left)))
    dense = whole[stage] + left[stage] / of_state
    return {
        "activations": held - float(of_row * batch * looked_up[stage]),
        "weights": float(of_weight * (dense + tables[stage])),
        "gradients": float(precision.gradient * (dense + rows[stage])),
        "optimizer": float(OPTIMIZER_BYTES[optimizer] * (dense + rows[stage])),
    }


def _part_states(grid: Grid, system: int, states: float) -> dict[str, float]:
    """What is there whatever the batch; Table III knows weights with their gradients alone."""
    if grid.spec.oracle == "paper":
        return {"parameters": states}
    precision, optimizer = PRECISIONS[grid.systems[system].precision], grid.spec.optimizer
    share = states / precision.count_state_bytes(optimizer)
    return {
        "weights": share * precision.weight,
        "gradients": share * precision.gradient,
        "optimizer": share * OPTIMIZER_BYTES[optimizer],
    }
