"""Points: single configurations, not on a grid, with values of their own.

Cells have one dimension, points, or two: rows of a table and the points of each. Discrete
parameters are looked up in the table, whose cells are all PE counts (and groups, segments) of one
model, data set, system and strategy; continuous parameters get each point's values (`places.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import jax
from jax import Array

from kernels.arrays import AnyArray, Cells, PerStage, xp
from kernels.configuration.answers import Answer
from kernels.configuration.case import Case
from kernels.configuration.places import set_parameters
from kernels.oracle.answer import evaluate, take_best
from kernels.oracle.formulas import Work, find_share, reduce_work
from kernels.work.division import Division
from kernels.work.group import GroupWork
from kernels.work.memory import hold_row_states

Tree = TypeVar("Tree")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Points:
    """Cases in one dimension: rows of a table, or points taken from one.

    division: the layers in their groups, to be summed anew for each point; None if the case's work
    holds for all points.
    """

    case: Case
    division: Division | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the points' dimensions, without leading ones of choices."""
        return tuple(xp.shape(self.case.run.p)[len(self.case.choices) :])


def take_points(table: Points, rows: AnyArray, values: Mapping[str, Cells]) -> Points:
    """Take points at `rows` of a table, with values of parameters by name.

    rows, values: [point] each; or [row, 1] and [row, point] for several points per row, whose
    lookups and everything that depends only on them are then done once.
    """
    dims = (1,) * xp.ndim(rows)

    def take(leaf: AnyArray) -> Array:
        whole = xp.asarray(leaf)
        # The last dimension is the cells'; constants and size 1 have a single value.
        if whole.ndim == 0:
            return whole
        return whole[..., rows] if whole.shape[-1] > 1 else whole.reshape(*whole.shape[:-1], *dims)

    taken: Points = jax.tree.map(take, table)
    # Also right for tables of one row, whose leaves have size 1.
    shape = xp.broadcast_shapes(xp.shape(rows), *map(xp.shape, values.values()))
    # Dimensions of choices come before those of the points.
    choices = (1,) * len(taken.case.choices)
    p = xp.broadcast_to(taken.case.run.p, (*choices, *shape))
    case = replace(taken.case, run=replace(taken.case.run, p=p))
    aligned = {
        name: xp.reshape(value, (*choices, *xp.shape(value))) for name, value in values.items()
    }
    return replace(taken, case=set_parameters(case, aligned))


def evaluate_points(points: Points) -> Answer:
    """Compute the answers [point], differentiable in every parameter of `PLACES`; with a division
    also in those that layers' times depend on.
    """
    return evaluate(reduce_points(points).case)


def reduce_points(points: Points) -> Points:
    """Sum the layers by each point's values; the result has no division."""
    case, division = points.case, points.division
    if division is None:
        return points
    division = replace(division, pe=case.pe, delta=case.run.delta)
    return Points(replace(case, work=_keep_fullest(reduce_work(division), case)))


def settle_points(points: Points) -> Points:
    """Replace each point's choices by the best one."""
    if not points.case.choices:
        return points
    # Uncertainty does not affect the choice, and takes 32 times as long as the times.
    case = replace(reduce_points(points).case, uncertainty=None)
    best = take_best(case, points)
    return replace(best, case=replace(best.case, choices=()))


def _keep_fullest(work: Work, case: Case) -> Work:
    """Keep only the fullest stage, which is known since each point has one batch."""
    batch = case.run.batch
    both = xp.broadcast_arrays(work.activations, work.parameters, xp.asarray(batch)[None])
    activations, parameters, samples = both
    share = find_share(case)
    held = samples * activations + (parameters if share is None else share * parameters)
    rows = work.row_states if isinstance(work, GroupWork) else None
    if rows is not None:
        held = held + hold_row_states(rows, batch)
    fullest = xp.argmax(held, axis=0)[None]

    def take(values: PerStage) -> PerStage:
        return xp.take_along_axis(xp.broadcast_to(values, xp.shape(held)), fullest, axis=0)

    kept = replace(work, activations=take(activations), parameters=take(parameters))
    return kept if rows is None else replace(kept, row_states=jax.tree.map(take, rows))
