"""Cases: the kernels' inputs for one model, dataset, system and strategy over numeric cells.

Every numeric axis of the grid is one dimension of the cells, in the grid's order; a value that does
not vary along an axis has size 1 there. Each `best` of a strategy adds a leading dimension.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

from grids.convergence.entry import Convergence
from grids.entries.precision import PRECISIONS
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.inputs.calibrated import Calibrated
from grids.inputs.divisions import find_divisions, take_at_cells
from grids.inputs.groups import Groups, differentiate_groups, reduce_groups
from grids.inputs.layers import Mask, add_cells, kernel_layers
from grids.inputs.machine import (
    Machine,
    build_network,
    build_pe,
    build_software,
    look_up_bytes,
)
from grids.inputs.rows import repeat_rows, thin_rows
from grids.inputs.runs import build_run, find_contention
from grids.inputs.stages import STAGES
from grids.inputs.training import build_training, find_largest_batch
from grids.inputs.uncertainty import Unknown, build_uncertainty
from grids.inputs.values import Settings, Values
from grids.models.layers import Floats, LayerTable
from grids.models.profiles import Profile
from grids.placing.group import NO_GROUPS, PlacedGroups
from grids.reading.errors import InputError
from kernels.configuration.case import Case
from kernels.configuration.run import Run
from kernels.oracle.formulas import find_slowdown
from kernels.parallelism.layout import find_layout
from kernels.work.layers import Layers

Tree = TypeVar("Tree")

# Cells of memory that are so few that stages more or less cost no time.
FEW_CELLS = 2**16


@dataclass(frozen=True, eq=False)
class Workload:
    """The layers of a model for one dataset on one system, and what was measured of them.

    seconds [G]: measured FW_l + BW_l on this system's device, None where only the roofline is
    known. mask: the layers that a group splits, None for each strategy's own choice. calibrated:
    what runs on this machine told, None where none did. profile: how the seconds were measured;
    None by Table III, in which no batch has a say. convergence: epochs to a target. placed:
    groups whose layers were placed on devices.
    """

    table: LayerTable
    samples: int
    system: System
    seconds: Floats | None = None
    mask: Mask = None
    calibrated: Calibrated | None = None
    profile: Profile | None = None
    convergence: Convergence | None = None
    placed: PlacedGroups = NO_GROUPS

    @property
    def machine(self) -> Machine:
        """The system, with what its own runs tell."""
        return Machine(self.system, self.unknown.file)

    @property
    def unknown(self) -> Unknown:
        """Uncertainty of the layers' times."""
        measured = self.seconds is not None
        assumed = self.profile is not None and bool(self.profile.missing)
        kinds = self.table.of_sequences, bool((self.table.groups > 1).any())
        return Unknown(self.system, measured, self.calibrated, *kinds, assumed)

    @property
    def measured_batch(self) -> int:
        """Samples of the measured pass."""
        return self.profile.pass_batch if self.profile else 1

    @property
    def serial(self) -> float:
        """Time on one PE, of what the profile or the roofline says."""
        return self.calibrated.serial.factor if self.calibrated else 1.0


