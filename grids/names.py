"""Names of the catalogue, and references to entries or files.

This module imports nothing that reads entries, so that a wrong name is refused before slow imports.
"""

from functools import cache
from pathlib import Path
from typing import Literal

from grids.reading.errors import InputError, shorten, suggest_name

CATALOGUE = Path(__file__).parent / "catalogue"

Kind = Literal["model", "dataset", "system", "calibration", "convergence"]

# Kinds whose names may have settings behind them: a precision, a length of sequences.
SET_UP = ("system", "dataset")

# Guides to entries of one's own.
GUIDES: dict[Kind, str] = {"model": "docs/your-model.md", "system": "docs/your-machine.md"}

# Models as frameworks save them.
FOREIGN = (
    *(".onnx", ".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".hdf5", ".keras", ".pb"),
    *(".tflite", ".mlmodel", ".py", ".prototxt", ".caffemodel"),
)


@cache
def list_names(kind: Kind) -> tuple[str, ...]:
    """The names of the catalogue."""
    return tuple(sorted(path.stem for path in (CATALOGUE / f"{kind}s").glob("*.yaml")))


def check_name(kind: Kind, reference: str) -> None:
    """InputError for a reference that is neither a path nor a name of the catalogue."""
    name, settings = split_reference(reference) if kind in SET_UP else (reference, None)
    if settings is not None:
        check_name(kind, name)
        return
    if kind == "model":
        _refuse_foreign(reference)
    if not is_path(reference) and reference not in list_names(kind):
        raise InputError(f"unknown {kind} {shorten(reference)}", advice=_advise(kind, reference))


def _advise(kind: Kind, name: str) -> str:
    """Advice on an unknown name."""
    guide = GUIDES.get(kind)
    hint = f" Or write your own file, such as ./mine.yaml ({guide})" if guide else ""
    advice = suggest_name(name, list_names(kind))
    return advice + (hint if advice.endswith("?") or not hint else f".{hint}")


def _refuse_foreign(reference: str) -> None:
    """InputError for a framework's model file, known by its ending."""
    ending = Path(reference).suffix.casefold()
    if ending in FOREIGN:
        raise InputError(
            f"{shorten(reference)}: {ending} files are not read",
            advice=f"write the network's layers as YAML ({GUIDES['model']})",
        )


def split_reference(reference: str) -> tuple[str, str | None]:
    """A name or path, and its settings if it has any; paths may have colons, too."""
    name, colon, settings = reference.rpartition(":")
    if not colon or "/" in settings or is_path(settings):
        return reference, None
    return name, settings


def split_labels(text: str) -> list[str]:
    """The names of `abci,dgx-h100:precision=amp,software=ddp`, whose settings have commas too."""
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        # A setting of the name before it: names have no equals signs but behind a colon.
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def is_path(reference: str) -> bool:
    """True if a reference is a file rather than a name."""
    path = Path(reference)
    # By the text alone: a file named like a model would hide the catalogue's.
    return "/" in reference or path.suffix in (".yaml", ".yml", ".json") or is_net(path)


def is_net(path: Path) -> bool:
    """True if a file is one of ParaDL's models, by its ending."""
    return path.suffix.startswith(".net")  # the authors' end in .net, .net_sc and .net_256
