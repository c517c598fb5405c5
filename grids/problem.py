"""A problem: the kernels' inputs for one model, dataset, system and strategy over numeric cells.

Every numeric axis of the grid is one dimension of the cells, in the grid's order; a value that does
not vary along an axis has size 1 there. The group size `best` adds a leading dimension of choices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax
import numpy as np

from grids.divisors import divisors
from grids.models.layers import Floats, LayerTable
from grids.parameters import DEFAULTS
from grids.placement import Mask, kernel_layers, place
from grids.strategies import GroupStrategy, Strategy
from grids.systems import System
from kernels import (
    PE,
    Bounds,
    Layers,
    Network,
    Optimizer,
    Placement,
    Run,
    layer_times,
    shared_links,
    slowdown,
)

# The axes along which every layer is reduced anew: what its time depends on, and how it is split.
LAYERED = ("pe", "group", "peak_flops", "efficiency", "memory_bandwidth", "delta")


@dataclass(frozen=True)
class Problem:
    """Arguments of `kernels.reduce_layers` and `kernels.answer`; `choices`: pick the best group."""

    layers: Layers
    pe: PE
    network: Network
    placement: Placement
    bounds: Bounds
    run: Run
    group: GroupStrategy
    choices: bool


@dataclass(frozen=True, eq=False)
class Workload:
    """The layers of a model for one dataset on one system, and what was measured of them.

    seconds [G]: measured FW_l + BW_l on this system's device, None where only the roofline is
    known. mask: the layers that a group splits, None for each strategy's own choice.
    """

    table: LayerTable
    samples: int
    system: System
    seconds: Floats | None = None
    mask: Mask = None


@dataclass(frozen=True)
class Settings:
    """What a user fixed: parameters by name, in SI units, and how batches scale."""

    parameters: Mapping[str, float]
    strong: bool = False
    optimizer: Optimizer = "sgd"


class _Values:
    """Looks a parameter up: an axis of the grid, else fixed by the user, else the default."""

    def __init__(self, axes: Mapping[str, Floats], settings: Settings, leading: int) -> None:
        self.rank = len(axes) + leading
        self._given = {name: np.asarray(value) for name, value in settings.parameters.items()}
        for position, (name, values) in enumerate(axes.items()):
            shape = [1] * self.rank
            shape[leading + position] = values.size
            self._given[name] = values.reshape(shape)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str, default: float | None = None) -> Floats:
        """The values [cells], all dimensions present."""
        value = self._given.get(name, DEFAULTS.get(name, default))
        array = np.asarray(value, float)
        return array if array.ndim == self.rank else array.reshape((1,) * self.rank)


def build(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> Problem:
    """The problem over the outer product of `axes`, which are in the grid's order, `pe` first."""
    choices = strategy.group == "best"
    values = _Values(axes, settings, leading=1 if choices else 0)
    with jax.enable_x64(True):
        pe = _pe(workload.system, values)
        network = _network(workload.system, values)
        layers = _layers(workload, values)
        run = _run(strategy, values, workload, settings.strong)
        run = replace(run, phi=_contention(strategy, values, network, run))
        costs = _costs(strategy, layers, pe, values)
    p, p2 = np.asarray(run.p), np.asarray(run.p2)
    placement, bounds = place(strategy, workload.table, workload.mask, costs, p, p2)
    group = strategy.group_strategy
    return Problem(layers, pe, network, placement, bounds, run, group, choices)


def _costs(strategy: Strategy, layers: Layers, pe: PE, values: _Values) -> Floats:
    """FW_l + BW_l [G, cells], which a pipeline's stages balance."""
    if strategy.group_strategy != "pipeline":
        return np.zeros((0,) * (values.rank + 1))
    times = layer_times(layers, pe, values.get("delta"))
    costs: Floats = np.asarray(times.forward) + np.asarray(times.backward)
    return costs


def _contention(strategy: Strategy, values: _Values, network: Network, run: Run) -> Floats:
    """phi of the gradient exchange: as given, else of the p2 rings that share a node's links.

    Whole weights, on every PE or in a spatial group, are one ring, with the links to itself.
    """
    if "phi" in values:
        return values.get("phi")
    if strategy.group_strategy in ("none", "spatial"):
        return np.ones((1,) * values.rank)
    return np.asarray(shared_links(network, run.p, run.p1, run.p2))