def build_case(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> Case:
    """The case over the outer product of `axes`, which are in the grid's order, `pe` first.

    Its layers are reduced. All that may depend on p has the shape of p, so that one compiled
    program serves all strategies. InputError: ZeRO of a network with sparse gradients.
    """
    settings = _choose(strategy, workload, settings)
    values = _look_up(strategy, axes, settings)
    network = build_network(workload.machine, values, settings.oracle)
    run = run_of_fewer = _run(strategy, values, workload, settings)
    thin, places = thin_rows(axes, settings.rows)
    fewer = _look_up(strategy, thin, settings) if places else values
    if places:
        run_of_fewer = _run(strategy, fewer, workload, settings)
    # Rings that share a link are counted from replicas and groups, which the run has first.
    run = replace(run, phi=find_contention(strategy, values, network, run, settings.oracle))
    groups, position = _distinguish(strategy, workload, fewer, run_of_fewer, run, settings)
    work, bounds = _spread_over_p(
        repeat_rows(reduce_groups(groups, _count_stages(run)), places),
        position,
        values.leading,
        run,
    )
    slopes = repeat_rows(differentiate_groups(groups, settings.slopes), places)
    if strategy.serial:  # its group is one PE whatever p is
        bounds = replace(bounds, fits=_broadcast_like_p(np.equal(run.p, 1), run))
    elif strategy.several and not strategy.replicated:  # more PEs than its degrees have no work
        bounds = replace(bounds, fits=bounds.fits & (run.group >= run.p))
    # Table III has one degree inside a replica, and one program for all strategies.
    degrees = run.degrees if settings.oracle == "machine" else {"group": run.group}
    return Case(
        work=work,
        bounds=bounds,
        run=replace(
            run,
            replicas=_broadcast_like_p(run.replicas, run),
            degrees={name: _broadcast_like_p(size, run) for name, size in degrees.items()},
            phi=_broadcast_like_p(run.phi, run),
            largest_batch=find_largest_batch(workload.convergence, values),
        ),
        network=network,
        pe=build_pe(workload.machine, values, settings.oracle),
        software=build_software(workload.machine, values, settings.oracle),
        uncertainty=build_uncertainty(
            workload.unknown, strategy, values, np.asarray(run.p), settings.draws
        )
        if settings.draws
        else None,
        training=build_training(workload.convergence, values),
        options=settings.options,
        choices=strategy.choices,
        layer_slopes=_spread_over_p(slopes, position, values.leading, run),
    )


def build_groups(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> Groups:
    """The layers of the same case in its groups, before they are reduced."""
    return distinguish_groups(workload, strategy, axes, settings)[0]


def distinguish_groups(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
) -> tuple[Groups, NDArray[np.int64]]:
    """The groups of the distinct sizes, and where each cell's size is among these [cells]."""
    settings = _choose(strategy, workload, settings)
    values = _look_up(strategy, axes, settings)
    run = _run(strategy, values, workload, settings)
    return _distinguish(strategy, workload, values, run, run, settings)


def _choose(strategy: Strategy, workload: Workload, settings: Settings) -> Settings:
    """The settings with the strategy's own choices of formulas."""
    if strategy.zero and workload.table.sparse:
        raise InputError(
            "ZeRO is not modelled for networks whose gradients are sparse",
            where=strategy.label,
            advice="leave 'zero' out",
        )
    chosen = replace(settings.options, zero=strategy.zero, schedule=strategy.schedule)
    return replace(settings, options=chosen)


def _run(strategy: Strategy, values: Values, workload: Workload, settings: Settings) -> Run:
    return build_run(strategy, values, workload.system, workload.samples, settings)


def _look_up(strategy: Strategy, axes: Mapping[str, Floats], settings: Settings) -> Values:
    return Values(axes, settings, leading=len(strategy.choices))


def _distinguish(
    strategy: Strategy,
    workload: Workload,
    values: Values,
    run: Run,
    sized: Run,
    settings: Settings,
) -> tuple[Groups, NDArray[np.int64]]:
    """The groups of the distinct divisions, and where each cell's is among these [cells].

    sized: the run of all cells, where `run` and its values are of the distinct rows alone.
    """
    options, alone = settings.options, np.ones((1,) * values.rank)
    cut = strategy.placed or (strategy.segmented and options.oracle == "machine")
    of_all, segments = (np.asarray(of.segments) if cut else alone for of in (sized, run))
    degrees, found, position = find_divisions(
        find_layout(strategy.parts),
        len(workload.table),
        workload.placed,
        sized,
        of_all,
        values.leading,
    )
    # Segments that change with degrees are told apart with these.
    segments = segments if found is of_all else found
    precision = PRECISIONS[workload.system.precision]
    groups = Groups(
        table=workload.table,
        mask=workload.mask,
        strategy=strategy,
        layers=_build_layers(workload, values, settings),
        pe=build_pe(workload.machine, values, settings.oracle),
        degrees=degrees,
        delta=np.asarray(run.delta),
        options=options,
        segments=segments,
        state_bytes=precision.count_state_bytes(options.optimizer) * alone,
        weight_bytes=precision.weight * alone,
        placed=workload.placed if strategy.placed else NO_GROUPS,
    )
    return groups, position


def _spread_over_p(reduced: Tree, position: NDArray[np.int64], leading: int, run: Run) -> Tree:
    """Values of each group size, spread to each PE count."""

    def spread(leaf: Floats) -> Floats:
        return _broadcast_like_p(take_at_cells(leaf, position, leading), run)

    spread_out: Tree = jax.tree.map(spread, reduced)
    return spread_out


def _broadcast_like_p(leaf: Any, run: Run) -> Floats:
    """The values with the dimensions of p."""
    return np.broadcast_to(leaf, np.broadcast_shapes(np.shape(leaf), np.shape(run.p)))


def _count_stages(run: Run) -> int:
    """How many stages there are at least: few cells bear some more, and share a program."""
    cells = np.broadcast_shapes(*map(np.shape, (run.p, run.spec_batch, run.delta, run.gamma)))
    # Else a stage more is memory and time in every one of the cells.
    return STAGES if math.prod(cells) <= FEW_CELLS else 1


def _build_layers(workload: Workload, values: Values, settings: Settings) -> Layers:
    """The layers with their slowdown: measured over roofline time on the system as it stands.

    A faster PE speeds a measured layer up as it does the roofline; the bytes of an item are part of
    the measurement, and change it not.
    """
    layers = add_cells(kernel_layers(workload.table), values.rank)
    # A calibration's factor on serial time: a layer that is slower on one PE is so in every group.
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
