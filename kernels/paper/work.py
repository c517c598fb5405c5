"""Table III, stage one: sum the layers to the work of the busiest PE of a group.

s_l = 1 if the group splits layer l, else 0.
"""

from dataclasses import replace

from paradl.kernels.arrays import empty_last, xp
from paradl.kernels.paper.inputs import TableGroup, TableTimes, TableWork
from paradl.kernels.paper.sums import (
    count_halos,
    held,
    largest,
    merged,
    passed_on,
    split_point,
    stage_sums,
    total,
)


def reduce_table(group: TableGroup, times: TableTimes) -> TableWork:
    """Compute the work of a group by the row of Table III for its strategy."""
    match group.divides:
        case ():
            return _take_all(group, times)
        case ("rows",):
            return _divide_rows(group, times)
        case ("layers",):
            return _cut_stages(group, times)
        case ("filters" | "channels",):
            return _divide_channels(group, times)
        case others:
            raise AssertionError(others)  # not in Table III, so grids refuse it


def _take_all(group: TableGroup, times: TableTimes) -> TableWork:
    """Compute the work of a group of one PE: serial, and each replica of data parallelism."""
    layers = group.layers
    # One empty message, not none: fields have the same rank for every strategy.
    nothing, no_message = xp.zeros(()), xp.zeros((1,) * xp.ndim(layers.x))
    return TableWork(
        forward_backward=total(times.forward + times.backward),
        update=total(times.update),
        # With gradients. A tensor counts both as an output and as the next layer's input, so four
        # times in total: the paper's bound without reused buffers.
        activations=merged(2 * (layers.x + layers.y)),
        # Biases once: Table III has no gradients of them, neither here nor in the exchange below.
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


def _divide_rows(group: TableGroup, times: TableTimes) -> TableWork:
    """Compute spatial work: split layers' activations and compute divide by p2, weights do not."""
    layers, split, p2 = group.layers, group.split, group.degree
    items = split * count_halos(layers, group.factors, group.options.conventions)
    return replace(
        _take_all(group, times),
        # Update, parameters and gradient are those of one PE: each has all weights.
        forward_backward=held(times.forward + times.backward, split, p2),
        activations=xp.expand_dims(held(2 * (layers.x + layers.y), split, p2), 0),
        halo_items=total(items),
        # Layers without a halo (kernels of 1, or not split) have no start-ups either.
        halo_exchanges=total(xp.where(items > 0, 1.0, 0.0)),
        split_items=split_point(layers.y, split),
        replicated=xp.ones(()),
    )


def _cut_stages(group: TableGroup, times: TableTimes) -> TableWork:
    """Compute pipeline work: the largest stage counts, separately for each quantity."""
    layers, ends = group.layers, xp.asarray(group.ends)
    return replace(
        _take_all(group, times),
        # Two maxima, as in Table III; with BW_l = 2 FW_l both are of the same stage.
        forward_backward=largest(times.forward, ends) + largest(times.backward, ends),
        update=largest(times.update, ends),
        activations=stage_sums(2 * (layers.x + layers.y), ends),
        parameters=stage_sums(2 * layers.w + layers.bias, ends),
        # Stages exchange concurrently with their counterparts in other replicas; the largest is
        # last.
        gradient=largest(layers.w, ends),
        stage_items=passed_on(layers.y, ends, group.degree),
        pipelined=xp.ones(()),
    )


def _divide_channels(group: TableGroup, times: TableTimes) -> TableWork:
    """Compute filter or channel work: split layers' weights, update and compute divide by p2."""
    layers, split, p2 = group.layers, group.split, group.degree
    # A layer's output is exchanged if it is split and not the last.
    gathers = empty_last(split)
    gathered = gathers * layers.y
    if group.options.algorithm != "best":  # linear in the size, so the sum of layers suffices
        gathers, gathered = merged(gathers), merged(gathered)
    return replace(
        _take_all(group, times),
        # Activations are those of one PE: each PE holds gathered outputs in full.
        forward_backward=held(times.forward + times.backward, split, p2),
        update=held(times.update, split, p2),
        # Weights are divided, but each PE holds all biases.
        parameters=xp.expand_dims(held(2 * layers.w, split, p2), 0) + merged(layers.bias),
        gradient=held(layers.w, split, p2),
        gathered=gathered,
        gathers=gathers,
    )
