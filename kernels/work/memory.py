"""Memory: bytes that the fullest PE needs, of what is alive at the same time, tensor by tensor.

Docs/machine.md, Memory.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import jax
import numpy as np

from kernels.arrays import Cells, Ends, Factors, PerLayer, PerStage
from kernels.compiled import compiled
from kernels.namespace import xp
from kernels.work.division import Division
from kernels.work.group import GroupWork, find_fullest
from kernels.work.layers import Layers
from kernels.work.rows import row_share
from kernels.work.stages import at_starts, first_inputs, stage_maxima, stage_sums
from kernels.work.touched import RowStates, find_rows, is_table


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Holding:
    """Memory of each stage, of which the fullest counts: one stage where there is no pipeline.

    kept [B a sample]: what the backward pass reads; peak [B a sample]: the most that is there in
    one pass, gradients and all; states [B]. entry [B a sample]: what comes in, from another stage,
    or from the hosts. rows: states of the rows of tables that samples look up; None where all
    states are whole.
    """

    kept: PerStage
    peak: PerStage
    entry: PerStage
    states: PerStage
    rows: RowStates | None = None


class Tensors(NamedTuple):
    """Bytes a sample of each layer on one PE: its input, its output, what it keeps of them."""

    inputs: PerLayer
    outputs: PerLayer
    kept: PerLayer


class Own(NamedTuple):
    """Each layer's part on one PE: tensors, and weights and biases of which it has the states."""

    tensors: Tensors
    weights: PerLayer


@compiled("recompute", numpy=True)
def hold_rows(
    layers: Layers, factors: Factors, delta: Cells, recompute: Literal["none", "full"]
) -> Cells:
    """Bytes a sample of the fullest PE of a group that divides rows by `factors`."""
    rows = row_share(layers.extents_x, factors), row_share(layers.extents_y, factors)
    tensors = list_tensors(layers, delta, *rows)
    return _find_whole_peak(tensors, recompute)[0]


def find_memory(work: GroupWork, batch: Cells, reserved: Cells) -> Cells:
    """Bytes of the fullest PE, `batch` samples a replica; reserved: those that no tensor has."""
    if work.row_states is None:
        return find_fullest(work.activations, work.parameters, batch) + reserved
    rows = hold_row_states(work.row_states, batch)
    return xp.max(batch * work.activations + work.parameters + rows, axis=0) + reserved


def _find_whole_peak(tensors: Tensors, recompute: Literal["none", "full"]) -> PerStage:
    """The most that is there when all layers run, in one stage."""
    whole = _find_peaks(tensors, _end_runs(tensors.inputs, 1))
    if recompute == "none":
        return whole
    # sqrt(G) runs of about sqrt(G) layers (Chen et al. 2016, arXiv 1604.06174), whose inputs are
    # kept at once, and one run after the other in full.
    count = xp.shape(tensors.inputs)[0]
    ends = _end_runs(tensors.inputs, round(math.sqrt(count)))
    entries, peaks = first_inputs(tensors.inputs, ends), _find_peaks(tensors, ends)
    return xp.minimum(whole, xp.sum(entries, axis=0) + xp.max(peaks, axis=0))


def hold_runs(division: Division, own: Own, ends: Ends) -> Holding:
    """Memory of each run of layers, up to its end, by itself."""
    return Holding(
        kept=stage_sums(own.tensors.kept, ends),
        peak=_find_peaks(own.tensors, ends),
        entry=first_inputs(own.tensors.inputs, ends),
        states=stage_sums(find_states(division, own), ends),
        rows=sum_row_states(division, own, partial(stage_sums, ends=ends)),
    )


def hold_whole(division: Division, own: Own) -> Holding:
    """Memory of a PE that runs all layers."""
    whole = hold_runs(division, own, _end_runs(division.layers.x, 1))
    return replace(whole, peak=_find_whole_peak(own.tensors, division.options.recompute))


def _find_peaks(tensors: Tensors, ends: Ends) -> PerStage:
    """The most that is there in one pass through each run of layers."""
    # Backward at layer l: all that layers up to l keep, and the gradients of its input and output.
    # Early layers have the largest gradients, when what later ones kept is free again: the sum of
    # both maxima is 8 to 23 % more than was measured (tests/grids/models/test_liveness.py).
    gradients = tensors.inputs + tensors.outputs
    so_far = xp.cumsum(xp.broadcast_to(tensors.kept, xp.shape(gradients)), axis=0)
    before = xp.concatenate([xp.zeros_like(so_far[:1]), so_far])
    peak = stage_maxima(so_far + gradients, ends) - at_starts(before, ends)
    return xp.maximum(peak, 0)  # of a stage that a cell does not have


def list_tensors(
    layers: Layers, delta: Cells, rows_in: PerLayer | float, rows_out: PerLayer | float
) -> Tensors:
    """The bytes of so large a part of each layer's input and output."""
    return Tensors(
        inputs=rows_in * delta * layers.x,
        outputs=rows_out * delta * layers.y,
        kept=rows_out * (delta * layers.kept_items + layers.kept_bytes),
    )


def hold_row_states(rows: RowStates, batch: Cells) -> PerStage:
    """Bytes of the states of the rows that `batch` samples look up, at most all rows'."""
    return xp.asarray(xp.minimum(batch * xp.asarray(rows.sample), rows.most))


def sum_row_states(
    division: Division, own: Own, add: Callable[[PerLayer], PerStage]
) -> RowStates | None:
    """The states of looked-up rows by stage; None where all states are whole.

    add: sums values of layers over each stage.
    """
    rows = find_rows(division.layers)
    if rows is None:
        return None
    of_row = division.state_bytes - division.weight_bytes
    # Those of the drawn rows are there whatever the batch (`find_states`).
    others = xp.where(is_table(rows), own.weights - rows.drawn, 0.0)
    return RowStates(
        sample=add(of_row * rows.looked_up), most=add(of_row * xp.maximum(others, 0.0))
    )


def find_states(division: Division, own: Own) -> PerLayer:
    """Bytes of each layer's weights with gradients and the optimizer's states, whatever the batch.

    Of a table with a sparse gradient, gradients and states are those of the drawn rows alone.
    """
    weights, rows = own.weights, find_rows(division.layers)
    whole = division.state_bytes * weights
    if rows is None:
        return whole
    of_row = division.state_bytes - division.weight_bytes
    table = division.weight_bytes * weights + of_row * rows.drawn
    return xp.where(is_table(rows), table, whole)


def _end_runs(values: PerLayer, runs: int) -> Ends:
    """The layer after the last of each of so many runs of as many layers."""
    count = xp.shape(values)[0]
    ends = np.minimum(np.arange(1, runs + 1) * math.ceil(count / runs), count)
    return xp.asarray(ends).reshape(-1, *[1] * (xp.ndim(values) - 1))
