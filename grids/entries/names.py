"""Names of the catalogue, and references to entries or files.

This module does not import readers, so that a wrong name is refused before slow imports.
"""

import os
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Literal

from paradl.grids.reading.errors import InputError, find_meant, shorten, suggest_name

CATALOGUE = Path(__file__).parents[1] / "catalogue"

Kind = Literal["model", "dataset", "system", "calibration", "convergence"]

# Kinds whose names may be followed by settings: a precision, a sequence length, adapters.
SET_UP = ("system", "dataset", "model")

# Guides to writing one's own entries.
GUIDES: dict[Kind, str] = {"model": "docs/your-model.md", "system": "docs/your-machine.md"}

# Models as frameworks save them.
FOREIGN = (
    *(".onnx", ".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".hdf5", ".keras", ".pb"),
    *(".tflite", ".mlmodel", ".py", ".prototxt", ".caffemodel", ".net", ".net_sc", ".net_256"),
)


@cache
def list_names(kind: Kind) -> tuple[str, ...]:
    """Names in the catalogue."""
    return tuple(sorted(path.stem for path in (CATALOGUE / f"{kind}s").glob("*.yaml")))


def check_name(kind: Kind, reference: str, base: Path = Path()) -> None:
    """Raise InputError for a reference that is neither a file nor a name of the catalogue.

    base: folder that a file's path is relative to.
    """
    name, settings = split_reference(reference) if kind in SET_UP else (reference, None)
    if settings is not None:
        check_name(kind, name, base)
        return
    ending = Path(reference).suffix.casefold()
    if kind == "model" and ending in FOREIGN:
        raise InputError(
            f"{shorten(reference)}: {ending} files are not read",
            advice="write it as YAML, by hand or with paradl import model (ONNX, PyTorch; "
            f"{GUIDES['model']})",
        )
    path = locate_entry(kind, reference, base)
    if path is not None and not _is_missing(path):
        return
    several = reference.count(",") + 1
    if several > 1:
        raise InputError(
            f"expected one {kind}, got {several}: {shorten(reference)}",
            advice="ask about each alone; a spec lists them, as in [a, b]",
        )
    if path is not None:
        raise InputError("no such file", where=str(path), advice=_advise_file(kind, reference))
    if reference not in list_names(kind):
        advice = suggest_name(reference, list_names(kind))
        if guide := GUIDES.get(kind):
            end = "" if advice.endswith("?") else "."
            advice += f"{end} Or write your own file, such as ./mine.yaml ({guide})"
        if reference and os.path.exists(base / reference):
            advice = f"write ./{reference} for the file or folder of this name"
        what = f"unknown {kind} {shorten(reference)}"
        raise InputError(what, advice=advice, page="unknown-name")


def refuse_config(keys: Collection[str], wanted: str, path: Path) -> None:
    """Raise InputError for the keys of a config.json in the place of another file."""
    if "model_type" in keys and path.suffix == ".json":
        raise InputError(
            f"expected {wanted}, got a model's config.json",
            where=str(path),
            advice=f"it is a model: --model {path}, or in a spec model: {path}",
        )


def _is_missing(path: Path) -> bool:
    """True if nothing is there; what cannot be looked up is for the reader to report."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _advise_file(kind: Kind, reference: str) -> str:
    """Advise on a file that is not there, which may be an id of Hugging Face: OWNER/NAME."""
    owner, slash, name = reference.partition("/")
    if kind != "model" or not (slash and name and owner.strip(".~")) or "/" in name:
        return "check the path"
    meant = find_meant(name, list_names(kind))
    near = f", or take {meant!r} of the catalogue" if meant else ""
    return (
        "if it is an id of Hugging Face, save its config.json and write ./config.json "
        f"({GUIDES[kind]}){near}"
    )


def split_reference(reference: str) -> tuple[str, str | None]:
    """Split a reference into name or path, and settings; a path may contain colons."""
    name, colon, settings = reference.rpartition(":")
    if not colon or "/" in settings or is_path(settings):
        return reference, None
    return name, settings


def split_labels(text: str) -> list[str]:
    """Split `abci,dgx-h100:precision=amp,software=ddp` into names; settings have commas too."""
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        # Without a colon, an equals sign means another setting of the name before.
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def locate_entry(kind: Kind, reference: str, base: Path) -> Path | None:
    """Return the file that a reference names, relative to `base`; None for a name.

    A model may be a checkpoint's folder, which has a config.json.
    """
    if not is_path(reference):
        return None
    # Unlike a shell, Path does not expand "~". `base` does not affect absolute paths.
    path = base / os.path.expanduser(reference)
    return path / "config.json" if kind == "model" and path.is_dir() else path


def is_path(reference: str) -> bool:
    """True if a reference is a file rather than a name."""
    path = Path(reference)
    # By the text alone: otherwise a file named like a model would hide the catalogue's.
    return "/" in reference or path.suffix in (".yaml", ".yml", ".json")
