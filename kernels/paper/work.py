"""Table III, stage one: the layers reduced, once, to what the busiest PE of a group does.

s_l = 1 where the group splits layer l, else 0.
"""

from dataclasses import dataclass, replace

import jax

from kernels.arrays import Cells, PerMessage, PerStage
from kernels.names.parallelisms import KINDS
from kernels.namespace import xp
from kernels.work.division import Division
from kernels.work.group import held, mark_exchanged, merged, total
from kernels.work.layers import LayerTimes
from kernels.work.rows import layer_halo, split_point
from kernels.work.stages import largest, passed_on, stage_sums


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TableWork:
    """Work of the busiest PE of a group. Items are counted a sample, parameters once.

    forward_backward [s a sample], update [s an iteration]; activations, parameters: items in
    memory with their gradients, of which the fullest stage counts; gradient: weights that a PE
    exchanges with the other replicas; gathered, gathers: items and collectives of the layer-wise
    exchange; halo_items, halo_exchanges; split_items: output of the last split layer; stage_items:
    largest output that passes from stage to stage. Marks, 1 or 0, so that strategies share
    compiled programs: replicated, each PE of a group holds all weights; pipelined.
    """

    forward_backward: Cells
    update: Cells
    activations: PerStage
    parameters: PerStage
    gradient: Cells
    gathered: PerMessage
    gathers: PerMessage
    halo_items: Cells
    halo_exchanges: Cells
    split_items: Cells
    stage_items: Cells
    replicated: Cells
    pipelined: Cells


def reduce_table(division: Division, times: LayerTimes) -> TableWork:
    """The work of a group by Table III: its rows, one a group strategy."""
    match [KINDS[name].divides for name in division.parallelisms]:
        case []:
            return _take_all(division, times)
        case ["rows"]:
            return _divide_rows(division, times)
        case ["layers"]:
            return _cut_stages(division, times)
        case ["filters" | "channels"]:
            return _divide_channels(division, times)
        case others:
            raise AssertionError(others)  # Table III has no row of it, and so no grid has either


def _take_all(division: Division, times: LayerTimes) -> TableWork:
    """The group of one PE: serial, and each replica of data parallelism."""
    layers = division.layers
    # A message of nothing, not none: fields have the same ranks in every group.
    nothing, no_message = xp.zeros(()), xp.zeros((1,) * xp.ndim(layers.x))
    return TableWork(
        forward_backward=total(times.forward + times.backward),
        update=total(times.update),
        # Each with its gradient. A tensor counts as an output and as the next layer's input: four
        # times in all, the paper's bound with no buffer reused.
        activations=merged(2 * (layers.x + layers.y)),
        # Biases once: Table III has no gradient of theirs in memory, nor in the exchange below.
        parameters=merged(2 * layers.w + layers.bias),
        gradient=total(layers.w),
        gathered=no_message,
        gathers=no_message,
        halo_items=nothing,
        halo_exchanges=nothing,
        split_items=nothing,
        stage_items=nothing,
        replicated=nothing,
        pipelined=nothing,
    )


def _divide_rows(division: Division, times: LayerTimes) -> TableWork:
    """Spatial: activations and compute divide by p2 in split layers; weights are replicated."""
    layers, placement, p2 = division.layers, division.placement, division.group
    split = placement.split
    items = split * layer_halo(layers, placement.factors, division.options.halos)
    return replace(
        _take_all(division, times),
        # Update, parameters and gradient stay those of one PE: each has all the weights.
        forward_backward=held(times.forward + times.backward, split, p2),
        activations=xp.expand_dims(held(2 * (layers.x + layers.y), split, p2), 0),
        halo_items=total(items),
        # A layer without a halo (kernels of 1, or not split) has no start-ups either.
        halo_exchanges=total(xp.where(items > 0, 1.0, 0.0)),
        split_items=split_point(layers.y, split),
        replicated=xp.ones(()),
    )


def _cut_stages(division: Division, times: LayerTimes) -> TableWork:
    """Pipeline: the largest stage counts, for each quantity by itself."""
    layers, ends = division.layers, xp.asarray(division.placement.ends)
    return replace(
        _take_all(division, times),
        # Two maxima, as Table III has them; with BW_l = 2 FW_l one stage is the largest in both.
        forward_backward=largest(times.forward, ends) + largest(times.backward, ends),
        update=largest(times.update, ends),
        activations=stage_sums(2 * (layers.x + layers.y), ends),
        parameters=stage_sums(2 * layers.w + layers.bias, ends),
        # Stages exchange at once, each with its like in other replicas: the largest ends last.
        gradient=largest(layers.w, ends),
        stage_items=passed_on(layers.y, ends, division.group),
        pipelined=xp.ones(()),
    )


def _divide_channels(division: Division, times: LayerTimes) -> TableWork:
    """Filter, channel: weights, update and compute divide by p2 in split layers."""
    layers, split, p2 = division.layers, division.placement.split, division.group
    gathers = mark_exchanged(split)
    gathered = gathers * layers.y
    if division.options.algorithm != "best":  # linear in the size: the layers' sum is enough
        gathers, gathered = merged(gathers), merged(gathered)
    return replace(
        _take_all(division, times),
        # Activations stay those of one PE: what is gathered, each PE holds in full.
        forward_backward=held(times.forward + times.backward, split, p2),
        update=held(times.update, split, p2),
        # Weights are divided and not biases, of which each PE holds all.
        parameters=xp.expand_dims(held(2 * layers.w, split, p2), 0) + merged(layers.bias),
        gradient=held(layers.w, split, p2),
        gathered=gathered,
        gathers=gathers,
    )
