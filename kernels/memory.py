"""Memory: bytes that the fullest PE needs.

ParaDL, Table III, column Maximum Memory: gamma delta (2b (|x|+|y|) + 2|w| + |bi|): every activation
and weight with its gradient, every bias; gamma in (0, 1] is the part that buffer reuse leaves. It
takes ResNet-50 for six times as large as it is; what is alive at the same time, tensor by tensor,
is the other choice (docs/machine.md).
"""

import math
from dataclasses import dataclass, replace
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from kernels.arrays import Cells, Ends, PerLayer, PerStage
from kernels.compiled import compiled
from kernels.division import Division
from kernels.group import GroupWork, share
from kernels.pipeline import at_starts, first_inputs, stage_maxima, stage_sums
from kernels.spatial import parts


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Holding:
    """What each stage holds, of which the fullest counts: one stage where there is no pipeline.

    kept [B a sample]: what the backward pass reads; peak [B a sample]: the most that is there in
    one pass, gradients and all; boundary [B a sample]: inputs of recomputed runs of layers; states
    [B].
    """

    kept: PerStage
    peak: PerStage
    boundary: PerStage
    states: PerStage


@compiled()
def hold(division: Division) -> Holding:
    """What the PEs of a group hold at once."""
    layers, delta = division.layers, division.delta
    rows = _row_share(division)
    kept = rows * (delta * layers.kept_items + layers.kept_bytes)
    inputs = rows * delta * layers.x
    ends, recompute = _find_runs(division), division.options.recompute == "full"
    # Of a whole network in one piece there are no boundaries: nothing is computed again.
    stage_kept = stage_sums(kept, ends)
    boundary = first_inputs(inputs, ends) if recompute else jnp.zeros_like(stage_kept)
    # Backward at layer l: all that layers up to l keep, and the gradients of its input and output.
    # Early layers have the largest gradients, when what later ones kept is free again: the sum of
    # both maxima is 8 to 23 % more than was measured (tests/grids/models/test_liveness.py).
    gradients = inputs + rows * delta * layers.y
    so_far = jnp.cumsum(jnp.broadcast_to(kept, jnp.shape(gradients)), axis=0)
    before = jnp.concatenate([jnp.zeros_like(so_far[:1]), so_far])
    peak = stage_maxima(so_far + gradients, ends) - at_starts(before, ends)
    states = stage_sums(division.state_bytes * _own_weights(division), ends)
    holding = Holding(stage_kept, jnp.maximum(peak, 0), boundary, states)
    if division.group == "pipeline":
        return holding
    # Runs of one PE: their boundaries are kept at once, and one run after the other in full.
    return Holding(
        kept=jnp.max(stage_kept, axis=0, keepdims=True),
        peak=jnp.max(holding.peak, axis=0, keepdims=True),
        boundary=jnp.sum(boundary, axis=0, keepdims=True),
        states=jnp.sum(states, axis=0, keepdims=True),
    )


def hold_alive(work: GroupWork, division: Division) -> GroupWork:
    """The work with what is alive at the same time as its activations and parameters [B]."""
    holding, options = hold(division), division.options
    # GPipe: one segment goes backward at a time, while what the others read is kept, unless their
    # forward passes are run again.
    segments = division.segments if division.group == "pipeline" else 1.0
    others = 0.0 if options.recompute == "full" else holding.kept * (1 - 1 / segments)
    return replace(
        work,
        activations=others + holding.boundary + holding.peak / segments,
        parameters=holding.states,
    )


def memory(work: GroupWork, batch: Cells, unit: Cells) -> Cells:
    """Bytes of the fullest PE, `batch` samples a replica.

    unit [B]: of what the work counts; gamma delta of Table III's items, and 1 of bytes.
    """
    # Few: those that are the fullest for some batch or other (`grids.inputs.stages`).
    stages = zip(*jnp.broadcast_arrays(work.activations, work.parameters), strict=True)
    # Stage after stage, which compiles to faster code than a maximum along a dimension.
    needed = reduce(jnp.maximum, (batch * activation + once for activation, once in stages))
    return jnp.asarray(unit * needed)


def _row_share(division: Division) -> PerLayer:
    """The part of a layer's tensors that one PE holds; gathered outputs are whole."""
    if division.group == "spatial":
        return 1 / parts(division.layers, division.placement.factors)
    return jnp.ones_like(jnp.asarray(division.layers.x))


def _own_weights(division: Division) -> PerLayer:
    """Weights and biases of which a PE has the states."""
    layers = division.layers
    if division.group in ("filter", "channel"):
        return layers.w * share(division.placement.split, division.p2) + layers.bias
    return layers.w + layers.bias


def _find_runs(division: Division) -> Ends:
    """The layer after the last of each stage, or of each run that is recomputed by itself."""
    if division.group == "pipeline":
        return jnp.asarray(division.placement.ends)
    count = jnp.shape(division.layers.x)[0]
    # sqrt(G) runs of about sqrt(G) layers (Chen et al. 2016, arXiv 1604.06174).
    runs = round(math.sqrt(count)) if division.options.recompute == "full" else 1
    ends = np.minimum(np.arange(1, runs + 1) * math.ceil(count / runs), count)
    return jnp.asarray(ends).reshape(-1, *[1] * (jnp.ndim(division.layers.x) - 1))