def _layers(workload: Workload, values: _Values) -> Layers:
    """The layers with their slowdown: measured over roofline time on the system as it stands.

    A faster PE speeds a measured layer up as it does the roofline; the bytes of an item are part of
    the measurement, and change it not.
    """
    layers = _over_cells(kernel_layers(workload.table), values.rank)
    if workload.seconds is None:
        return layers
    nominal = _pe(workload.system, _Values({}, Settings({}), leading=0))
    seconds = workload.seconds.reshape(-1, *[1] * values.rank)
    slower = slowdown(layers, nominal, values.get("delta"), seconds)
    return replace(layers, slowdown=np.asarray(slower))


def _over_cells(layers: Layers, rank: int) -> Layers:
    cells = (1,) * rank
    spread: Layers = jax.tree.map(lambda each: each.reshape(*each.shape, *cells), layers)
    return spread


def _pe(system: System, values: _Values) -> PE:
    return PE(
        peak_flops=values.get("peak_flops", system.pe.peak_flops),
        efficiency=values.get("efficiency", system.pe.efficiency),
        memory_capacity=values.get("memory_capacity", system.pe.memory_capacity),
        memory_bandwidth=values.get("memory_bandwidth", system.pe.memory_bandwidth),
    )


def _network(system: System, values: _Values) -> Network:
    places = ["intra" if n == 0 else "inter" for n in range(len(system.levels))]
    latency = [
        values.get(f"{place}_latency", level.latency)
        for place, level in zip(places, system.levels, strict=True)
    ]
    bandwidth = [
        values.get(f"{place}_bandwidth", level.bandwidth)
        for place, level in zip(places, system.levels, strict=True)
    ]
    staging = system.staging
    return Network(
        span=np.array([level.pes for level in system.levels], float),
        latency=np.stack(np.broadcast_arrays(*latency)),
        bandwidth=np.stack(np.broadcast_arrays(*bandwidth)),
        pes_per_node=np.asarray(float(system.pes_per_node)),
        links_per_node=np.asarray(float(system.links_per_node)),
        staging_latency=values.get("staging_latency", staging.latency if staging else 0.0),
        staging_bandwidth=values.get("staging_bandwidth", staging.bandwidth if staging else np.inf),
        phi_halo=values.get("phi_halo", system.contention.halo),
        phi_gather=values.get("phi_gather", system.contention.split_gather),
    )


def _run(strategy: Strategy, values: _Values, workload: Workload, strong: bool) -> Run:
    p = values.get("pe")
    # Of the shape of p, also where it is constant: all strategies then share one compiled program.
    size = _group_size(strategy, values, workload.system, p)
    p2 = np.broadcast_to(size, np.broadcast_shapes(size.shape, p.shape))
    p1 = np.maximum(p // p2, 1) if strategy.replicated else np.ones((1,) * values.rank)
    batch = values.get("batch")
    return Run(
        p=p,
        p1=p1,
        p2=p2,
        batch=batch / p1 if strong else batch,
        global_batch=batch if strong else batch * p1,
        samples=np.asarray(float(workload.samples)),
        segments=_segments(strategy, values),
        delta=values.get("delta"),
        gamma=values.get("gamma"),
        phi=np.ones((1,) * values.rank),
    )


def _segments(strategy: Strategy, values: _Values) -> Floats:
    if strategy.segments is None:
        return values.get("segments")
    return np.full((1,) * values.rank, float(strategy.segments))


def _group_size(strategy: Strategy, values: _Values, system: System, p: Floats) -> Floats:
    """p2: one PE, all of them, or the group that the user or the node gives a hybrid."""
    if strategy.group_strategy == "none":
        return np.ones((1,) * values.rank)
    if not strategy.hybrid:
        return p
    if strategy.group == "best":
        return _divisors(p)
    if strategy.group is not None:
        return np.full((1,) * values.rank, float(strategy.group))
    return values.get("group", system.pes_per_node)


def _divisors(p: Floats) -> Floats:
    """All group sizes above 1 that divide p, along the leading dimension; the last one repeats."""
    counts = p.ravel().astype(int)
    each = [divisors(count)[1:] or (1,) for count in counts.tolist()]
    most = max(map(len, each))
    table = np.array([some + some[-1:] * (most - len(some)) for some in each], float)
    return table.T.reshape(most, *p.shape[1:])
