"""A network's layers timed on this device, and its file with the time of all of them."""

from collections.abc import Callable
from pathlib import Path

from paradl.grids.entries.precision import PrecisionName
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture, Profile
from paradl.grids.reading.plainyaml import write_plain
from paradl.grids.reading.textfile import write_text
from paradl.grids.reading.yamlfile import validate
from paradl.sweep.importing.machines.device_times import describe_device, time_layers


def profile_model(
    reference: str,
    dataset: str,
    batch: int,
    precision: PrecisionName,
    device: str,
    report: Callable[[str], None],
) -> tuple[Architecture, list[dict[str, object]]]:
    """Time the layers of a network for a data set's samples.

    Returns the network with a further profile, and a row for each layer. device: its name.
    InputError: a bad name.
    """
    model, data = find("model", reference, Path()), find("dataset", dataset, Path())
    conditions = {"device": device, "shape": data.shape, "batch": batch, "precision": precision}
    source = f"measured: sum of its layers on {describe_device()}, by paradl probe model"
    # Before layers are timed for minutes; the seconds come last.
    profile = validate(Profile, {**conditions, "seconds": 1.0, "source": source}, "")
    times = time_layers(model.table(data), batch, precision, report)
    # Four digits: repeated runs differ by more.
    seconds = float(f"{sum(time for _, time in times) / batch:.4g}")
    timed = profile.model_copy(update={"seconds": seconds})
    profiled = model.model_copy(update={"profiles": (*model.profiles, timed)})
    return profiled, [{"layer": name, "seconds": time} for name, time in times]


def write_model(model: Architecture, path: Path) -> None:
    """Write a network's file."""
    write_text(write_plain(model.definition(), width=100), path)
