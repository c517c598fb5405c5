"""Draws: the uncertainty of a machine and a model, as input of the kernels."""

from dataclasses import dataclass

import jax

from kernels.arrays import AnyArray, Cells
from kernels.machine.software import Software


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Uncertainty:
    """Draws, and spreads of logarithms.

    factors [draw, cells]: on each parameter. serial [draw, cells]: on a model's time on one PE.
    whole, group, reduce, exchange: errors of computing whole models, and divided ones; of the
    gradients' rings, and of all else that is communicated. widening: the factor on these errors.
    """

    factors: Software
    serial: AnyArray
    whole: Cells
    group: Cells
    reduce: Cells
    exchange: Cells
    widening: Cells
