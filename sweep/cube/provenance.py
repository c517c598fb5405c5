"""Where a cube comes from: versions, machine, sources, as attributes of its store.

The format of a store and the version of the package move together, so that who reads "use paradl
0.1.0" can. A version tells releases apart; what is computed is told by a digest of the sources.
"""

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from grids.grid import Grid
    from sweep.cube.plan import Plan

# Of the layout of a store, since each version that changed it; a store of another one is not read.
FORMATS = {"0.1.0": 3, "0.2.0": 4}
FORMAT = max(FORMATS.values())

PAPER = (
    "Kahira, Nguyen et al., An Oracle for Guiding Large-Scale Model/Hybrid Parallel Training of "
    "Convolutional Neural Networks, HPDC 2021"
)
RECORDED = ("paradl", "jax", "jaxlib", "numpy", "xarray", "zarr", "dask")
# What decides the bits of an answer: blocks of one cube share it.
CODE = "code"
DECISIVE = ("paradl", CODE, "jax", "jaxlib", "numpy")
# `sweep` is not among them: it moves answers, and computes none.
COMPUTING = ("kernels", "grids")


@cache  # looking one up takes a millisecond
def look_up_version(package: str) -> str:
    """The version of a package that is installed."""
    return metadata.version(package)


def describe_origin(grid: "Grid", plan: "Plan") -> dict[str, Any]:
    """Root attributes of a store: CF ones, the whole spec, versions and sources."""
    entries = (*grid.models, *grid.datasets, *grid.systems)
    columns = [name for rows in grid.rows.values() for name in rows.columns]
    return {
        # By it xarray takes them for coordinates, though they name no dimension.
        **({"coordinates": " ".join(columns)} if columns else {}),
        "Conventions": "CF-1.11",
        "title": grid.spec.name,
        "source": f"paradl {look_up_version('paradl')}",
        "history": format_event("created"),
        "references": PAPER,
        "comment": (
            "epoch time = comp_time + comm_time; speedup = serial_time / epoch time; a cell is "
            "feasible where limit has no bit but its marks"
        ),
        "paradl_format": FORMAT,
        # By it a worker tells an overwritten cube from the one that it has open.
        "paradl_id": uuid4().hex,
        "paradl_spec": json.dumps(grid.definition()),
        "paradl_plan": json.dumps(
            {"shard": plan.shard, "chunk": plan.chunk, "layers": plan.layers}
        ),
        "paradl_versions": json.dumps(list_versions()),
        "paradl_python": platform.python_version(),
        "paradl_platform": platform.platform(),
        "paradl_sources": json.dumps({entry.name: list(entry.source) for entry in entries}),
    }


def list_versions() -> dict[str, str]:
    """The versions of this process' packages, and the digest of its code."""
    return {name: look_up_version(name) for name in RECORDED} | {CODE: digest_code()}


@cache
def digest_code() -> str:
    """A digest of the sources that answers are computed by."""
    digest = sha256()
    for package in COMPUTING:
        root = Path(str(resources.files(package)))
        # Sorted: `rglob` has the file system's order. Zero bytes keep names and texts apart.
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    # 64 bits: they guard against mistakes, not against malice.
    return digest.hexdigest()[:16]


def check_code(began: Mapping[str, object]) -> str:
    """How what began a cube differs from this process, in words; empty where answers are equal."""
    return ", ".join(
        f"{name} {began.get(name)} there, {now} here"
        for name, now in list_versions().items()
        if name in DECISIVE and began.get(name) != now
    )


def format_event(what: str) -> str:
    """A line of a store's history."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return f"{now}: {what} by paradl {look_up_version('paradl')}"
