"""A network's layers timed on this device, and its file with the time of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from grids.entries.precision import PrecisionName
from grids.library import find
from grids.models.architecture import Architecture
from grids.models.profiles import Profile
from grids.reading.errors import InputError
from grids.reading.textfile import write_text
from sweep.importing.machines.device_times import describe_device, time_layers


@dataclass(frozen=True)
class ProfiledModel:
    """A network, seconds of its layers, and the conditions. seconds: of one sample."""

    model: Architecture
    rows: list[dict[str, object]]
    seconds: float
    shape: tuple[int, ...]
    batch: int
    precision: PrecisionName


def profile_model(
    reference: str,
    dataset: str,
    batch: int,
    precision: PrecisionName,
    report: Callable[[str], None],
) -> ProfiledModel:
    """Time the layers of a network for a data set's samples. InputError: not an architecture."""
    model, data = find("model", reference, Path()), find("dataset", dataset, Path())
    if not isinstance(model, Architecture):
        raise InputError("a file of ParaDL's has its own times", where=reference)
    times = time_layers(model.table(data), batch, precision, report)
    rows: list[dict[str, object]] = [{"layer": name, "seconds": time} for name, time in times]
    seconds = sum(time for _, time in times) / batch
    return ProfiledModel(model, rows, seconds, data.shape, batch, precision)


def write_profile(profiled: ProfiledModel, device: str, path: Path) -> None:
    """Write the network's file with the profile behind those that it has."""
    profile = Profile(
        device=device,
        shape=profiled.shape,
        # Four digits: repeated runs differ by more.
        seconds=float(f"{profiled.seconds:.4g}"),
        batch=profiled.batch,
        precision=profiled.precision,
        source=(f"measured: sum of its layers on {describe_device()}, by paradl profile",),
    )
    changed = profiled.model.model_copy(update={"profiles": (*profiled.model.profiles, profile)})
    write_text(yaml.safe_dump(changed.definition(), sort_keys=False, width=100), path)
