"""Cases: the kernels' input for one model, data set, system and strategy over numeric cells.

Every numeric axis of the grid is a dimension of the cells, in the grid's order; values that do not
vary along an axis have size 1 there. Each `best` of a strategy adds a leading dimension.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import jax
import numpy as np

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.inputs.divisions import (
    Positions,
    find_divisions,
    repeat_rows,
    take_at_cells,
    thin_rows,
)
from paradl.grids.inputs.groups import KEPT, STAGES, Groups, reduce_groups, reduce_in_parts
from paradl.grids.inputs.layers import spread_layers
from paradl.grids.inputs.layouts import LayoutSpace
from paradl.grids.inputs.machine import build_network, build_pe, build_software, look_up_bytes
from paradl.grids.inputs.runs import build_run, build_training, find_contention, find_largest_batch
from paradl.grids.inputs.uncertainty import build_uncertainty
from paradl.grids.inputs.values import Settings, Values
from paradl.grids.inputs.workload import Workload
from paradl.grids.placing.group import NO_GROUPS
from paradl.grids.reading.errors import InputError
from paradl.kernels.configuration.case import Case, Work
from paradl.kernels.configuration.run import Run
from paradl.kernels.derivatives.slopes import differentiate_layers
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.software import Software
from paradl.kernels.names.arrays import Floats, Integers
from paradl.kernels.oracle.formulas import find_slowdown
from paradl.kernels.parallelism.layout import find_layout
from paradl.kernels.work.group import Bounds
from paradl.kernels.work.layers import Layers

Tree = TypeVar("Tree")
# Degrees by parallelism, segments, and positions in them (`find_divisions`).
Divisions = tuple[dict[str, Floats], Floats, Integers]

# Up to this many cells, computing a few extra stages takes no measurable time.
FEW_CELLS = 2**16


@dataclass(frozen=True, eq=False)
class Setup:
    """What cases of several networks have in common: a strategy on a machine, over some axes.

    run: of the case, but for the largest batch. sized: with the shapes that sizes vary along.
    thin, thin_run, thin_pe: of the distinct rows of parameters; positions: those of all rows.
    """

    settings: Settings
    values: Values
    run: Run
    sized: Run
    network: Network
    pe: PE
    software: Software
    thin: Values
    thin_run: Run
    thin_pe: PE
    positions: Positions
    divisions: dict[int, Divisions] = field(default_factory=dict)

    def spread(self, reduced: Tree, position: Integers) -> Tree:
        """Spread what was reduced of the distinct rows and divisions to all cells."""

        def spread(leaf: Floats) -> Floats:
            return _broadcast_like_p(take_at_cells(leaf, position, self.values.leading), self.run)

        spread_out: Tree = jax.tree.map(spread, repeat_rows(reduced, self.positions))
        return spread_out

    @property
    def stages(self) -> int:
        """The least number of stages: few cells afford extra ones, to share one program."""
        run = self.run
        cells = np.broadcast_shapes(*map(np.shape, (run.p, run.spec_batch, run.delta, run.gamma)))
        # With many cells, every extra stage costs memory and time in each of them.
        return STAGES if math.prod(cells) <= FEW_CELLS else 1


def set_up(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> Setup:
    """Return what the case has in common with those of other networks with as many samples."""
    machine, oracle = workload.machine, settings.oracle
    values = Values(axes, settings, len(strategy.choices))
    network = build_network(machine, values, oracle)
    sized = thin_run = build_run(strategy, values, workload, settings)
    pe = thin_pe = build_pe(machine, values, oracle)
    thin_axes, positions = thin_rows(axes, settings.rows)
    thin = Values(thin_axes, settings, len(strategy.choices)) if positions else values
    if positions:
        thin_run = build_run(strategy, thin, workload, settings)
        thin_pe = build_pe(machine, thin, oracle)
    # Contention follows from replicas and groups, so the run comes first.
    sized = replace(sized, phi=find_contention(strategy, values, network, sized, oracle))
    # Table III has one degree per replica, so one program serves all strategies.
    degrees = sized.degrees if oracle == "machine" else {"group": sized.group}
    run = replace(
        sized,
        replicas=_broadcast_like_p(sized.replicas, sized),
        degrees={name: _broadcast_like_p(size, sized) for name, size in degrees.items()},
        phi=_broadcast_like_p(sized.phi, sized),
    )
    software = build_software(machine, values, oracle)
    return Setup(
        settings, values, run, sized, network, pe, software, thin, thin_run, thin_pe, positions
    )


@dataclass(frozen=True, eq=False)
class Divided:
    """A network's layers, divided into the distinct groups among a strategy's cells.

    position [cells]: of each cell's group.
    """

    workload: Workload
    strategy: Strategy
    setup: Setup
    groups: Groups
    position: Integers

    def spread(self, reduced: tuple[Work, Bounds]) -> tuple[Work, Bounds]:
        """Spread what was reduced of the groups to all cells."""
        work, bounds = self.setup.spread(reduced, self.position)
        strategy, run = self.strategy, self.setup.run
        fits = bounds.fits
        if strategy.serial:  # one PE, whatever p is
            fits = _broadcast_like_p(np.equal(run.p, 1), run)
        elif strategy.replicas:  # of a layout whose words state them
            fits = fits & np.equal(run.replicas, strategy.replicas)
        elif strategy.several and not strategy.replicated:  # PEs beyond its degrees have no work
            fits = fits & (run.group >= run.p)
        return work, replace(bounds, fits=fits)

    def make_case(self, work: Work, bounds: Bounds) -> Case:
        """Make the case of the cells' work and bounds."""
        workload, setup = self.workload, self.setup
        settings, values, run = setup.settings, setup.values, setup.run
        layered = tuple(name for name in settings.slopes if PARAMETERS[name].layered)
        return Case(
            work=work,
            bounds=bounds,
            run=replace(run, largest_batch=find_largest_batch(workload.convergence, values)),
            network=setup.network,
            pe=setup.pe,
            software=setup.software,
            uncertainty=build_uncertainty(
                workload.unknown, self.strategy, values, np.asarray(run.p), settings.draws
            )
            if settings.draws
            else None,
            training=build_training(workload.convergence, values),
            options=settings.options,
            choices=self.strategy.choices,
            layer_slopes=setup.spread(_differentiate_groups(self.groups, layered), self.position)
            if layered
            else {},
        )


