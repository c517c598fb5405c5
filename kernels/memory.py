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
from kernels.case import Case
from kernels.compiled import compiled
from kernels.division import Division
from kernels.group import GroupWork, find_fullest
from kernels.layers import Layers
from kernels.namespace import xp
from kernels.own_part import row_share, take_own_part
from kernels.pipeline import at_starts, first_inputs, stage_maxima, stage_sums
from kernels.placed import expect_placed, find_peaks, sum_devices
from kernels.touched import RowStates, find_rows, is_table


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Holding:
    """What each stage holds, of which the fullest counts: one stage where there is no pipeline.

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


@compiled("recompute", numpy=True)
def hold_rows(
    layers: Layers, factors: Factors, delta: Cells, recompute: Literal["none", "full"]
) -> Cells:
    """Bytes a sample of the fullest PE of a group that divides rows by `factors`."""
    tensors = _list_tensors(layers, delta, *_share_rows(layers, factors))
    return _find_whole_peak(tensors, recompute)[0]


@compiled(numpy=True)
def hold(division: Division) -> Holding:
    """What the PEs of a group hold at once."""
    if division.group == "pipeline":
        return _hold_runs(division, xp.asarray(division.placement.ends))
    if division.group == "placement":
        return _hold_devices(division)
    return _hold_whole(division)


def hold_alive(work: GroupWork, division: Division) -> GroupWork:
    """The work with what is alive at the same time as its activations and parameters [B]."""
    holding = hold(division)
    if division.group != "pipeline":
        return _hold_activations(work, holding, holding.peak)
    recompute = division.options.recompute == "full"
    # A pipeline of one stage is not cut into segments.
    segments = xp.where(division.p2 > 1, division.segments, 1.0)
    activations = _hold_segments(holding, segments, recompute)
    if recompute:  # a pipeline of one stage is cut into runs, as any other network
        alone = _mark_first(activations) * _hold_whole(division).peak
        activations = xp.where(division.p2 > 1, activations, alone)
    return _hold_activations(work, holding, activations)


def _hold_activations(work: GroupWork, holding: Holding, activations: PerStage) -> GroupWork:
    return replace(
        work, activations=activations, parameters=holding.states, row_states=holding.rows
    )


def _hold_segments(holding: Holding, segments: Cells, recompute: bool) -> PerStage:
    """Bytes a sample of each stage of a pipeline (GPipe, Huang et al. 2019).

    One segment goes backward at a time. What the others read is kept, unless their forward passes
    are run again from what came into the stage.
    """
    entry, first = holding.entry, _mark_first(holding.entry)
    # A stage but the first holds what it got whole; the first one's samples are in what it keeps.
    received = (1 - first) * entry
    waiting = 1 - 1 / segments
    others = waiting * (first * entry if recompute else holding.kept)
    return others + received + holding.peak / segments


def find_memory(case: Case, work: GroupWork) -> Cells:
    """Bytes of the fullest PE of every cell."""
    batch, reserved = case.run.batch, case.pe.reserved
    if work.row_states is None:
        return find_fullest(work.activations, work.parameters, batch) + reserved
    rows = hold_row_states(work.row_states, batch)
    return xp.max(batch * work.activations + work.parameters + rows, axis=0) + reserved


def _hold_whole(division: Division) -> Holding:
    """What a PE that runs all layers holds."""
    whole = _hold_runs(division, _end_runs(division.layers.x, 1))
    peak = _find_whole_peak(_divide_tensors(division), division.options.recompute)
    return replace(whole, peak=peak)


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


def _hold_devices(division: Division) -> Holding:
    """What each PE of a placed group holds: its layers', and all that it gets of others.

    One segment goes backward at a time, and what the others read is kept, as in a pipeline.
    """
    placed, tensors = expect_placed(division), _divide_tensors(division)
    received = division.delta * xp.asarray(placed.received)
    kept = sum_devices(tensors.kept, placed.runs)
    peaks = find_peaks(tensors.kept, tensors.inputs + tensors.outputs, placed.runs)
    part = 1 / xp.asarray(placed.segments)
    return Holding(
        kept=kept,
        peak=(1 - part) * kept + received + part * peaks,
        entry=received,
        states=sum_devices(_find_states(division), placed.runs),
        rows=_sum_row_states(division, partial(sum_devices, runs=placed.runs)),
    )


def _mark_first(values: PerStage) -> PerStage:
    """1 for the first stage, 0 for the others."""
    return xp.concatenate([xp.ones_like(values[:1]), xp.zeros_like(values[1:])])


def _hold_runs(division: Division, ends: Ends) -> Holding:
    """What each run of layers, up to its end, holds by itself."""
    tensors = _divide_tensors(division)
    return Holding(
        kept=stage_sums(tensors.kept, ends),
        peak=_find_peaks(tensors, ends),
        entry=first_inputs(tensors.inputs, ends),
        states=stage_sums(_find_states(division), ends),
        rows=_sum_row_states(division, partial(stage_sums, ends=ends)),
    )


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


def _divide_tensors(division: Division) -> Tensors:
    """What one PE of the group has of each layer's tensors; gathered outputs are whole."""
    layers, delta = division.layers, division.delta
    if division.group != "spatial":
        return _list_tensors(layers, delta, 1.0, 1.0)
    return _list_tensors(layers, delta, *_share_rows(layers, division.placement.factors))


def _share_rows(layers: Layers, factors: Factors) -> tuple[PerLayer, PerLayer]:
    """The part of a layer's input and output that the fullest PE holds."""
    return row_share(layers.extents_x, factors), row_share(layers.extents_y, factors)


def _list_tensors(
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


def _sum_row_states(division: Division, add: Callable[[PerLayer], PerStage]) -> RowStates | None:
    """The states of looked-up rows by stage; None where all states are whole.

    add: sums values of layers over each stage.
    """
    rows = find_rows(division.layers)
    if rows is None:
        return None
    of_row = division.state_bytes - division.weight_bytes
    # Those of the drawn rows are there whatever the batch (`_find_states`).
    others = xp.where(is_table(rows), _own_weights(division) - rows.drawn, 0.0)
    return RowStates(
        sample=add(of_row * rows.looked_up), most=add(of_row * xp.maximum(others, 0.0))
    )


def _find_states(division: Division) -> PerLayer:
    """Bytes of each layer's weights with gradients and the optimizer's states, whatever the batch.

    Of a table with a sparse gradient, gradients and states are those of the drawn rows alone.
    """
    weights, rows = _own_weights(division), find_rows(division.layers)
    whole = division.state_bytes * weights
    if rows is None:
        return whole
    of_row = division.state_bytes - division.weight_bytes
    table = division.weight_bytes * weights + of_row * rows.drawn
    return xp.where(is_table(rows), table, whole)


def _own_weights(division: Division) -> PerLayer:
    """Weights and biases of which a PE has the states."""
    return take_own_part(division).w + division.layers.bias


def _end_runs(values: PerLayer, runs: int) -> Ends:
    """The layer after the last of each of so many runs of as many layers."""
    count = xp.shape(values)[0]
    ends = np.minimum(np.arange(1, runs + 1) * math.ceil(count / runs), count)
    return xp.asarray(ends).reshape(-1, *[1] * (xp.ndim(values) - 1))


def hold_layers(division: Division) -> tuple[Tensors, PerLayer]:
    """Each layer's tensors on one PE of the group [B a sample], and its weights' states [B]."""
    return _divide_tensors(division), _find_states(division)
