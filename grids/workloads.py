"""Workloads: models on a data set and a system, with measured times."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from paradl.grids.convergence.entry import Convergence
from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.inputs.calibrated import Calibrated
from paradl.grids.inputs.find_placed import FoundGroups
from paradl.grids.inputs.runs import list_segments
from paradl.grids.inputs.values import Settings
from paradl.grids.inputs.workload import Workload
from paradl.grids.models.architecture import Architecture, Profile
from paradl.grids.models.layers import LayerTable
from paradl.grids.placing.group import PlacedGroup, Placements
from paradl.grids.reading.errors import InputError, format_count
from paradl.grids.spec import Spec
from paradl.kernels.names.arrays import Floats


def make_workload(
    spec: Spec,
    model: Architecture,
    data: Dataset,
    system: System,
    table: LayerTable,
    calibration: CalibrationFile | None,
    law: Convergence | None,
) -> Workload:
    """Build a model's layers with their measured times and the machine's calibration."""
    seconds = _look_up_seconds(spec, model, data, system)
    profile = None if seconds is None else find_profile(spec, model, data, system)
    calibrated = None
    if calibration is not None and calibration.parameters:  # else it has layouts only
        # For a model without runs, a profile is more certain than the roofline.
        measured, kinds = seconds is not None, table.multipliers
        calibrated = Calibrated(
            calibration, model.name, data.name, measured, kinds, model.fingerprint
        )
    return Workload(
        table,
        data.samples,
        system,
        seconds,
        calibrated,
        profile,
        convergence=law,
        origin=(model, data),
        layout_time=calibration.layouts if calibration else None,
    )


def place_workload(
    spec: Spec, model: str, dataset: str, workload: Workload, settings: Settings
) -> Workload:
    """Add placed groups: the spec's, and a search for the missing ones.

    InputError: the spec's groups have other layers.
    """
    known: dict[tuple[int, int], PlacedGroup] = {}
    for entry in spec.placements:
        if (entry.model, entry.dataset, entry.system) == (model, dataset, workload.system.name):
            known = entry.list_groups()
            # A store's network may be another one by now, under the same name.
            _expect_layers(known.values(), len(workload.table), model)
    groups = FoundGroups(groups=known, workload=workload, settings=settings)
    return replace(workload, placed=groups)


def define_placements(
    labels: Mapping[str, tuple[str, ...]],
    fitting: Iterable[tuple[int, int]],
    strategies: Sequence[Strategy],
    batches: Floats,
    find_workload: Callable[[int, int, int], Workload | None],
) -> list[dict[str, object]]:
    """Return the placed groups that a design space uses as plain data.

    fitting: positions of models and data sets that fit together.
    """
    most = float(batches.max())
    placements = []
    for (model, dataset), system in product(fitting, range(len(labels["system"]))):
        workload = find_workload(model, dataset, system)
        assert workload is not None  # the samples fit
        entry = Placements.from_groups(
            labels["model"][model],
            labels["dataset"][dataset],
            labels["system"][system],
            {
                pair: workload.placed.find(*pair)
                for pair in _list_groups(strategies, workload.placed.sizes, most)
            },
        )
        placements.append(entry.model_dump(mode="json", exclude_defaults=True))
    return placements


def _list_groups(
    strategies: Sequence[Strategy], sizes: Sequence[int], batch: float
) -> list[tuple[int, int]]:
    """List the placed groups in use by (devices, segments), out of these sizes."""
    pairs: set[tuple[int, int]] = set()
    for strategy in strategies:
        if strategy.placed:
            # Groups of four, which examples/hybrid.yaml has no use for, took 4.5 of its 7 s of CPU.
            stated = {strategy.group} if isinstance(strategy.group, int) else {*sizes}
            # Steps in one piece are always stored: the search for segments begins with them.
            pairs |= {*product(stated & {*sizes}, {1, *_list_cuts(strategy, batch)})}
    return sorted(pairs)


def _list_cuts(strategy: Strategy, batch: float) -> tuple[int, ...]:
    """Return the numbers of segments that a placing strategy states."""
    if strategy.segments is None:
        return ()
    return list_segments(strategy, batch) if strategy.segments == "best" else (strategy.segments,)


def _expect_layers(groups: Iterable[PlacedGroup], layers: int, model: str) -> None:
    for group in groups:
        if len(group.device) != layers:
            what = f"expected devices of {format_count(layers, 'layer')}, got {len(group.device)}"
            raise InputError(what, where=f"placements: {model}", advice="leave the placements out")


def find_profile(spec: Spec, model: Architecture, data: Dataset, system: System) -> Profile | None:
    """Return the measurement that the machine oracle uses, if any."""
    if spec.times != "measured" or spec.oracle == "paper":
        return None
    return model.profile(data, system.pe.device, system.precision)


def _look_up_seconds(
    spec: Spec, model: Architecture, data: Dataset, system: System
) -> Floats | None:
    """Return measured seconds of each layer on the system's device, if any."""
    if spec.times != "measured":
        return None
    # In Table III a measured time holds for any precision, as in the paper.
    precision = None if spec.oracle == "paper" else system.precision
    return model.seconds(data, system.pe.device, precision)
