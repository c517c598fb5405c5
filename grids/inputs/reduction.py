"""Reduction: a problem whose layers are summed, which is all that the closed-form stage reads.

The first of the oracle's two stages. What depends on the layers is small, and found in double
precision; the second stage spreads it over all cells.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from grids.inputs.groups import divided
from grids.inputs.problem import Problem, at_cells
from grids.inputs.stages import STAGES
from grids.models.layers import Floats
from kernels.calibration import Calibration
from kernels.compute import PE
from kernels.group import Bounds, GroupWork
from kernels.network import Network
from kernels.oracle import Ahead
from kernels.run import Options, Run
from kernels.uncertainty import Uncertainty

# Cells of memory that are so few that stages more or less cost no time.
FEW_CELLS = 2**16


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Reduced:
    """Arguments of `kernels.oracle.answer`; strategies differ in numbers, hardly in shapes."""

    work: GroupWork
    bounds: Bounds
    run: Run
    network: Network
    pe: PE
    known: Calibration | None
    doubt: Uncertainty | None
    ahead: Ahead | None = None


def reduced(problem: Problem, options: Options) -> Reduced:
    """Reduce a problem's layers.

    All that may depend on p has the shape of p, so that one compiled program serves all strategies.
    """
    run, position, leading = problem.run, problem.position, int(problem.choices)

    def spread(leaf: Any) -> Floats:
        return np.broadcast_to(leaf, np.broadcast_shapes(np.shape(leaf), np.shape(run.p)))

    def of_cells(leaf: Floats) -> Floats:
        return spread(at_cells(leaf, position, leading))

    work, bounds = jax.tree.map(of_cells, divided(problem.groups, options, _stages(run)))
    if problem.groups.strategy.serial:  # its group is one PE whatever p is
        bounds = replace(bounds, fits=spread(np.equal(run.p, 1)))
    return Reduced(
        work=work,
        bounds=bounds,
        run=replace(run, p1=spread(run.p1), p2=spread(run.p2), phi=spread(run.phi)),
        network=problem.network,
        pe=problem.pe,
        known=problem.known,
        doubt=problem.doubt,
    )


def _stages(run: Run) -> int:
    """How many stages there are at least: few cells bear some more, and share a program."""
    cells = np.broadcast_shapes(*map(np.shape, (run.p, run.size, run.delta, run.gamma)))
    return STAGES if math.prod(cells) <= FEW_CELLS else 1
