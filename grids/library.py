"""Look-up of models, data sets, systems and calibrations, by name or in a user's file.

A reference with a slash or a file's ending (.yaml, .yml, .json) is a path; a mapping is an entry
written out, as `definition()` returns it. A system may be followed by settings,
`dgx-h100:precision=tf32` or `./mine.yaml:memory=32 GB`, and a text by a length,
`pile:length=8192`, and a model by what of it is trained, `llama3_8b:lora=16`. A model in JSON is a
config.json of Hugging Face.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, overload

from pydantic import ValidationError

from paradl.grids.convergence.catalogue import explain_missing, find_convergence
from paradl.grids.convergence.entry import Convergence, Pair
from paradl.grids.convergence.fit import fit
from paradl.grids.convergence.points import is_same_data, pick_series, read_points
from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.entries.datasets import FROM_TOKENS, Dataset
from paradl.grids.entries.entry import Entry, split_settings
from paradl.grids.entries.names import (
    CATALOGUE,
    SET_UP,
    Kind,
    check_name,
    list_names,
    locate_entry,
    refuse_config,
    split_reference,
)
from paradl.grids.entries.systems import System
from paradl.grids.models.architecture import Architecture, read_architecture
from paradl.grids.models.files.huggingface import read_config
from paradl.grids.reading.errors import InputError, add_place, format_text, shorten
from paradl.grids.reading.yamlfile import Source, Where, explain_error, load, validate
from paradl.kernels.options import OracleName

Reference = str | Mapping[str, object]
References = tuple[Reference, ...]

# Properties that data sets of one name must share.
SAMPLES = ("shape", "samples", "targets")

# A data set for networks of each rank.
EXAMPLES = {1: "pile", 2: "imagenet", 3: "cosmoflow-256"}

ENTRIES: dict[Kind, type[Entry]] = {
    "model": Architecture,
    "dataset": Dataset,
    "system": System,
    "calibration": CalibrationFile,
    "convergence": Convergence,
}
SETTINGS_EXAMPLES = {
    "system": "dgx-h100:precision=tf32",
    "dataset": "pile:length=8192",
    "model": "llama3_8b:lora=16",
}


# The type of the entry follows from the kind.
@overload
def find(kind: Literal["model"], reference: Reference, base: Path) -> Architecture: ...
@overload
def find(kind: Literal["dataset"], reference: Reference, base: Path) -> Dataset: ...
@overload
def find(kind: Literal["system"], reference: Reference, base: Path) -> System: ...
@overload
def find(kind: Literal["calibration"], reference: Reference, base: Path) -> CalibrationFile: ...
@overload
def find(kind: Literal["convergence"], reference: Reference, base: Path) -> Convergence: ...
@overload
def find(
    kind: Kind, reference: Reference, base: Path
) -> Architecture | Dataset | System | CalibrationFile | Convergence: ...


def find(kind: Kind, reference: Reference, base: Path) -> Entry:
    """Return the entry of a name, of a path (relative to `base`), or of a mapping."""
    if isinstance(reference, Mapping):
        name = format_text(reference.get("name", "without a name"))
        return _validate(kind, dict(reference), f"{kind} {name}", base)
    if not isinstance(reference, str):
        raise InputError(f"expected a name or a file, got {shorten(reference)}", where=kind)
    # Settings are cut off first: a file's name ends before them.
    name, settings = split_reference(reference) if kind in SET_UP else (reference, None)
    if settings is not None:
        return _set_up(kind, name, settings, reference, base)
    check_name(kind, reference, base)
    path = locate_entry(kind, reference, base)
    if path is not None:
        if kind == "model" and path.suffix == ".json":
            return _validate(kind, read_config(path), str(path), path.parent)
        return _load(kind, path)
    return _load_catalogued(kind, reference)


def find_catalogued(kind: Kind, name: str) -> Entry | None:
    """Return the catalogue's entry of this name; None if there is none."""
    return _load_catalogued(kind, name) if name in list_names(kind) else None


@cache
def _load_catalogued(kind: Kind, name: str) -> Entry:
    return _load(kind, CATALOGUE / f"{kind}s" / f"{name}.yaml")


def _load(kind: Kind, path: Path) -> Entry:
    document = load(path)
    keys = document.data.keys()
    # A file of another kind is named as such: a list of its wrong keys would not help.
    others = (other for other in ENTRIES if _has_required(other, keys) and other != kind)
    other = "spec" if "axes" in keys else next(others, None)
    if not _has_required(kind, keys):
        refuse_config(keys, f"a {kind}'s file", path)
        if other:
            raise InputError(f"expected a {kind}'s file, got a {other}'s", where=str(path))
        if kind == "calibration":  # which programs write: its keys are no slips
            what, advice = "expected a calibration's file", "paradl calibrate writes one"
            raise InputError(f"{what}, got another", where=str(path), advice=advice)
    return _validate(kind, document.data, document, path.parent)


def _has_required(kind: Kind, keys: Collection[str]) -> bool:
    """True if the keys include all that an entry of this kind requires."""
    fields = ENTRIES[kind].model_fields
    given = {*keys, *(FROM_TOKENS if "tokens" in keys else ())}
    return all(name in given for name, field in fields.items() if field.is_required())


def _validate(kind: Kind, data: dict[str, object], source: Source, base: Path) -> Entry:
    if kind == "model":
        return read_architecture(data, source, base)
    return validate(ENTRIES[kind], data, source)


def _set_up(kind: Kind, name: str, settings: str, reference: str, base: Path) -> Entry:
    """Return an entry with settings; InputError begins with the reference."""
    where = format_text(reference)
    entry = find(kind, name, base)
    assert isinstance(entry, System | Dataset | Architecture)  # SET_UP
    read = split_settings(settings, where, SETTINGS_EXAMPLES[kind])
    for key in read:
        if key not in entry.SETTINGS:
            raise InputError.unknown("setting", key, entry.SETTINGS, where=where)
    try:
        with add_place(where):
            return entry.with_settings(read)
    except ValidationError as error:
        raise explain_error(error, where, ENTRIES[kind]) from None


