"""Split the memory of the fullest PE into parts, and find the largest batch that fits."""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from paradl.grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS
from paradl.grids.grid import Grid
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.formulas import find_gathered, find_share, find_unit
from paradl.kernels.work.block_work import BlockWork
from paradl.kernels.work.group import GroupWork, Touched
from paradl.sweep.answers.numbers import number


def list_memory_parts(grid: Grid, case: Case, system: int = 0) -> dict[str, Any]:
    """`memory_parts` [B] of the fullest PE by name, and `largest_batch`: the most samples per
    replica that fit, 0 if none do. system: position of the case's system.
    """
    assert not isinstance(case.work, BlockWork)  # whose parts `LayoutCell` measures
    unit, reserved = map(number, find_unit(case))
    activations, parameters = (
        unit * take_leading(case.work.activations),
        unit * take_leading(case.work.parameters),
    )
    gathered, sharing = 0.0, find_sharing(case)
    if sharing is not None and isinstance(case.work, GroupWork):
        gathered = number(find_gathered(case, case.work))
        parameters = number(find_share(case)) * parameters
    batch = number(case.run.batch)
    # States [B, by stage] of the rows of sparse tables that a sample looks up, and of all rows.
    rows = all_rows = np.zeros_like(parameters)
    if isinstance(case.work, GroupWork) and (looked_up := case.work.row_states):
        rows, all_rows = take_leading(looked_up.sample), take_leading(looked_up.most)
    fullest = int(np.argmax(batch * activations + parameters + np.minimum(batch * rows, all_rows)))
    # What is gathered is the same on every stage, as what is reserved is.
    room = number(case.pe.memory_capacity) - (reserved + gathered) - parameters
    # Samples that fit while each looks up more rows, and once all rows are looked up.
    growing, full = _divide(room, activations + rows), _divide(room - all_rows, activations)
    most = np.where(room < all_rows, growing, np.maximum(growing, full)).min()
    held, states = float(batch * activations[fullest]), float(parameters[fullest])
    parts = {"activations": held}
    if grid.spec.oracle == "machine" and case.machine_work.touched is not None:
        parts |= _part_touched(grid, system, case.machine_work.touched, states, batch)
    else:
        parts |= _part_states(grid, system, states, sharing)
    parts |= {"gathered": gathered} if gathered else {}
    return {
        "memory_parts": parts | {"reserved": reserved},
        # None: samples keep nothing, so any number of them fits.
        "largest_batch": max(0, math.floor(most)) if math.isfinite(most) else None,
    }


def take_leading(values: Any) -> Floats:
    """Values by stage, layer or device [first dimension] of a case of one cell."""
    return np.asarray(values, float).reshape(np.shape(values)[0], -1)[:, 0]


def _divide(room: Floats, held: Floats) -> Floats:
    """Samples of `held` bytes that fit into `room`; infinite for 0 bytes."""
    return np.where(held > 0, room / np.where(held > 0, held, 1.0), np.inf)


def _part_touched(
    grid: Grid, system: int, touched: Touched, states: float, batch: float
) -> dict[str, float]:
    """States by part [B] where only touched rows of sparse tables have gradients.

    states [B]: the part that does not depend on the batch.
    """
    precision, optimizer = PRECISIONS[grid.systems[system].precision], grid.spec.optimizer
    of_weight, of_state = precision.weight, precision.count_state_bytes(optimizer)
    of_row = of_state - of_weight
    whole, tables, biases, drawn, looked_up = (
        take_leading(getattr(touched, part.name)) for part in fields(touched)
    )
    tables = tables + biases
    rows = np.minimum(tables, drawn + batch * looked_up)
    # `states` is of the fullest stage: find it as the nearest sum, which differs by a few biases.
    left = states - (of_state * whole + of_weight * tables + of_row * drawn)
    stage = int(np.argmin(np.abs(left)))
    dense = whole[stage] + left[stage] / of_state
    return {
        "weights": float(of_weight * (dense + tables[stage])),
        "gradients": float(precision.gradient * (dense + rows[stage])),
        "optimizer": float(OPTIMIZER_BYTES[optimizer] * (dense + rows[stage])),
    }


@dataclass(frozen=True)
class Sharing:
    """The ZeRO stage, and the number of PEs that share states."""

    zero: int
    pes: float

    def divide(self, least: int) -> float:
        """Parts into which states are divided that ZeRO shares from stage `least` on."""
        return self.pes if self.zero >= least else 1.0


def find_sharing(case: Case) -> Sharing | None:
    """The sharing of states among PEs; None without ZeRO."""
    zero = case.options.zero
    return Sharing(zero, number(case.find_replicas().degree)) if zero else None


def _part_states(
    grid: Grid, system: int, states: float, sharing: Sharing | None
) -> dict[str, float]:
    """States by part [B], independent of the batch; Table III only has weights and gradients."""
    if grid.spec.oracle == "paper":
        return {"parameters": states}
    precision, optimizer = PRECISIONS[grid.systems[system].precision], grid.spec.optimizer
    sizes = {
        "weights": precision.weight,
        "gradients": precision.gradient,
        "optimizer": OPTIMIZER_BYTES[optimizer],
    }
    if sharing is None:
        share = states / precision.count_state_bytes(optimizer)
        return {name: share * size for name, size in sizes.items()}
    # ZeRO shares master weights from stage 1 on, like the optimizer's states.
    alone, apart = precision.item / sharing.divide(3), precision.master / sharing.divide(1)
    parts = {
        "weights": alone + apart,
        "gradients": sizes["gradients"] / sharing.divide(2),
        "optimizer": sizes["optimizer"] / sharing.divide(1),
    }
    return {name: states * part / sum(parts.values()) for name, part in parts.items()}
