"""Warnings about a design space: keys that a run ignores, layers that no group can split."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from paradl.grids.convergence.entry import Convergence
from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.entry import Record
from paradl.grids.entries.machine_parameters import BLOCK_ROWS
from paradl.grids.entries.parameters import DEGREES, PARAMETERS, TAKEN
from paradl.grids.entries.software import list_switched
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.grid import Grid
from paradl.grids.library import find_catalogued
from paradl.grids.models.architecture import USUAL_BATCH, Architecture
from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import shorten
from paradl.grids.spec import Spec
from paradl.kernels.names.layout_terms import LAYOUT_FORMULAS
from paradl.kernels.names.parallelisms import LAYOUT_SETTINGS, TRANSFORMERS
from paradl.kernels.options import OracleName

POSITIONS = "positions depend on each other"
# Choices that layouts of transformers do not have: the value that suits them, and why.
LAYOUT_CHOICES = {
    "optimizer": ("adam", "their states are those of Adam"),
    "collectives": ("auto", "they take the fastest algorithm"),
}
# Keys of a system that only one oracle uses, and what the other does instead.
PAPER_KEYS = {
    "pe.efficiency": "state efficiency_conv2d, efficiency_conv3d, efficiency_matmul with --set or "
    "under 'parameters', or a profile in the model's file",
    "contention": "it counts the flows that share a link",
}
MACHINE_KEYS = {
    "pe.tensor_peaks": "it takes peak_flops",
    "precision": "it takes delta as the bytes per item",
    "software": "it overlaps no communication",
    "channels": "it converts no items",
    "size": "it does not limit the number of PEs",
    "input_rate": "it assumes that samples arrive in time",
    "levels.oversubscription": "it takes each level's bandwidth as stated",
    "levels.collectives": "it has rings at the levels' latency and bandwidth",
    "levels.switch_latency": "its PEs sum, in rings",
    "levels.shared": "each PE has the level's bandwidth",
}


def list_warnings(grid: Grid) -> list[str]:
    """Warnings about odd files, unused keys, unsplit layers, and pairs that do not fit."""
    spec = grid.spec
    is_read = spec.oracle == "machine" and spec.times == "measured"
    pairs = product(grid.models, grid.systems) if is_read else ()
    return [
        *(text for law in grid.convergences.values() for text in law.warnings),
        *_list_unsplit(grid),
        *_list_keys(grid.systems, spec.oracle),
        *_list_meshes(grid.systems, grid.strategies),
        *_list_targets(grid.models, grid.datasets),
        *_list_optimizers(grid.convergences.values(), spec),
        # Systems with the same device have the same text.
        *dict.fromkeys(text for pair in pairs for text in _describe_profiles(*pair)),
        *_list_unused_choices(grid),
        *_list_calibrations(grid),
        *_list_misfits(grid),
    ]


def _list_misfits(grid: Grid) -> Iterator[str]:
    """Yield the reasons why a model takes the samples of none of the data sets."""
    datasets = grid.labels["dataset"]
    for model, name in enumerate(grid.labels["model"]):
        reasons = [grid.misfit(model, position) for position in range(len(datasets))]
        if None not in reasons:
            for dataset, reason in zip(datasets, reasons, strict=True):
                yield f"{name} does not take the samples of {dataset}: {reason}"


def _list_unused_choices(grid: Grid) -> Iterator[str]:
    """Notes on a group, or segments, that no strategy of the spec takes."""
    strategies, spec = grid.resolved, grid.spec
    of_layouts = bool(grid.layouts), "layout of a transformer"
    # A strategy whose label sets a key does not read it.
    takers = {
        "group": (any(one.hybrid and one.group is None for one in strategies), "hybrid"),
        "segments": (
            any(one.cut_by_axis and one.segments is None for one in strategies),
            "pipeline",
        ),
        **{
            name: (any(name in _list_open(one) for one in strategies), "hybrid of it")
            for name in (*DEGREES, *TRANSFORMERS)
        },
        **dict.fromkeys((*LAYOUT_SETTINGS, *(row.name for row in BLOCK_ROWS)), of_layouts),
        "zero": (
            any(one.takes_zero and "zero" not in one.stated for one in strategies),
            "run of replicas",
        ),
        "offload_rate": (spec.offload != "none", "run with 'offload'"),
    }
    given = (*spec.parameters, *spec.axes.swept)
    for name, (is_used, kind) in takers.items():
        if name in given and not is_used:
            yield f"{name} has no effect: no strategy here is a {kind} that leaves it open"
    switched = [name for one in grid.systems for name in list_switched(one.switches)]
    of_blocks = ("attention", "context", "loss", "states", "offload")
    named = [name for name in of_blocks if name in spec.model_fields_set]
    for name in () if grid.layouts else dict.fromkeys([*named, *switched]):
        yield f"{name} has no effect: no strategy here is a layout of a transformer"
    # Beside layouts, other strategies would use these keys.
    if None not in grid.blocks:
        for name in given:
            if name in PARAMETERS and name not in {*takers, *TAKEN}:
                yield f"{name} is not used by layouts (docs/transformers.md)"
        for name, (suitable, reason) in LAYOUT_CHOICES.items():
            if name in spec.model_fields_set and getattr(spec, name) != suitable:
                yield f"{name} is not used by layouts: {reason}"


def _list_calibrations(grid: Grid) -> Iterator[str]:
    """Yield notes on calibrations that say nothing about layouts of the spec, or what was so."""
    files = grid.calibrations.values() if grid.layouts else ()
    for name, layouts in {file.name: file.layouts for file in files}.items():
        # `auto` promises no more than what the catalogue has.
        fitted = f"calibration {shorten(name)} was fitted"
        if layouts is None and grid.spec.calibration != ("auto",):
            yield f"{fitted} to no run of a layout: times of layouts are uncalibrated"
        if layouts and layouts.formulas < LAYOUT_FORMULAS:
            yield f"{fitted} with earlier formulas of layouts: calibrate again"


def has_old_layouts(grid: Grid, versions: Mapping[str, object]) -> bool:
    """True for a store of layouts by earlier formulas; versions: that wrote it, empty of none."""
    is_old = versions and versions.get("layouts") != str(LAYOUT_FORMULAS)
    return bool(is_old and grid.layouts)


def list_store_warnings(grid: Grid, versions: Mapping[str, object]) -> Iterator[str]:
    """Yield warnings about a store; versions: those that it was written by."""
    if has_old_layouts(grid, versions):
        yield (
            "layouts of this store were computed by earlier formulas, and today's answers differ: "
            "sweep it again into a new store"
        )


def _list_open(strategy: Strategy) -> list[str]:
    """List the parallelisms whose degree a strategy does not state."""
    if strategy.hybrid:
        return [] if strategy.group is not None else [*strategy.parts]
    stated = strategy.stated
    several = strategy.several or strategy.replicated
    return [name for name in strategy.parts if several and name not in stated]


def _list_keys(systems: Sequence[System], oracle: OracleName) -> list[str]:
    """List keys of users' systems that only the other oracle uses."""
    # Catalogued systems state the keys of both oracles; only a user's key may be a mistake.
    keys = PAPER_KEYS if oracle == "machine" else MACHINE_KEYS
    return [
        f"system {shorten(system.name)}: {key} is not used by 'oracle: {oracle}': {instead}"
        for system in dict.fromkeys(systems)
        if not _is_catalogued(system)
        for key, instead in keys.items()
        if _states(system, key)
    ]


