"""Ask Table III in its own terms: of a case, `kernels.paper` gets only what its records name."""

from dataclasses import fields
from typing import Any, TypeVar

from paradl.kernels.arrays import Cells, PerLayer, xp
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.run import Seconds
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Cost
from paradl.kernels.names.parallelisms import KINDS
from paradl.kernels.options import Optimizer
from paradl.kernels.paper import iteration, network, work
from paradl.kernels.paper import layers as whole
from paradl.kernels.paper.inputs import (
    TableGroup,
    TableLayers,
    TableNetwork,
    TablePE,
    TableRun,
    TableTimes,
    TableWork,
)
from paradl.kernels.work.division import Division
from paradl.kernels.work.layers import Layers, LayerTimes

Record = TypeVar("Record", bound=Any)


def _take(record: type[Record], source: object, **others: object) -> Record:
    """Fill a record from the source's fields of the same names."""
    names = (field.name for field in fields(record) if field.name not in others)
    filled: Record = record(**{name: getattr(source, name) for name in names}, **others)
    return filled


def time_layers(layers: Layers, pe: PE, delta: Cells, optimizer: Optimizer) -> LayerTimes:
    """Compute the times of layers with items of `delta` bytes."""
    times = whole.time_layers(_take(TableLayers, layers), _take(TablePE, pe), delta, optimizer)
    # Each sample reads the weights, and no host is waited for.
    nothing = xp.zeros_like(times.forward)
    return LayerTimes(**vars(times), fixed=nothing, launches=nothing)


def find_slowdown(layers: Layers, pe: PE, delta: Cells, seconds: PerLayer) -> PerLayer:
    """Return measured over computed times."""
    return whole.find_slowdown(_take(TableLayers, layers), _take(TablePE, pe), delta, seconds)


def reduce_table(division: Division, times: LayerTimes) -> TableWork:
    """Compute the work of a group's busiest PE. times: of whole layers."""
    return work.reduce_table(_take_group(division), _take(TableTimes, times))


def hold_layers(division: Division) -> tuple[PerLayer, PerLayer]:
    """Return each layer's part of the memory [B], per sample and once; without gamma."""
    kept, states = whole.hold_layers(_take_group(division))
    return 2 * division.delta * kept, division.delta * states


def _take_group(division: Division) -> TableGroup:
    placement = division.placement
    return _take(
        TableGroup,
        division,
        layers=_take(TableLayers, division.layers),
        degree=division.group,
        divides=tuple(KINDS[name].divides for name in division.parallelisms),
        split=placement.split,
        factors=placement.factors,
        ends=placement.ends,
    )


def time_pass(case: Case, work: TableWork) -> Seconds:
    """Compute the terms of an iteration of one pass."""
    return iteration.time_pass(
        work, _take(TableRun, case.run), _take(TableNetwork, case.network), case.options
    )


def find_bound(case: Case, work: TableWork) -> Cells:
    """Compute bytes of the fullest PE."""
    return iteration.find_bound(work, _take(TableRun, case.run))


def find_links(case: Case) -> tuple[Cost, Cost, Cost]:
    """Return the paths inside a group, across replicas and between halo neighbours."""
    run, levels = case.run, _take(TableNetwork, case.network)
    inside, across = (network.find_path(levels, pes) for pes in (run.group, run.p))
    staged = network.find_staged_path(levels, run.group)
    return _take(Cost, inside), _take(Cost, across), _take(Cost, staged)