def find_space(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> LayoutSpace | None:
    """Find the layouts of a case's cells; None for one that is answered layer by layer.

    No other function asks.
    """
    if not strategy.of_blocks:
        return None
    return LayoutSpace.from_workload(workload, strategy, axes, settings)


def count_layouts(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> int:
    """Count the layouts that the case of a strategy is answered from; 0 layer by layer."""
    space = find_space(workload, strategy, axes, settings)
    return space.count_layouts(math.prod(values.size for values in axes.values())) if space else 0


def build_case(
    workload: Workload,
    strategy: Strategy,
    axes: Mapping[str, Floats],
    settings: Settings,
    *,
    nearest: bool = False,
) -> Case:
    """Build the case over the outer product of `axes`, in the grid's order with `pe` first.

    Its layers are reduced. Everything that may depend on p has the shape of p, so that one compiled
    program serves all strategies. nearest: of open layouts take those that are nearest to fit, not
    the fastest. InputError: ZeRO for a network with sparse gradients.
    """
    if space := find_space(workload, strategy, axes, settings):
        return space.build_case(nearest=nearest)
    settings = choose_formulas(strategy, workload, settings)
    divided = divide_layers(workload, strategy, set_up(workload, strategy, axes, settings))
    reduced = reduce_groups(divided.groups, divided.setup.stages)
    return divided.make_case(*divided.spread(reduced))


# For questions about limits: no time decides.
build_nearest_case = partial(build_case, nearest=True)


def divide_rows(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> Divided:
    """Divide the layers of a case in groups of all rows of parameters, not of distinct ones."""
    settings = choose_formulas(strategy, workload, settings)
    setup = set_up(workload, strategy, axes, settings)
    whole = replace(setup, thin=setup.values, thin_run=setup.sized, thin_pe=setup.pe)
    return divide_layers(workload, strategy, whole)


def choose_formulas(strategy: Strategy, workload: Workload, settings: Settings) -> Settings:
    """Return settings with the strategy's own choice of formulas."""
    zero = strategy.find_zero(settings.parameters)
    if zero and workload.table.sparse:
        raise InputError(
            "ZeRO is not modelled for networks whose gradients are sparse",
            where=strategy.label,
            advice="leave 'zero' out",
        )
    chosen = replace(
        settings.options, zero=zero, schedule=strategy.schedule, chunks=strategy.chunks
    )
    if strategy.recompute:
        chosen = replace(chosen, recompute="full" if strategy.recompute == "full" else "none")
    return replace(settings, options=chosen)


def divide_layers(workload: Workload, strategy: Strategy, setup: Setup) -> Divided:
    """Divide the layers in groups of the distinct divisions among the cells of a setup."""
    settings, values, run, sized = setup.settings, setup.thin, setup.thin_run, setup.sized
    options, alone = settings.options, np.ones((1,) * values.rank)
    cut = strategy.placed or (strategy.segmented and options.oracle == "machine")
    of_all, segments = (np.asarray(cells.segments) if cut else alone for cells in (sized, run))
    layers, layout = len(workload.table), find_layout(strategy.parts)
    # Of a strategy without stages, groups of all networks divide alike.
    like = layers if any(part.divides == "layers" for part in layout.parts) else 0
    if strategy.placed or like not in setup.divisions:
        setup.divisions[like] = find_divisions(
            layout, layers, workload.placed, sized, of_all, values.leading
        )
    degrees, varying, position = setup.divisions[like]
    # Segments that vary along with degrees are part of the distinct divisions.
    segments = segments if varying is of_all else varying
    precision = PRECISIONS[workload.system.precision]
    groups = Groups(
        table=workload.table,
        strategy=strategy,
        layers=_build_layers(workload, strategy, values, settings),
        pe=setup.thin_pe,
        degrees=degrees,
        delta=np.asarray(run.delta),
        options=options,
        segments=segments,
        state_bytes=precision.count_state_bytes(options.optimizer) * alone,
        weight_bytes=precision.weight * alone,
        placed=workload.placed if strategy.placed else NO_GROUPS,
    )
    return Divided(workload, strategy, setup, groups, position)


@lru_cache(maxsize=KEPT)
def _differentiate_groups(
    groups: Groups, parameters: tuple[str, ...]
) -> Mapping[str, Mapping[str, Any]]:
    """Return d work / d log parameter for each size, by parameter and field of a group's work."""
    division = groups.divide(groups.place()[0])
    return reduce_in_parts(division, partial(differentiate_layers, parameters=parameters))


def _broadcast_like_p(leaf: Any, run: Run) -> Floats:
    """Broadcast values to the dimensions of p."""
    shape = np.broadcast_shapes(np.shape(leaf), np.shape(run.p))
    return leaf if np.shape(leaf) == shape else np.broadcast_to(leaf, shape)


def _build_layers(
    workload: Workload, strategy: Strategy, values: Values, settings: Settings
) -> Layers:
    """Return the layers with their slowdown: measured time over roofline time on the given system.

    A faster PE then speeds up a measured layer as it does the roofline. Bytes per item are part of
    the measurement, so changing them must not rescale it.
    """
    keeps_cheap = strategy.recompute != "layernorm"
    layers = spread_layers(workload.table, values.rank, keeps_cheap=keeps_cheap)
    # The calibrated factor on serial time holds for every group: slow layers are slow everywhere.
    if workload.seconds is None:
        return replace(layers, slowdown=workload.serial * layers.slowdown)
    oracle, batch = settings.oracle, workload.measured_batch
    nothing = Values({}, Settings({}), leading=0)
    nominal = build_pe(workload.machine, nothing, oracle)
    seconds = workload.seconds.reshape(-1, *[1] * values.rank)
    delta = look_up_bytes("item", workload.system, values, oracle)
    launch = build_software(workload.machine, nothing, oracle).layer_overhead
    slower = find_slowdown(layers, nominal, delta, seconds, float(batch), launch, settings.options)
    return replace(layers, slowdown=workload.serial * np.asarray(slower))
