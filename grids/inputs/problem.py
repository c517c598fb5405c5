"""A problem: the kernels' inputs for one model, dataset, system and strategy over numeric cells.

Every numeric axis of the grid is one dimension of the cells, in the grid's order; a value that does
not vary along an axis has size 1 there. The group size `best` adds a leading dimension of choices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax
import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import DEFAULTS
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.inputs.calibrated import Calibrated
from grids.inputs.divisors import divisors
from grids.inputs.groups import Groups
from grids.inputs.placement import Mask, kernel_layers
from grids.models.layers import Floats, LayerTable
from kernels.calibration import Calibration
from kernels.compute import PE, Optimizer, slowdown
from kernels.layers import Layers
from kernels.network import Network, shared_links
from kernels.run import Run
from kernels.uncertainty import Uncertainty

# Levels that a network has at least: few machines have more.
LEVELS = 4
# PE counts that are so few that it spares no work to tell their group sizes apart.
FEW = 64


@dataclass(frozen=True)
class Problem:
    """Arguments of `kernels.oracle`.

    groups: of the distinct sizes; `position` [cells] is that of each cell's p2 among them. choices:
    pick the best group.
    """

    groups: Groups
    position: NDArray[np.int64]
    pe: PE
    network: Network
    run: Run
    choices: bool
    known: Calibration | None = None
    doubt: Uncertainty | None = None


@dataclass(frozen=True, eq=False)
class Workload:
    """The layers of a model for one dataset on one system, and what was measured of them.

    seconds [G]: measured FW_l + BW_l on this system's device, None where only the roofline is
    known. mask: the layers that a group splits, None for each strategy's own choice. calibrated:
    what runs on this machine told; None: the paper's formulas.
    """

    table: LayerTable
    samples: int
    system: System
    seconds: Floats | None = None
    mask: Mask = None
    calibrated: Calibrated | None = None

    @property
    def serial(self) -> float:
        """Time on one PE, of what the profile or the roofline says."""
        return self.calibrated.serial.factor if self.calibrated else 1.0


@dataclass(frozen=True)
class Settings:
    """What a user fixed: parameters by name, in SI units, and how batches scale."""

    parameters: Mapping[str, float]
    strong: bool = False
    optimizer: Optimizer = "sgd"


class _Values:
    """Looks a parameter up: an axis of the grid, else fixed by the user, else the default."""

    def __init__(self, axes: Mapping[str, Floats], settings: Settings, leading: int) -> None:
        self.leading, self.rank = leading, len(axes) + leading
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
    calibrated = workload.calibrated
    sizes, position = _distinct(_told_apart(strategy, workload, run), values.leading)
    delta = np.asarray(run.delta)
    return Problem(
        groups=Groups(workload.table, workload.mask, strategy, layers, pe, sizes, delta),
        position=position,
        pe=pe,
        network=network,
        run=run,
        choices=choices,
        known=calibrated.known(values.rank) if calibrated else None,
        doubt=calibrated.doubt(strategy, np.asarray(run.p)) if calibrated else None,
    )


def _told_apart(strategy: Strategy, workload: Workload, run: Run) -> Floats:
    """p2 as far as it matters: more stages than layers are all the same, and cannot be."""
    p2 = np.asarray(run.p2)
    pipeline = strategy.group_strategy == "pipeline"
    return np.minimum(p2, len(workload.table) + 1) if pipeline else p2


def _distinct(p2: Floats, leading: int) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct group sizes along the dimension of pe, and where each cell's is.

    Of few PE counts there are as many sizes, some of them twice: programs then are shared, too.
    """
    sizes, position = np.unique(p2, return_inverse=True)
    if p2.shape[leading] <= FEW:
        sizes = np.pad(sizes, (0, max(0, p2.shape[leading] - sizes.size)), "edge")
    along_pe = [1] * p2.ndim
    along_pe[leading] = sizes.size
    return sizes.reshape(along_pe), position.reshape(p2.shape)


def at_cells(values: Floats, position: NDArray[np.int64], leading: int = 0) -> Floats:
    """What was found for each group size, for each cell.

    values [..., cells with sizes in the place of pe]; `leading` dimensions of choices come first.
    """
    pe = values.ndim - position.ndim + leading
    if pe < 0 or values.shape[pe] == 1:  # the same for all sizes
        return values
    index = position.reshape((1,) * (values.ndim - position.ndim) + position.shape)
    return np.take_along_axis(values, index, axis=pe)


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
        return replace(layers, slowdown=workload.serial * layers.slowdown)
    nominal = _pe(workload.system, _Values({}, Settings({}), leading=0))
    seconds = workload.seconds.reshape(-1, *[1] * values.rank)
    slower = slowdown(layers, nominal, values.get("delta"), seconds)
    return replace(layers, slowdown=workload.serial * np.asarray(slower))


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
    # The outermost one stands there several times: so machines share one compiled program.
    levels = (*system.levels, *system.levels[-1:] * (LEVELS - len(system.levels)))
    places = ["intra" if n == 0 else "inter" for n in range(len(levels))]
    latency = [
        values.get(f"{place}_latency", level.latency)
        for place, level in zip(places, levels, strict=True)
    ]
    bandwidth = [
        values.get(f"{place}_bandwidth", level.bandwidth)
        for place, level in zip(places, levels, strict=True)
    ]
    staging = system.staging
    return Network(
        span=np.array([level.pes for level in levels], float),
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
    return Run(
        p=p,
        p1=p1,
        p2=p2,
        size=values.get("batch"),
        samples=np.asarray(float(workload.samples)),
        segments=_segments(strategy, values),
        delta=values.get("delta"),
        gamma=values.get("gamma"),
        phi=np.ones((1,) * values.rank),
        scaling="strong" if strong else "weak",
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
