"""Sum the layers to the work of the busiest PE of a group: stage one of the machine oracle.

Table III has its own (`kernels.paper.work`).
"""

from functools import partial

from kernels.arrays import Cells, PerLayer, PerStage
from kernels.compiled import compiled
from kernels.namespace import xp
from kernels.parallelism.layout import find_layout
from kernels.work.compute import layer_times
from kernels.work.division import Division
from kernels.work.group import GroupWork
from kernels.work.layers import Layers, LayerTimes
from kernels.work.memory import Holding, Own, Tensors, find_states, list_tensors
from kernels.work.touched import count_touched


def time_part(division: Division) -> LayerTimes:
    """Compute the times of a PE's share of each layer."""
    own = find_layout(division.parallelisms).take_part(division)
    return layer_times(own, division.pe, division.delta, division.options)


def reduce_part(division: Division, times: LayerTimes) -> GroupWork:
    """Compute the work of a group's busiest PE. times: of its shares of the layers."""
    layout = find_layout(division.parallelisms)
    stages, layers = layout.stages, layout.take_part(division)
    own = _take_own(division, layers)
    holding = stages.hold(division, own)
    forward_backward, fixed, launches = stages.time_layers(times, division)
    add = partial(stages.sum_layers, division=division)
    return GroupWork(
        forward_backward=forward_backward,
        update=_find_most(add(times.update)),
        fixed=fixed,
        launches=launches,
        activations=stages.hold_segments(division, own, holding),
        parameters=holding.states,
        gradient=_find_most(add(layers.w)),
        tensors=_find_most(add(xp.where(layers.w > 0, 1.0, 0.0))),
        sent=layout.reduce_sent(division, layers),
        touched=count_touched(division.layers, layers.w, add),
        row_states=holding.rows,
        gathered_weights=_gather(division, own) if division.options.zero == 3 else None,
    )


def take_own(division: Division) -> Own:
    """Compute the memory of each layer on one PE of the group; gathered outputs are whole."""
    return _take_own(division, find_layout(division.parallelisms).take_part(division))


def _take_own(division: Division, part: Layers) -> Own:
    rows = find_layout(division.parallelisms).share_rows(division)
    return Own(list_tensors(division.layers, division.delta, *rows), part.w + division.layers.bias)


def _gather(division: Division, own: Own) -> Cells:
    """Sum bytes of the two largest layers' weights: one computes while the next is gathered."""
    return xp.sum(xp.sort(division.delta * own.weights, axis=0)[-2:], axis=0)


@compiled(numpy=True)
def hold(division: Division) -> Holding:
    """Compute the memory of a group's PEs, by stage."""
    return find_layout(division.parallelisms).stages.hold(division, take_own(division))


def hold_layers(division: Division) -> tuple[Tensors, PerLayer]:
    """Return each layer's tensors on one PE [B per sample], and its weights' states [B]."""
    own = take_own(division)
    return own.tensors, find_states(division, own)


def _find_most(values: PerStage) -> Cells:
    """Return the values of the PE with the most."""
    return xp.max(values, axis=0)
