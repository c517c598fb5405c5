"""Reduction: a problem whose layers are summed, which is all that the closed-form stage reads.

The first of the oracle's two stages. What depends on the layers is small, and found in double
precision; the second stage spreads it over all cells.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from grids.problem import Problem, at_cells
from kernels.calibration import Calibration
from kernels.compute import PE
from kernels.group import Bounds, GroupWork
from kernels.network import Network
from kernels.oracle import Ahead, reduce_layers
from kernels.run import Options, Run
from kernels.uncertainty import Uncertainty

Flags = NDArray[np.bool_]

# Stages that are left at least: few networks need more, and so one compiled program serves most.
STAGES = 4
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


def group_work(problem: Problem, options: Options) -> GroupWork:
    """The work of a group's busiest PE, for each of the problem's group sizes."""
    with jax.enable_x64(True):
        found = reduce_layers(
            problem.layers,
            problem.pe,
            problem.placement,
            problem.sizes,
            problem.run.delta,
            group="filter" if problem.group == "channel" else problem.group,
            optimizer=options.optimizer,
            algorithm=options.algorithm,
        )
    work: GroupWork = jax.tree.map(np.asarray, found)
    if problem.group == "channel":  # which reduces as by filter: one compiled program serves both
        work = replace(work, by_filter=work.by_channel, by_channel=work.by_filter)
    return work


def reduced(problem: Problem, options: Options) -> Reduced:
    """Reduce a problem's layers.

    All that may depend on p has the shape of p, so that one compiled program serves all strategies.
    """
    run, position, leading = problem.run, problem.position, int(problem.choices)

    def spread(leaf: Any) -> Floats:
        return np.broadcast_to(leaf, np.broadcast_shapes(np.shape(leaf), np.shape(run.p)))

    def of_cells(leaf: Floats) -> Floats:
        return spread(at_cells(leaf, position, leading))

    return Reduced(
        work=jax.tree.map(of_cells, _fullest(group_work(problem, options), _stages(run))),
        bounds=jax.tree.map(spread, problem.bounds),
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


def _fullest(work: GroupWork, least: int) -> GroupWork:
    """Only the stages that some batch makes the fullest; in the second stage each costs time."""
    for choose in (_not_exceeded, _not_between):
        activations, parameters = np.broadcast_arrays(work.activations, work.parameters)
        chosen = _first(choose(activations, parameters), least)
        work = replace(
            work,
            activations=np.take_along_axis(activations, chosen, axis=0),
            parameters=np.take_along_axis(parameters, chosen, axis=0),
        )
    return work


def _first(kept: Flags, least: int) -> NDArray[np.int64]:
    """Positions of what is kept [stage, cells], as many as are kept in any cell; then others."""
    most = max(STAGES, kept.sum(axis=0).max())
    found = np.argsort(~kept, axis=0, kind="stable")[:most]
    more = [(0, max(0, least - len(found))), *[(0, 0)] * (found.ndim - 1)]
    return np.pad(found, more, "edge")


def _not_exceeded(activations: Floats, parameters: Floats) -> Flags:
    """The stages that no other has more of both than."""
    order = np.argsort(-activations, axis=0, kind="stable")
    of_fewer = np.take_along_axis(parameters, order, axis=0)
    most = np.maximum.accumulate(of_fewer, axis=0)[:-1]
    kept = np.concatenate([np.ones_like(order[:1], bool), of_fewer[1:] > most])
    return np.take_along_axis(kept, np.argsort(order, axis=0), axis=0)


def _not_between(activations: Floats, parameters: Floats) -> Flags:
    """Of these, those not below the line from one with more activations to one with fewer."""
    more, fewer = activations[:, None, None], activations[None, None]
    above, below = parameters[:, None, None], parameters[None, None]
    here = activations[None, :, None], parameters[None, :, None]
    between = (more > here[0]) & (here[0] > fewer)
    under = (here[1] - above) * (more - fewer) <= (below - above) * (more - here[0])
    kept: Flags = _not_exceeded(activations, parameters) & ~np.any(between & under, axis=(0, 2))
    return kept
