"""Memory of the fullest PE: tensors that are alive at the same time (docs/machine.md, Memory)."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from paradl.kernels.arrays import Cells, Ends, Factors, PerLayer, PerStage, pytree, xp
from paradl.kernels.work.division import Division
from paradl.kernels.work.group import GroupWork, RowStates, find_fullest
from paradl.kernels.work.layers import Layers, find_rows, is_table
from paradl.kernels.work.rows import row_share
from paradl.kernels.work.stages import (
    at_starts,
    first_inputs,
    list_chunks,
    stage_maxima,
    stage_sums,
)


@pytree
class Holding:
    """Memory of each stage, of which the fullest counts; one stage without a pipeline.

    kept [B per sample]: read by the backward pass. peak [B per sample]: largest sum in one pass,
    including gradients. entry [B per sample]: received from another stage or the hosts, by chunk of
    a stage. states
    [B]. rows: states of looked-up rows of tables; None if all states are whole.
    """

    kept: PerStage
    peak: PerStage
    entry: PerStage
    states: PerStage
    rows: RowStates | None = None


class Tensors(NamedTuple):
    """Bytes per sample of each layer on one PE: inputs, outputs, and what is kept for backward.

    rerun: what its backward pass computes again.
    """

    inputs: PerLayer
    outputs: PerLayer
    kept: PerLayer
    rerun: PerLayer | None = None

    @property
    def backward(self) -> PerLayer:
        """What is there in a layer's backward pass beside what is kept."""
        gradients = self.inputs + self.outputs
        return gradients if self.rerun is None else gradients + self.rerun


class LayerShares(NamedTuple):
    """Each layer's share on one PE: tensors, and weights and biases with their states."""

    tensors: Tensors
    weights: PerLayer


def hold_rows(
    layers: Layers, factors: Factors, delta: Cells, recompute: Literal["none", "full"]
) -> Cells:
    """Compute bytes per sample of the fullest PE of a group that divides rows by `factors`."""
    rows = row_share(layers.extents_x, factors), row_share(layers.extents_y, factors)
    tensors = list_tensors(layers, delta, *rows)
    return _find_whole_peak(tensors, recompute)[0]


def find_memory(work: GroupWork, batch: Cells, reserved: Cells) -> Cells:
    """Compute bytes of the fullest PE with `batch` samples per replica, plus `reserved` ones."""
    if work.row_states is None:
        return find_fullest(work.activations, work.parameters, batch) + reserved
    rows = hold_row_states(work.row_states, batch)
    return xp.max(batch * work.activations + work.parameters + rows, axis=0) + reserved


def _find_whole_peak(tensors: Tensors, recompute: Literal["none", "full"]) -> PerStage:
    """Return the peak when all layers run in one stage."""
    whole = _find_peaks(tensors, _end_runs(tensors.inputs, 1))
    if recompute == "none":
        return whole
    # sqrt(G) runs of about sqrt(G) layers (Chen et al. 2016, arXiv 1604.06174): the inputs of all
    # runs are kept, and one run at a time is there in full.
    count = xp.shape(tensors.inputs)[0]
    ends = _end_runs(tensors.inputs, round(math.sqrt(count)))
    entries, peaks = first_inputs(tensors.inputs, ends), _find_peaks(tensors, ends)
    return xp.minimum(whole, xp.sum(entries, axis=0) + xp.max(peaks, axis=0))


def hold_runs(division: Division, shares: LayerShares, ends: Ends, chunks: int = 1) -> Holding:
    """Compute the memory of each run of layers by itself, or of stages with several of them."""
    peaks = _find_peaks(shares.tensors, ends)
    return Holding(
        kept=stage_sums(shares.tensors.kept, ends, chunks),
        # One chunk runs backward at a time.
        peak=peaks if chunks == 1 else xp.max(list_chunks(peaks, chunks), axis=0),
        entry=first_inputs(shares.tensors.inputs, ends),
        states=stage_sums(find_states(division, shares), ends, chunks),
        rows=sum_row_states(division, shares, partial(stage_sums, ends=ends, chunks=chunks)),
    )


def hold_whole(division: Division, shares: LayerShares) -> Holding:
    """Compute the memory of a PE that runs all layers."""
    whole = hold_runs(division, shares, _end_runs(division.layers.x, 1))
    if division.options.recompute == "none":  # the same peak
        return whole
    return replace(whole, peak=_find_whole_peak(shares.tensors, division.options.recompute))


def _find_peaks(tensors: Tensors, ends: Ends) -> PerStage:
    """Return the peak in one pass through each run of layers."""
    # Backward at layer l: everything kept by layers up to l, and gradients of its input and output.
    # Early layers have the largest gradients, when later layers' tensors are free again: the sum of
    # both maxima would be 8 to 23 % above measurements (tests/grids/models/test_liveness.py).
    backward = tensors.backward
    so_far = xp.cumsum(xp.broadcast_to(tensors.kept, xp.shape(backward)), axis=0)
    before = xp.concatenate([xp.zeros_like(so_far[:1]), so_far])
    peak = stage_maxima(so_far + backward, ends) - at_starts(before, ends)
    return xp.maximum(peak, 0)  # a stage that a cell lacks would be negative


def list_tensors(
    layers: Layers, delta: Cells, rows_in: PerLayer | float, rows_out: PerLayer | float
) -> Tensors:
    """Compute bytes of a share `rows_in` of each layer's input and `rows_out` of its output."""
    rerun = layers.rerun
    return Tensors(
        inputs=rows_in * delta * layers.x,
        outputs=rows_out * delta * layers.y,
        kept=rows_out * (delta * layers.kept_items + layers.kept_bytes),
        rerun=None if rerun is None else rows_out * (delta * rerun.items + rerun.bytes),
    )


def hold_row_states(rows: RowStates, batch: Cells) -> PerStage:
    """Compute bytes of the states of rows that `batch` samples look up, at most all rows'."""
    return xp.asarray(xp.minimum(batch * xp.asarray(rows.sample), rows.most))


def sum_row_states(
    division: Division, shares: LayerShares, add: Callable[[PerLayer], PerStage]
) -> RowStates | None:
    """Sum the states of looked-up rows by stage; None if all states are whole.

    add: sums values of layers over each stage.
    """
    rows = find_rows(division.layers)
    if rows is None:
        return None
    row_bytes = division.state_bytes - division.weight_bytes
    # `find_states` counts the drawn rows, which do not depend on the batch.
    others = xp.where(is_table(rows), shares.weights - rows.drawn, 0.0)
    return RowStates(
        sample=add(row_bytes * rows.looked_up), most=add(row_bytes * xp.maximum(others, 0.0))
    )


def find_states(division: Division, shares: LayerShares) -> PerLayer:
    """Compute bytes of each layer's weights, gradients and optimizer states, whatever the batch.

    A table with a sparse gradient has gradients and states only of the drawn rows.
    """
    weights, rows = shares.weights, find_rows(division.layers)
    whole = division.state_bytes * weights
    if rows is None:
        return whole
    row_bytes = division.state_bytes - division.weight_bytes
    table = division.weight_bytes * weights + row_bytes * rows.drawn
    return xp.where(is_table(rows), table, whole)


def _end_runs(values: PerLayer, runs: int) -> Ends:
    """Return the ends of `runs` runs of about equally many layers."""
    count = xp.shape(values)[0]
    ends = np.minimum(np.arange(1, runs + 1) * math.ceil(count / runs), count)
    return xp.asarray(ends).reshape(-1, *[1] * (xp.ndim(values) - 1))