def _list_meshes(systems: Sequence[System], strategies: Sequence[Strategy]) -> Iterator[str]:
    """Yield users' meshes if no strategy places operators."""
    if any(strategy.placed for strategy in strategies):
        return
    for system in dict.fromkeys(systems):
        if not _is_catalogued(system) and system.mesh is not None:
            yield (
                f"system {shorten(system.name)}: mesh is not used: only placements use it; other "
                "strategies treat all PEs of a node alike"
            )


def _list_targets(models: Sequence[Architecture], datasets: Sequence[Dataset]) -> Iterator[str]:
    """Yield users' data sets whose number of targets no model uses."""
    own = [
        dataset
        for dataset in datasets
        # Networks of sequences have their own vocabulary.
        if dataset.rank > 1 and find_catalogued("dataset", dataset.name) != dataset
    ]
    # Steps nest in many ways, all of which their representation shows.
    if own and any("='targets'" in repr(model.steps) for model in models):
        return
    for dataset in own:
        yield (
            f"dataset {shorten(dataset.name)}: targets is not used: "
            "no model has a layer 'fc: targets'"
        )


def _list_optimizers(laws: Iterable[Convergence], spec: Spec) -> Iterator[str]:
    """Yield users' laws of epochs for another optimizer than the spec's."""
    if spec.convergence == ("auto",):
        return
    # By name: a law may serve several pairs.
    for law in {law.name: law for law in laws}.values():
        if law.optimizer and spec.optimizer not in law.optimizer.lower():
            yield (
                f"convergence {shorten(law.name)}: its epochs were measured with "
                f"{shorten(law.optimizer)}, but the spec has 'optimizer: {spec.optimizer}'"
            )


