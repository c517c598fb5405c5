"""Sum the layers to the work of the busiest PE of a group: stage one of the machine oracle.

Table III has its own (`kernels.paper.work`).
"""

from functools import partial

from paradl.kernels.arrays import Cells, PerLayer, PerStage, xp
from paradl.kernels.parallelism.layout import find_layout
from paradl.kernels.work.compute import layer_times
from paradl.kernels.work.division import Division
from paradl.kernels.work.group import GroupWork, count_touched
from paradl.kernels.work.layers import Layers, LayerTimes
from paradl.kernels.work.memory import LayerShares, Tensors, find_states, list_tensors


def time_part(division: Division) -> LayerTimes:
    """Compute the times of a PE's share of each layer."""
    shares = find_layout(division.parallelisms).take_part(division)
    return layer_times(shares, division.pe, division.delta, division.options)


def reduce_part(division: Division, times: LayerTimes) -> GroupWork:
    """Compute the work of a group's busiest PE. times: of its shares of the layers."""
    layout = find_layout(division.parallelisms)
    stages, layers = layout.stages, layout.take_part(division)
    shares = share_layers(division, layers)
    holding = stages.hold(division, shares)
    # Of several stages each number is the largest, so that their sum is an upper bound: a stage
    # with the most samples' work need not be the one with most launches or weights.
    forward_backward, fixed, launches = stages.time_layers(times, division)
    add = partial(stages.sum_layers, division=division)
    # The two largest layers' weights: one computes while the next is gathered.
    gathers = division.options.zero == 3
    largest = xp.sort(division.delta * shares.weights, axis=0)[-2:] if gathers else None
    return GroupWork(
        forward_backward=forward_backward,
        update=_find_most(add(times.update)),
        fixed=fixed,
        launches=launches,
        activations=stages.hold_segments(division, shares, holding),
        parameters=holding.states,
        # Weights alone, without biases, as in Table III.
        gradient=_find_most(add(layers.w)),
        tensors=_find_most(add(xp.where(layers.w > 0, 1.0, 0.0))),
        sent=layout.reduce_sent(division, layers),
        touched=count_touched(division.layers, layers.w, add),
        row_states=holding.rows,
        gathered_weights=None if largest is None else xp.sum(largest, axis=0),
    )


def share_layers(division: Division, part: Layers | None = None) -> LayerShares:
    """Compute the memory of each layer on one PE of the group; gathered outputs are whole.

    part: its share of the layers, if known.
    """
    layout = find_layout(division.parallelisms)
    part, rows = part or layout.take_part(division), layout.share_rows(division)
    # Every PE has all biases, as in Table III.
    return LayerShares(
        list_tensors(division.layers, division.delta, *rows), part.w + division.layers.bias
    )


def hold_layers(division: Division) -> tuple[Tensors, PerLayer]:
    """Return each layer's tensors on one PE [B per sample], and its weights' states [B]."""
    shares = share_layers(division)
    return shares.tensors, find_states(division, shares)


def _find_most(values: PerStage) -> Cells:
    """Return the values of the PE with the most."""
    return xp.max(values, axis=0)