def look_up(kind: Kind, references: References, base: Path, where: Where) -> tuple[Any, ...]:
    """Return the entries that an axis names."""
    entries = []
    for position, reference in enumerate(references):
        with add_place(where(("axes", kind, position))):
            entries.append(find(kind, reference, base))
    return tuple(entries)


def look_up_calibrations(
    references: References, oracle: OracleName, systems: tuple[System, ...], base: Path
) -> dict[str, CalibrationFile]:
    """Return the calibration of each system that has one, by the system's label.

    InputError: a calibration belongs to no system, or two belong to the same one.
    """
    # Table III takes no calibration, so `auto` means none there.
    if references == ("none",) or (references == ("auto",) and oracle == "paper"):
        return {}
    if references == ("auto",):
        return _match(_list_shipped(), systems)
    calibrations = tuple(find("calibration", reference, base) for reference in references)
    if oracle == "paper":
        raise InputError("Table III takes no calibration", advice="write 'calibration: none'")
    for calibration in calibrations:
        _expect_machine(calibration, systems)
    _refuse_rivals(calibrations)
    return _match(calibrations, systems)


@cache
def _list_shipped() -> tuple[CalibrationFile, ...]:
    return tuple(find("calibration", name, Path()) for name in list_names("calibration"))


def _match(
    calibrations: tuple[CalibrationFile, ...], systems: tuple[System, ...]
) -> dict[str, CalibrationFile]:
    pairs = product(systems, calibrations)
    return {
        system.name: calibration for system, calibration in pairs if calibration.belongs_to(system)
    }


def _expect_machine(calibration: CalibrationFile, systems: tuple[System, ...]) -> None:
    """Raise InputError if it was fitted to another machine, precision or software."""
    if any(calibration.belongs_to(system) for system in systems):
        return
    got = ", ".join(system.trained for system in systems)
    what = f"{shorten(calibration.name)} calibrates {calibration.machine}, got {shorten(got)}"
    raise InputError(what, advice="write 'calibration: auto', or 'none'")


def _refuse_rivals(calibrations: Iterable[CalibrationFile]) -> None:
    owners: dict[str, str] = {}
    for calibration in calibrations:
        owner = calibration.machine
        if owner in owners:
            both = f"{shorten(owners[owner])} and {shorten(calibration.name)}"
            raise InputError(f"{both} calibrate the same machine, {owner}")
        owners[owner] = calibration.name


def look_up_datasets(
    references: References | None, models: tuple[Architecture, ...], base: Path, where: Where
) -> tuple[Dataset, ...]:
    """Return the data sets that an axis names. InputError: it names none."""
    if references is None:
        # A network takes any samples of its rank, so the user has to name them.
        usual = models[0].customary or EXAMPLES[models[0].rank]
        raise InputError(
            f"no dataset is given for model {models[0].name!r}",
            where=where(("axes", "dataset")),
            advice=f"name one, such as 'dataset: {usual}'",
        )
    return look_up("dataset", references, base, where)


def look_up_convergences(
    references: References,
    target: str | None,
    models: Iterable[str],
    datasets: Iterable[Dataset],
    base: Path,
) -> dict[Pair, Convergence]:
    """Return the law of each model and data set that has one.

    InputError: a file or an entry fits no pair, or the target was not measured.
    """
    if references == ("none",):
        return {}
    pairs = list(product(models, datasets))
    laws: dict[Pair, Convergence] = {}
    for reference in references:
        laws |= _find_laws(reference, target, pairs, base)
    if not laws:
        names = ", ".join(f"{model} on {data.name}" for model, data in pairs)
        what = f"no law of epochs is known of {shorten(names)}"
        if len(pairs) == 1 and references == ("auto",):
            model, data = pairs[0]
            what = explain_missing(model, data.name)
        advice = (
            "give measured ones, 'convergence: ./mine.csv' (docs/convergence.md), tokens of a "
            "text, 'none', or to best and provision a number of epochs"
        )
        raise InputError(what, advice=advice)
    return laws


def _find_laws(
    reference: Reference, target: str | None, pairs: list[tuple[str, Dataset]], base: Path
) -> dict[Pair, Convergence]:
    if reference == "auto":
        shipped = {
            (model, data.name): find_convergence(model, data.name, target) for model, data in pairs
        }
        return {pair: law for pair, law in shipped.items() if law is not None}
    if isinstance(reference, str) and reference.endswith(".csv"):
        # Unlike a shell, Path does not expand "~". `base` does not affect absolute paths.
        return _fit_laws(base / os.path.expanduser(reference), target, pairs)
    entry = find("convergence", reference, base)
    if target is not None and target != entry.target:
        what = f"{shorten(entry.name)} is of target {shorten(entry.target)}, got {shorten(target)}"
        raise InputError(what)
    return {
        (model, data.name): entry
        for model, data in pairs
        if model == entry.model and is_same_data(data.name, entry.dataset)
    }


def _fit_laws(
    path: Path, target: str | None, pairs: list[tuple[str, Dataset]]
) -> dict[Pair, Convergence]:
    """Fit the series of a file, one per pair that it covers."""
    series = read_points(path)
    # A file may have fewer pairs than the spec, and others.
    known = {(candidate.model, candidate.dataset) for candidate in series}
    return {
        (model, data.name): fit(pick_series(series, path, model, data.name, target), data.samples)
        for model, data in pairs
        if any(model == name and is_same_data(data.name, measured) for name, measured in known)
    }