def _is_catalogued(system: System) -> bool:
    """True if the machine is in the catalogue, in any precision and with any software."""
    known = find_catalogued("system", system.machine)
    # What settings behind a name change: `abci:precision=amp` is still the catalogue's.
    settings: dict[str, bool | set[str]] = {
        **dict.fromkeys(("name", "channels", "switches", *System.COMPARED), True),
        "pe": {"memory_capacity"},
    }
    return isinstance(known, System) and (
        known.model_dump(exclude=settings) == system.model_dump(exclude=settings)
    )


def _states(system: System, key: str) -> bool:
    """True if the file states the key with a value other than the default."""
    entry: Record | tuple[Record, ...] = system
    *parts, name = key.split(".")
    for part in parts:
        entry = getattr(entry, part)
    # A default that is written out is no mistake.
    return any(
        name in record.model_fields_set
        and getattr(record, name) != type(record).model_fields[name].default
        for record in (entry if isinstance(entry, tuple) else (entry,))
    )


def _describe_profiles(model: Architecture, system: System) -> Iterator[str]:
    # A profile without a precision serves any, as `find_nearest_profile` has it.
    of_device = model.profiles_on(system.pe.device)
    where = f"model {shorten(model.name)}: its profile on {shorten(system.pe.device)}"
    usable = [profile for profile in of_device if profile.precision in (None, system.precision)]
    if of_device and not usable:
        taken = ", ".join(dict.fromkeys(str(profile.precision) for profile in of_device))
        yield f"{where} is not used: it is in {taken}, the system in {system.precision}"
    # One that is fully stated is preferred to others.
    if usable and all(profile.missing for profile in usable):
        assumed = {"batch": str(USUAL_BATCH), "precision": system.precision}
        written = ", ".join(f"{name}: {assumed[name]}" for name in usable[0].missing)
        yield f"{where} is assumed to have '{written}': state these next to its seconds"


def _list_unsplit(grid: Grid) -> list[str]:
    """Return notes on layers that strategies do not split."""
    labels: dict[tuple[str, str], list[str]] = {}
    for ((model, _), table), strategy in product(grid.fitting.items(), grid.strategies):
        for text in _describe_unsplit(table, strategy):
            labels.setdefault((grid.models[model].name, text), []).append(strategy.label)
    return [
        f"{model}: {', '.join(dict.fromkeys(names))} does not split {text}"
        for (model, text), names in labels.items()
    ]


def _describe_unsplit(table: LayerTable, strategy: Strategy) -> Iterator[str]:
    """Yield which sequence layers a strategy leaves whole, and why; nothing for other models."""
    whole = {kind: KINDS[kind].whole for kind in table.kinds if KINDS[kind].whole}
    if not whole:
        return
    if strategy.splits("rows"):
        yield f"layers of sequences: {POSITIONS}"
    if strategy.splits("weights"):
        reasons = (
            f"{', '.join(kind for kind, other in whole.items() if other == reason)} ({reason})"
            for reason in dict.fromkeys(whole.values())
        )
        yield f"{'; '.join(reasons)}: every PE runs them all"
