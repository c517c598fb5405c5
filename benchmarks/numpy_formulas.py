"""The formulas of `data` and `data+filter` as one writes them in numpy: the engine's rival.

ParaDL, Table III, weak scaling. Sums over the layers first, then one broadcast expression a
variable, in float64. D samples, b samples a replica, p PEs = p1 replicas x p2, |x_l|, |y_l|, |w_l|,
|bi_l| items, s_l = 1 where filters are split, alpha [s], beta [s/B].
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.systems import System
from grids.inputs.case import Workload
from grids.models.layers import Floats

Arrays = dict[str, NDArray[Any]]

DELTA = 4.0  # bytes an item
UPDATE_ACCESSES = 5.0  # of SGD with momentum
MEMORY, TOO_MANY_PES, GROUP_DOES_NOT_DIVIDE, UNEVEN, BATCH_EXCEEDS_DATASET = 1, 2, 16, 32, 64


@dataclass(frozen=True)
class Axes:
    """The cells: p, b and the bandwidth beyond a node, each along a dimension of its own."""

    p: Floats
    b: Floats
    inter_bandwidth: Floats
    gamma: float

    @classmethod
    def from_values(cls, axes: Mapping[str, Floats], gamma: float) -> "Axes":
        """The open mesh of a grid's numeric axes."""
        p, b, bandwidth = np.ix_(axes["pe"], axes["batch"], axes["inter_bandwidth"])
        return cls(p, b, bandwidth, gamma)


def data(work: Workload, axes: Axes) -> Arrays:
    """Every PE is a replica."""
    table, p, b = work.table, axes.p, axes.b
    passes = work.samples / (b * p)
    alpha, beta = _link(work.system, p, axes.inter_bandwidth)
    memory = _memory(axes, table.x + table.y, table.w, table.bias)
    comp = passes * (b * _seconds(work).sum() + _update(work).sum())
    comm = passes * _all_reduce(p, DELTA * table.w.sum(), alpha, beta)
    limit = MEMORY * (memory > work.system.pe.memory_capacity) + _exceeds(work, b * p)
    return _as_stored(comp, comm, memory, limit)


def data_filter(work: Workload, axes: Axes) -> Arrays:
    """Groups of a node's PEs divide the filters of all convolutions."""
    table, p, b = work.table, axes.p, axes.b
    p2 = work.system.pes_per_node
    p1 = np.where(p % p2 == 0, p // p2, np.nan)
    split = np.array([kind == "conv" for kind in table.kinds])
    part = np.where(split, 1 / p2, 1.0)
    passes = work.samples / (b * p1)
    memory = _memory(axes, table.x + table.y, table.w * part, table.bias)
    comp = passes * (b * (_seconds(work) * part).sum() + (_update(work) * part).sum())
    gradient = DELTA * (table.w * part).sum()
    alpha, beta = _link(work.system, p, axes.inter_bandwidth)
    shared = max(1.0, p2 / work.system.links_per_node)
    phi = np.where(p1 > 1, shared, 1.0)
    exchange = _layer_collectives(work, axes, p2, split)
    comm = passes * (_all_reduce(p1, gradient, alpha, phi * beta) + exchange)
    filters = table.filters[split]
    limit = (
        MEMORY * (memory > work.system.pe.memory_capacity)
        + TOO_MANY_PES * bool(p2 > filters.min())
        + UNEVEN * bool((filters % p2).any())
        + _exceeds(work, b * p1)
    )
    divides = np.isfinite(p1)
    return _as_stored(
        comp,
        comm,
        np.where(divides, memory, np.nan),
        np.where(divides, limit, GROUP_DOES_NOT_DIVIDE),
    )


FORMULAS: dict[str, Callable[[Workload, Axes], Arrays]] = {
    "data": data,
    "data+filter": data_filter,
}


def _layer_collectives(work: Workload, axes: Axes, p2: int, split: NDArray[np.bool_]) -> Floats:
    """sum_{l<G, s_l=1} AG(p2, b delta y_l) + AR(p2, b delta y_l), inside a node."""
    node = work.system.levels[0]
    y = work.table.y[:-1][split[:-1]]
    transfer: Floats = axes.b * DELTA * y.sum() / p2 / node.bandwidth
    return 3 * (p2 - 1) * (y.size * node.latency + transfer)


def _link(system: System, q: Floats, inter_bandwidth: Floats) -> tuple[Floats, Floats]:
    """alpha and beta of the smallest level that spans q PEs."""
    node, *_, last = system.levels
    inside = [q <= level.pes for level in system.levels]
    alpha = np.select(inside, [level.latency for level in system.levels], last.latency)
    return alpha, np.where(q <= node.pes, 1 / node.bandwidth, 1 / inter_bandwidth)


def _all_reduce(q: Floats, m: float, alpha: Floats, beta: Floats) -> Floats:
    return 2 * (q - 1) * (alpha + m / q * beta)


def _seconds(work: Workload) -> Floats:
    """FW_l + BW_l as measured."""
    assert work.seconds is not None  # of ResNet-50 on a V100 there is a profile
    return work.seconds


def _update(work: Workload) -> Floats:
    items = work.table.w + work.table.bias
    return UPDATE_ACCESSES * DELTA * items / work.system.pe.memory_bandwidth


def _memory(axes: Axes, activations: Floats, weights: Floats, bias: Floats) -> Floats:
    items: Floats = 2 * axes.b * activations.sum() + 2 * weights.sum() + bias.sum()
    return axes.gamma * DELTA * items


def _exceeds(work: Workload, global_batch: Floats) -> NDArray[Any]:
    return BATCH_EXCEEDS_DATASET * (global_batch > work.samples)


def _as_stored(comp: Floats, comm: Floats, memory: Floats, limit: NDArray[Any]) -> Arrays:
    times = {"comp_time": comp, "comm_time": comm, "memory": memory}
    stored = {name: values.astype("float32") for name, values in times.items()}
    return stored | {"limit": limit.astype("uint8")}
