"""Notes on keys of files that the oracle does not use, before anything runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from grids.convergence.entry import Convergence
from grids.entries.datasets import Dataset
from grids.entries.entry import Record
from grids.entries.oracles import OracleName
from grids.entries.parameters import DEGREES
from grids.entries.strategies import Strategy, parse_strategy
from grids.entries.systems import System
from grids.library import Model, find_catalogued
from grids.models.architecture import Architecture
from grids.models.netfile import NetModel
from grids.models.profiles import USUAL_BATCH
from grids.reading.errors import shorten
from grids.spec import Spec

# Keys of a system that only one oracle uses, and what to write for the other one.
PAPER_KEYS = {
    "pe.efficiency": "state efficiency_conv2d, efficiency_conv3d, efficiency_matmul with --set or "
    "under 'parameters', or a profile in the model's file",
    "contention": "flows that share a link are counted",
}
MACHINE_KEYS = {
    "pe.tensor_peaks": "peak_flops is the peak",
    "precision": "delta is the bytes of an item",
    "software": "nothing is hidden",
    "size": "the number of PEs has no limit",
    "input_rate": "samples are there in time",
    "levels.oversubscription": "links of all levels carry what they state",
    "levels.collectives": "rings run at the levels' latency and bandwidth",
}


def list_unused(
    models: Sequence[Model],
    datasets: Sequence[Dataset],
    systems: Sequence[System],
    laws: Mapping[Any, Convergence],
    spec: Spec,
) -> list[str]:
    """Notes on keys, and on measured times, in users' files that the spec's oracle does not use."""
    keys = [
        *_list_keys(systems, spec.oracle),
        *_list_meshes(systems, spec),
        *_list_targets(models, datasets),
        *_list_optimizers(laws.values(), spec),
    ]
    if spec.oracle == "paper" or spec.times != "measured":
        return keys
    return [*keys, *_list_net_times(models), *_list_profiles(models, systems)]


def list_unused_choices(strategies: Sequence[Strategy], spec: Spec) -> Iterator[str]:
    """Notes on a group, or segments, that no strategy of the spec takes."""
    takers = {
        "group": (
            any(strategy.hybrid and strategy.group is None for strategy in strategies),
            "hybrid",
        ),
        "segments": (
            any(strategy.cut_by_axis and strategy.segments is None for strategy in strategies),
            "pipeline",
        ),
        **{
            name: (any(name in _list_open(strategy) for strategy in strategies), "hybrid of it")
            for name in DEGREES
        },
    }
    for name, (is_used, kind) in takers.items():
        if name in (*spec.parameters, *spec.axes.swept) and not is_used:
            yield f"{name} is not used: no strategy is a {kind} whose label does not set {name}"


def _list_open(strategy: Strategy) -> list[str]:
    """The parallelisms of a strategy whose degree it does not state itself."""
    if strategy.hybrid:
        return [] if strategy.group is not None else [*strategy.parts]
    stated = dict(strategy.degrees)
    return [name for name in strategy.parts if strategy.several and name not in stated]


def _list_keys(systems: Sequence[System], oracle: OracleName) -> list[str]:
    """Notes on keys of users' systems that only the other oracle uses."""
    keys = PAPER_KEYS if oracle == "machine" else MACHINE_KEYS
    return [
        f"system {shorten(system.name)}: {key} is not used by 'oracle: {oracle}': {instead}"
        for system in dict.fromkeys(systems)
        if not _is_catalogued(system)
        for key, instead in keys.items()
        if _states(system, key)
    ]


def _list_meshes(systems: Sequence[System], spec: Spec) -> Iterator[str]:
    """Meshes of nodes, where no strategy places operators on devices."""
    if any(parse_strategy(strategy).placed for strategy in spec.axes.strategy):
        return
    for system in dict.fromkeys(systems):
        if not _is_catalogued(system) and system.mesh is not None:
            yield (
                f"system {shorten(system.name)}: mesh is not used: only placements use it; for all "
                "other strategies the PEs of a node are alike"
            )


def _list_targets(models: Sequence[Model], datasets: Sequence[Dataset]) -> Iterator[str]:
    """Notes on users' data sets whose number of targets no model reads."""
    if any(isinstance(model, Architecture) and _reads_targets(model) for model in models):
        return
    brought = [model.own_dataset for model in models]
    for dataset in datasets:
        known = dataset in brought or find_catalogued("dataset", dataset.name) == dataset
        if not known and dataset.rank > 1:  # networks of sequences have a vocabulary of their own
            yield (
                f"dataset {shorten(dataset.name)}: targets is not used: "
                "no model has a layer of as many outputs, 'fc: targets'"
            )


def _reads_targets(model: Architecture) -> bool:
    """True if a layer has as many outputs as the data set has targets."""
    return "='targets'" in repr(model.steps)


def _list_optimizers(laws: Iterable[Convergence], spec: Spec) -> Iterator[str]:
    """Notes on users' laws of epochs under another optimizer than the spec's."""
    if spec.convergence == ("auto",):
        return
    for law in {law.name: law for law in laws}.values():
        if law.optimizer and spec.optimizer not in law.optimizer.lower():
            yield (
                f"convergence {shorten(law.name)}: its epochs are of optimizer "
                f"{shorten(law.optimizer)}; weight updates are of 'optimizer: {spec.optimizer}'"
            )


def _list_net_times(models: Sequence[Model]) -> Iterator[str]:
    """Notes on times of layers in .net files, which have neither batch nor precision."""
    for model in models:
        if isinstance(model, NetModel) and model.layers.seconds is not None:
            yield (
                f"model {shorten(model.name)}: its times of layers are not used by "
                "'oracle: machine': a .net file says neither their batch nor their precision"
            )


def _list_profiles(models: Sequence[Model], systems: Sequence[System]) -> list[str]:
    """Notes on profiles that the machine oracle cannot use, or completes."""
    pairs = product((model for model in models if isinstance(model, Architecture)), systems)
    texts = (text for model, system in pairs for text in _describe_profiles(model, system))
    return list(dict.fromkeys(texts))


def _is_catalogued(system: System) -> bool:
    """True if the machine is the catalogue's, in any precision and with any software."""
    known = find_catalogued("system", system.machine)
    settings = {"name", "precision", "software"}
    return isinstance(known, System) and (
        known.model_dump(exclude=settings) == system.model_dump(exclude=settings)
    )


def _states(system: System, key: str) -> bool:
    """True if the file states the key, with another value than the default."""
    entry: Record | tuple[Record, ...] = system
    *parts, name = key.split(".")
    for part in parts:
        entry = getattr(entry, part)
    return any(
        name in record.model_fields_set
        and getattr(record, name) != type(record).model_fields[name].default
        for record in (entry if isinstance(entry, tuple) else (entry,))
    )


def _describe_profiles(model: Architecture, system: System) -> Iterator[str]:
    of_device = model.profiles_on(system.pe.device)
    where = f"model {shorten(model.name)}: its profile on {shorten(system.pe.device)}"
    usable = [profile for profile in of_device if profile.precision in (None, system.precision)]
    if of_device and not usable:
        taken = ", ".join(dict.fromkeys(str(profile.precision) for profile in of_device))
        yield f"{where} is not used: it was taken in {taken}, the system is in {system.precision}"
    if usable and all(profile.missing for profile in usable):
        assumed = {"batch": str(USUAL_BATCH), "precision": system.precision}
        written = ", ".join(f"{name}: {assumed[name]}" for name in usable[0].missing)
        yield f"{where} is taken as of '{written}': write how it was taken beside its seconds"
