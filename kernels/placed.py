"""Placed groups: each PE runs operators of its own, in order, and waits for what it reads.

Pal et al. 2019 (IEEE Micro 39(5), "Optimizing Multi-GPU Parallelization Strategies for Deep
Learning Training"), model parallelism by placement. What each PE runs, and in which order, is found
before (docs/placement.md): a step is then as long as its critical path, of layers and of messages.
Of a step in S segments (micro-batches), some lie on it more often than others: those that fill the
group and drain it, and all of the PE that is busy longest.
"""

from dataclasses import replace
from functools import partial

from kernels.arrays import AnyArray, Cells, PerDevice, PerLayer
from kernels.division import Division
from kernels.group import GroupWork, Placed, total, whole_work
from kernels.layers import LayerTimes
from kernels.namespace import map_leading, xp
from kernels.touched import count_touched


def work(division: Division, times: LayerTimes) -> GroupWork:
    """The critical path's time, and of all else the PE that has the most."""
    layers, placed = division.layers, expect_placed(division)
    # A third of what a pass takes whatever its batch is forward (docs/machine.md).
    passes = (placed.forward + 2 * placed.backward) / 3
    segments = xp.asarray(placed.segments)
    return replace(
        whole_work(layers, times),
        forward_backward=total(placed.forward * times.forward + placed.backward * times.backward),
        # Each segment is a pass of its own: it pays what a pass takes, and is launched.
        fixed=segments * total(passes * times.fixed),
        launches=segments * _find_most(times.launches, placed),
        update=_find_most(times.update, placed),
        activations=sum_devices(2 * (layers.x + layers.y), placed.runs),
        parameters=sum_devices(2 * layers.w + layers.bias, placed.runs),
        gradient=_find_most(layers.w, placed),
        touched=count_touched(layers, layers.w, partial(sum_devices, runs=placed.runs)),
        tensors=_find_most(xp.where(layers.w > 0, 1.0, 0.0), placed),
        path_messages=xp.asarray(placed.messages),
        path_items=xp.asarray(placed.items),
        segmented=xp.ones(()),
    )


def expect_placed(division: Division) -> Placed:
    """What each PE of a placed group runs."""
    placed = division.placement.placed
    assert placed is not None  # the grid found it, or there is no such group
    return placed


def sum_devices(values: PerLayer, runs: PerDevice) -> AnyArray:
    """Sum over the layers that each PE runs [device, cells]."""
    return xp.sum(xp.asarray(runs) * xp.asarray(values), axis=1)


def find_peaks(kept: PerLayer, gradients: PerLayer, runs: PerDevice) -> AnyArray:
    """The most that is there in one pass on each PE [device, cells].

    kept: of each layer, for the backward pass; gradients: of its input and output.
    """

    def find_peak(own: AnyArray) -> AnyArray:
        so_far = xp.cumsum(own * kept, axis=0)
        return xp.max(own * (so_far + gradients), axis=0)

    # One PE after the other: all at once would take the memory of PEs x layers x cells.
    peaks: AnyArray = map_leading(find_peak, xp.asarray(runs))
    return peaks


def _find_most(values: PerLayer, placed: Placed) -> Cells:
    """Of the PE that has the most: PEs update, and exchange with other replicas, at once."""
    return xp.max(sum_devices(values, placed.runs), axis=0)
