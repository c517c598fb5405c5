"""Points: configurations one by one, and not on a grid, each with values of its own.

Cells have one dimension, that of the points, or two: rows, and the points of each. What is discrete
is looked up in a table, whose cells are all PE counts (and groups, segments) of one model, data
set, system and strategy; continuous parameters take each point's values (`places.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import jax
from jax import Array

from kernels.arrays import AnyArray, Cells, PerStage
from kernels.configuration.case import Case
from kernels.configuration.places import set_parameters
from kernels.namespace import xp
from kernels.oracle.answer import Answer, evaluate, take_best
from kernels.oracle.formulas import Work, find_share, reduce_work
from kernels.work.division import Division
from kernels.work.group import GroupWork
from kernels.work.memory import hold_row_states

Tree = TypeVar("Tree")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Points:
    """Cases in one dimension: rows of a table, or points that were taken of one.

    division: the layers in their groups, where they are to be reduced anew for each point; None
    where the case's work holds for all of them.
    """

    case: Case
    division: Division | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the points' dimensions, without those of choices in front."""
        return tuple(xp.shape(self.case.run.p)[len(self.case.choices) :])


def take_points(table: Points, rows: AnyArray, values: Mapping[str, Cells]) -> Points:
    """The points at `rows` of a table, with values of parameters, by name.

    rows, values: [point] each; or [row, 1] and [row, point]: several points of a row, whose
    numbers are then looked up, and what follows from them alone computed, once.
    """
    dims = (1,) * xp.ndim(rows)

    def take(leaf: AnyArray) -> Array:
        whole = xp.asarray(leaf)
        # The last dimension is that of the cells; of size 1, and of constants, there is one value.
        if whole.ndim == 0:
            return whole
        return whole[..., rows] if whole.shape[-1] > 1 else whole.reshape(*whole.shape[:-1], *dims)

    taken: Points = jax.tree.map(take, table)
    # A table of one row gives as many points, too.
    shape = xp.broadcast_shapes(xp.shape(rows), *map(xp.shape, values.values()))
    # Dimensions of choices stand in front of those of the points.
    choices = (1,) * len(taken.case.choices)
    p = xp.broadcast_to(taken.case.run.p, (*choices, *shape))
    case = replace(taken.case, run=replace(taken.case.run, p=p))
    aligned = {
        name: xp.reshape(value, (*choices, *xp.shape(value))) for name, value in values.items()
    }
    return replace(taken, case=set_parameters(case, aligned))


def evaluate_points(points: Points) -> Answer:
    """The answer [point]; differentiable in every parameter that has a place, also in those that
    layers depend on where the points have a division.
    """
    return evaluate(reduce_points(points).case)


def reduce_points(points: Points) -> Points:
    """The points with their layers reduced, each by its own values, and no division."""
    case, division = points.case, points.division
    if division is None:
        return points
    division = replace(division, pe=case.pe, delta=case.run.delta)
    return Points(replace(case, work=_keep_fullest(reduce_work(division), case)))


def settle_points(points: Points) -> Points:
    """The points with the choices that are the best of each, and no others."""
    if not points.case.choices:
        return points
    # Spreads choose nothing, and take 32 times as long as the times.
    case = replace(reduce_points(points).case, uncertainty=None)
    best = take_best(case, points)
    return replace(best, case=replace(best.case, choices=()))


def _keep_fullest(work: Work, case: Case) -> Work:
    """The work with the stage alone that is the fullest: the batch of each point is known."""
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
