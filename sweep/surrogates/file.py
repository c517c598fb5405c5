"""Files of surrogates: plain arrays and JSON in the safetensors format, which nothing runs from.

The facts stand in the header's metadata: which learner, its encoding, what it was trained on.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.reading.errors import InputError, shorten
from sweep.exports.target import write_beside

KEY, VERSION = "paradl_surrogate", 1
# [B] Beyond it a file is no surrogate of ours: those of ensembles have some MB.
LARGEST = 2**30
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Saved:
    """facts: what is known of a surrogate, as plain data. arrays: its numbers, by name."""

    facts: Mapping[str, Any]
    arrays: Arrays


def write_file(path: Path, saved: Saved, *, force: bool) -> None:
    """Write a surrogate. InputError: a file is there. RunError: the disk is full."""
    from safetensors.numpy import save

    header = {KEY: json.dumps({"version": VERSION, **saved.facts}, allow_nan=False)}
    arrays = {name: np.array(array, order="C") for name, array in saved.arrays.items()}
    data = save(arrays, metadata=header)
    with write_beside(path, force=force) as folder:
        (folder / path.name).write_bytes(data)


def read_file(path: Path) -> Saved:
    """The surrogate in a file. InputError: there is none, damaged, or of another version."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise InputError("no such file", where=str(path))
    if path.stat().st_size > LARGEST:
        raise InputError("too large for a surrogate", where=str(path))
    try:
        with safe_open(path, framework="numpy") as file:
            facts = _read_facts(path, file.metadata() or {})
            names = list(file.keys())
            arrays = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise _refuse(path) from error
    for array in arrays.values():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise _refuse(path)
    return Saved(facts, arrays)


def _read_facts(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The facts in the header. InputError: not a surrogate of ours, or another version."""
    if KEY not in metadata:
        raise _refuse(path)
    try:
        facts = json.loads(metadata[KEY])
    except (ValueError, RecursionError) as error:
        raise _refuse(path) from error
    version = facts.get("version") if isinstance(facts, dict) else None
    if version != VERSION:
        raise InputError(
            f"expected a surrogate of version {VERSION}, got {shorten(version)}",
            where=str(path),
            advice="train it again with this paradl",
        )
    return dict(facts)


def _refuse(path: Path) -> InputError:
    return InputError(
        "no surrogate, or a damaged one",
        where=str(path),
        advice="make one with 'paradl surrogate train'",
    )
