"""Small design spaces, and operations on their stores."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import zarr

from paradl.grids.outputs import OUTPUTS
from paradl.sweep.cube.store import open_cube

COMMAND = (sys.executable, "-m", "paradl")

# Epochs of two networks; the second never reaches its target with more than 400 samples.
LAWS: list[dict[str, Any]] = [
    {
        "name": "alexnet",
        "model": "alexnet",
        "dataset": "imagenet-226",
        "target": "top1>=0.57",
        "epochs_min": 60,
        "critical_batch": 700,
    },
    {
        "name": "cosmoflow",
        "model": "cosmoflow",
        "dataset": "cosmoflow-128",
        "target": "mae<=0.124",
        "epochs_min": 18,
        "critical_batch": 300,
        "converges_to": 400,
    },
]

# Incompatible pairs, uneven PE counts, an optimised group, a parameter axis, every output.
MIXED: dict[str, Any] = {
    "name": "mixed",
    "oracle": "paper",
    "axes": {
        "model": ["alexnet", "cosmoflow"],
        "dataset": ["imagenet-226", "cosmoflow-128"],
        "system": ["abci"],
        "strategy": [
            "serial",
            "data",
            "channel",
            "pipeline:segments=8",
            "data+filter",
            "data+spatial:group=best",
        ],
        "pe": [1, 3, 4, 8, 12],
        "batch": [8, 64],
        "inter_bandwidth": ["1 GB/s", "12.5 GB/s"],
    },
    "convergence": LAWS,
    "outputs": list(OUTPUTS),
}

# Four fast blocks; two pairs are incompatible.
SMALL: dict[str, Any] = {
    "oracle": "paper",
    "axes": {
        "model": ["alexnet", "cosmoflow"],
        "dataset": ["cosmoflow-128", "imagenet"],
        "system": "abci",
        "strategy": ["serial", "data", "data+channel"],
        "pe": [1, 2, 4, 8],
        "batch": [16, 32],
    },
}

# The same with one strategy, and so one program.
DATA: dict[str, Any] = SMALL | {"axes": SMALL["axes"] | {"strategy": "data"}}


MARKS = "progress/done/c.0.0.0.0.0.0"  # the file of all marks of a small cube


def unmark(url: object, *blocks: int) -> None:
    """Mark blocks as not done."""
    open_cube(str(url), "r+").mark(blocks, done=False)


def zarr_array(group: zarr.Group, name: str) -> zarr.Array[Any]:
    """Return an array of a group."""
    array = group[name]
    assert isinstance(array, zarr.Array)
    return array


def stored(group: zarr.Group, name: str) -> np.ndarray[Any, Any]:
    """Read an array of a group."""
    return np.asarray(zarr_array(group, name)[:])


def arrays(url: object) -> dict[str, bytes]:
    """Return the bytes of every array except for the done-marks."""
    group = zarr.open_group(str(url), mode="r")
    return {name: np.asarray(array[:]).tobytes() for name, array in group.arrays()}


@contextmanager
def limit_file_sizes(most: int) -> Iterator[None]:
    """Make the system refuse files of this process above `most` bytes.

    Compile programs before, since they are written, too.
    """
    before, top = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, top))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, top))


def refuse_writes(patch: pytest.MonkeyPatch, code: int, after: str = "") -> None:
    """Make writes fail with an error of the system.

    after: only after a file with this prefix was written; at once if empty.
    """
    refused = not after
    put = zarr.storage.LocalStore.set

    async def write(self: Any, key: str, *arguments: Any, **options: Any) -> None:
        nonlocal refused
        if refused:
            raise OSError(code, os.strerror(code))
        await put(self, key, *arguments, **options)
        refused = refused or key.startswith(after)

    patch.setattr(zarr.storage.LocalStore, "set", write)
