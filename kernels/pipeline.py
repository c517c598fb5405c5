"""Pipeline parallelism: a group's PEs each hold a contiguous stage G_i of the layers.

ParaDL, Table III, row Pipeline (GPipe, Huang et al. 2019): S segments (micro-batches) pass p2
stages in p2 + S - 1 steps of the slowest stage's time.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Ends, PerLayer, PerStage
from kernels.division import Division
from kernels.group import GroupWork, whole_work
from kernels.layers import LayerTimes


def work(division: Division, times: LayerTimes) -> GroupWork:
    """The largest stage counts, for each quantity by itself."""
    layers, ends = division.layers, jnp.asarray(division.placement.ends)
    carried = layers.y if division.options.cuts == "output" else layers.crossing
    return replace(
        whole_work(layers, times),
        # Two maxima, as Table III has them; with BW_l = 2 FW_l one stage is the largest in both.
        forward_backward=largest(times.forward, ends) + largest(times.backward, ends),
        update=largest(times.update, ends),
        fixed=largest(times.fixed, ends),
        activations=stage_sums(2 * (layers.x + layers.y), ends),
        parameters=stage_sums(2 * layers.w + layers.bias, ends),
        # Stages exchange at once, each with its like in other replicas: the largest ends last.
        gradient=largest(layers.w, ends),
        tensors=largest(jnp.where(layers.w > 0, 1.0, 0.0), ends),
        stage_items=passed_on(carried, ends, division.p2),
        pipelined=jnp.ones(()),
    )


def stage_sums(values: PerLayer, ends: Ends) -> PerStage:
    """Sum over each stage's layers, as a difference of prefix sums."""
    # Stages differ from cell to cell, and prefix sums serve them all. To the last bit a difference
    # is not a stage's own sum: one stage is serial to 1e-12, other groups of one PE are exactly
    # (tests/kernels/test_oracle.py).
    prefix = jnp.cumsum(jnp.asarray(values), axis=0)
    prefix = jnp.concatenate([jnp.zeros_like(prefix[:1]), prefix])
    # A stage that a cell does not have starts and ends at G: exactly 0.
    return _at(prefix, ends) - _at(prefix, _starts(ends))


def _starts(ends: Ends) -> Ends:
    """Each stage's first layer."""
    return jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])


def at_starts(prefix: PerLayer, ends: Ends) -> PerStage:
    """Of prefix sums [G + 1], those before each stage."""
    return _at(prefix, _starts(jnp.asarray(ends)))


def first_inputs(x: PerLayer, ends: Ends) -> PerStage:
    """Items a sample that come into each stage, 0 where a cell does not have it."""
    starts = _starts(jnp.asarray(ends))
    there = starts < jnp.shape(x)[0]
    return jnp.where(there, _at(x, jnp.where(there, starts, 0)), 0)


def largest(values: PerLayer, ends: Ends) -> Cells:
    """max_i of the sum over stage G_i."""
    return jnp.max(stage_sums(values, ends), axis=0)


def stage_maxima(values: PerLayer, ends: Ends) -> PerStage:
    """The largest of each stage's layers, 0 where a cell does not have the stage."""
    values, ends = jnp.asarray(values), jnp.asarray(ends)
    cells = jnp.broadcast_shapes(values.shape[1:], ends.shape[1:])
    number = jnp.arange(values.shape[0]).reshape(-1, *[1] * len(cells))

    def largest_of(bounds: tuple[Array, Array]) -> Array:
        start, end = bounds
        return jnp.max(jnp.where((number >= start) & (number < end), values, 0), axis=0)

    # Stage after stage: all at once would take the memory of stages x layers x cells.
    maxima: Array = jax.lax.map(largest_of, (_starts(ends), ends))
    return jnp.broadcast_to(maxima, ends.shape[:1] + cells)


def passed_on(carried: PerLayer, ends: Ends, p2: Cells) -> Cells:
    """max_{i < p2} |y_Gi|: the most items that one stage sends the next; 0 for one stage.

    carried: what a cut behind each layer carries.
    """
    # A float, as p2 is: nothing is converted silently. The last stage's output goes nowhere.
    stage = jnp.arange(1, ends.shape[0] + 1, dtype=float).reshape(-1, *[1] * (ends.ndim - 1))
    return jnp.max(jnp.where(stage < p2, _at(jnp.asarray(carried), ends - 1), 0), axis=0)


def _at(values: PerLayer, index: Ends) -> PerStage:
    """values[index] along the leading axis, where both may vary along the cells."""
    values, index = jnp.asarray(values), jnp.asarray(index)
    cells = jnp.broadcast_shapes(values.shape[1:], index.shape[1:])
    values = jnp.broadcast_to(values, values.shape[:1] + cells)
    return jnp.take_along_axis(values, jnp.broadcast_to(index, index.shape[:1] + cells), axis=0)
