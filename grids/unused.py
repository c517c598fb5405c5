"""What files state and the oracle does not use, said before anything runs."""

from collections.abc import Iterator, Sequence
from itertools import product

from grids.entries.entry import Record
from grids.entries.oracles import OracleName
from grids.entries.systems import System
from grids.library import Model, find_catalogued
from grids.models.architecture import Architecture
from grids.models.profiles import USUAL_BATCH
from grids.reading.errors import shorten
from grids.spec import Spec

# Keys of a system that one oracle alone uses, and what the other one has in their place.
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
}


def list_unused(models: Sequence[Model], systems: Sequence[System], spec: Spec) -> list[str]:
    """Keys of users' systems that the spec's oracle does not use; profiles that it cannot."""
    keys = _list_keys(systems, spec.oracle)
    if spec.oracle == "paper" or spec.times != "measured":
        return keys
    return keys + _list_profiles(models, systems)


def _list_keys(systems: Sequence[System], oracle: OracleName) -> list[str]:
    """Keys that the users' own systems state, and that only the other oracle uses."""
    keys = PAPER_KEYS if oracle == "machine" else MACHINE_KEYS
    return [
        f"system {shorten(system.name)}: {key} is not used by 'oracle: {oracle}': {instead}"
        for system in dict.fromkeys(systems)
        if not _is_catalogued(system)
        for key, instead in keys.items()
        if _states(system, key)
    ]


def _list_profiles(models: Sequence[Model], systems: Sequence[System]) -> list[str]:
    """Profiles on the systems' devices that the machine oracle cannot use, or not as they stand."""
    pairs = product((model for model in models if isinstance(model, Architecture)), systems)
    texts = (text for model, system in pairs for text in _describe_profiles(model, system))
    return list(dict.fromkeys(texts))


def _is_catalogued(system: System) -> bool:
    """Whether the machine is the catalogue's, in whatever precision and software."""
    known = find_catalogued("system", system.machine)
    settings = {"name", "precision", "software"}
    return isinstance(known, System) and (
        known.model_dump(exclude=settings) == system.model_dump(exclude=settings)
    )


def _states(system: System, key: str) -> bool:
    """Whether the file states it, and nothing that is so anyway."""
    entry: Record = system
    *parts, name = key.split(".")
    for part in parts:
        entry = getattr(entry, part)
    default = type(entry).model_fields[name].default
    return name in entry.model_fields_set and getattr(entry, name) != default


def _describe_profiles(model: Architecture, system: System) -> Iterator[str]:
    of_device = [profile for profile in model.profiles if profile.device == system.pe.device]
    where = f"model {shorten(model.name)}: its profile on {shorten(system.pe.device)}"
    usable = [each for each in of_device if each.precision in (None, system.precision)]
    if of_device and not usable:
        taken = ", ".join(dict.fromkeys(str(profile.precision) for profile in of_device))
        yield f"{where} is not used: it was taken in {taken}, the system is in {system.precision}"
    if usable and all(each.missing for each in usable):
        assumed = {"batch": str(USUAL_BATCH), "precision": system.precision}
        written = ", ".join(f"{name}: {assumed[name]}" for name in usable[0].missing)
        yield f"{where} is taken as of '{written}': write how it was taken beside its seconds"
