"""Look-up of models, data sets, systems and calibrations, by name or in a user's file.

A reference with a slash or a file's ending (.yaml, .yml, .net...) is a path; a mapping is an entry
written out, as `definition()` returns it. A system may be followed by settings,
`dgx-h100:precision=tf32` or `./mine.yaml:precision=amp`, and a text by a length,
`pile:length=8192`. A model in JSON is a config.json of Hugging Face.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal, overload

from pydantic import ValidationError

from grids.convergence.entry import Convergence
from grids.entries.calibration import CalibrationFile
from grids.entries.datasets import Dataset
from grids.entries.entry import Entry, read_settings
from grids.entries.names import (
    CATALOGUE,
    SET_UP,
    Kind,
    check_name,
    is_net,
    is_path,
    list_names,
    split_reference,
)
from grids.entries.systems import System
from grids.models.architecture import Architecture
from grids.models.files.huggingface import read_config
from grids.models.files.modelfile import read_architecture
from grids.models.files.netfile import NetModel, read_layers, read_net
from grids.reading.errors import InputError, format_text, shorten, suggest_name
from grids.reading.yamlfile import Source, explain_error, load, validate

Model = Architecture | NetModel
Reference = str | Mapping[str, object]

ENTRIES: dict[Kind, type[Entry]] = {
    "model": Architecture,
    "dataset": Dataset,
    "system": System,
    "calibration": CalibrationFile,
    "convergence": Convergence,
}
SETTINGS_EXAMPLES = {"system": "dgx-h100:precision=tf32", "dataset": "pile:length=8192"}


# The type of the entry follows from the kind.
@overload
def find(kind: Literal["model"], reference: Reference, base: Path) -> Model: ...
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
) -> Model | Dataset | System | CalibrationFile | Convergence: ...


def find(kind: Kind, reference: Reference, base: Path) -> Entry | NetModel:
    """Return the entry of a name, of a path (relative to `base`), or of a mapping."""
    if isinstance(reference, Mapping):
        return _read_definition(kind, dict(reference), base)
    name, settings = split_reference(reference) if kind in SET_UP else (reference, None)
    if settings is not None:
        return _set_up(kind, name, settings, reference, base)
    check_name(kind, reference)
    if is_path(reference):
        # Unlike a shell, Path does not expand "~". `base` does not affect absolute paths.
        path = base / os.path.expanduser(reference)
        if kind == "model" and path.suffix == ".json":
            return read_config(path)
        return read_net(path) if kind == "model" and is_net(path) else _load(kind, path)
    return _load_catalogued(kind, reference)


def find_catalogued(kind: Kind, name: str) -> Entry | None:
    """Return the catalogue's entry of this name; None if there is none."""
    return _load_catalogued(kind, name) if name in list_names(kind) else None


@cache
def _load_catalogued(kind: Kind, name: str) -> Entry:
    """Load a catalogued entry, once per process."""
    return _load(kind, CATALOGUE / f"{kind}s" / f"{name}.yaml")


def _load(kind: Kind, path: Path) -> Entry:
    """Load the entry in a YAML file."""
    document = load(path)
    keys = document.data.keys()
    # A file of another kind is named as such: a list of its wrong keys would not help.
    others = (other for other in ENTRIES if _has_required(other, keys) and other != kind)
    other = "spec" if "axes" in keys else next(others, None)
    if other and not _has_required(kind, keys):
        raise InputError(f"expected a {kind}'s file, got a {other}'s", where=str(path))
    return _validate(kind, document.data, document, path.parent)


def _has_required(kind: Kind, keys: Collection[str]) -> bool:
    """True if the keys include all that an entry of this kind requires."""
    fields = ENTRIES[kind].model_fields
    return all(name in keys for name, field in fields.items() if field.is_required())


def _read_definition(kind: Kind, definition: dict[str, object], base: Path) -> Entry | NetModel:
    """Return the entry that a mapping defines, or that is in the file it names."""
    # These keys are not of an entry. "net" is the text of a .net file, as kept in stores.
    if kind == "model" and "net" in definition:
        return NetModel.from_definition(definition)
    if kind == "model" and "file" in definition:
        return _read_split_model(definition, base)
    name = format_text(definition.get("name", "without a name"))
    return _validate(kind, definition, f"{kind} {name}", base)


def _read_split_model(definition: dict[str, object], base: Path) -> Model:
    """Read `{file: MODEL.net_sc, layers: SPLIT.lc}`: a .net file and the layers to split."""
    unknown = set(definition) - {"file", "layers"}
    if unknown:
        advice = suggest_name(str(min(unknown)), ("file", "layers"))
        raise InputError(f"unknown key {shorten(min(unknown))} beside 'file'", advice=advice)
    file, layers = definition["file"], definition.get("layers")
    for key, value in (("file", file), ("layers", layers or "")):
        if not isinstance(value, str):
            raise InputError(f"{key}: expected a file's name, got {shorten(value)}")
    model = find("model", str(file), base)
    if layers is None:
        return model
    # A .lc file lists the lines of a .net file; models in YAML have none.
    if not isinstance(model, NetModel):
        raise InputError(
            f"layers: expected a ParaDL model file (.net...), got {shorten(file)}",
            advice="for other models the strategy decides, or 'split=all'",
        )
    path = base / os.path.expanduser(str(layers))
    return replace(model, mask=read_layers(path, model.layers.names))


def _validate(kind: Kind, data: dict[str, object], source: Source, base: Path) -> Entry:
    """Return the entry of plain data; InputError begins with the place in `source`."""
    if kind == "model":
        return read_architecture(data, source, base)
    return validate(ENTRIES[kind], data, source)


def _set_up(kind: Kind, name: str, settings: str, reference: str, base: Path) -> Entry:
    """Return a system or data set with settings; InputError begins with the reference."""
    where = format_text(reference)
    entry = find(kind, name, base)
    assert isinstance(entry, System | Dataset)  # SET_UP
    try:
        example = SETTINGS_EXAMPLES[kind]
        return entry.with_settings(read_settings(settings, where, example, entry.SETTINGS))
    except ValidationError as error:
        raise explain_error(error, where, ENTRIES[kind]) from None
