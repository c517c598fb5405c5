"""Provenance of a cube: versions, machine and sources, as attributes of its store.

Every change of the store's format comes with a new version of the package, so that "use paradl
0.1.0" is advice one can follow. A digest of the sources tells apart what versions do not.
"""

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from paradl.kernels.cache_files import digest_sources
from paradl.kernels.names.layout_terms import LAYOUT_FORMULAS

if TYPE_CHECKING:
    from zarr.core.common import JSON

    from paradl.grids.grid import Grid
    from paradl.sweep.cube.plan import Plan

# Format of the store, by the first version that wrote it. Other formats are not read.
FORMATS = {"0.1.0": 3, "0.2.0": 4}
FORMAT = max(FORMATS.values())

PAPER = (
    "Kahira, Nguyen et al., An Oracle for Guiding Large-Scale Model/Hybrid Parallel Training of "
    "Convolutional Neural Networks, HPDC 2021"
)
RECORDED = ("paradl", "jax", "jaxlib", "numpy", "xarray", "zarr", "dask")
# These decide the bits of an answer, so all blocks of a cube must agree in them.
CODE = "code"
DECISIVE = ("paradl", CODE, "jax", "jaxlib", "numpy")
COMPUTING = ("paradl.kernels", "paradl.grids")  # `sweep` stores answers, but computes none


@cache  # looking one up takes a millisecond
def look_up_version(package: str) -> str:
    """Return the version of an installed package."""
    return metadata.version(package)


def describe_origin(grid: "Grid", plan: "Plan") -> "dict[str, JSON]":
    """Return root attributes for a store: those of CF, the whole spec, versions and sources."""
    entries = (*grid.models, *grid.datasets, *grid.systems)
    columns = [name for rows in grid.rows.values() for name in rows.columns]
    return {
        # Makes xarray read them as coordinates, although they are no dimensions.
        **({"coordinates": " ".join(columns)} if columns else {}),
        "Conventions": "CF-1.11",
        "title": grid.spec.name,
        "source": f"paradl {look_up_version('paradl')}",
        "history": format_event("created"),
        "references": PAPER,
        "comment": (
            "epoch time = comp_time + comm_time; speedup = serial_time / epoch time; a cell is "
            "feasible if limit has no bits other than marks"
        ),
        "paradl_format": FORMAT,
        # Tells a worker that the cube it has open was overwritten.
        "paradl_id": uuid4().hex,
        "paradl_spec": json.dumps(grid.definition()),
        # Earlier cubes had several chunks in a shard, and earlier versions expect their size.
        "paradl_plan": json.dumps(
            {"shard": plan.shard, "chunk": plan.shard, "layers": plan.layers}
        ),
        "paradl_versions": json.dumps(list_versions()),
        "paradl_python": platform.python_version(),
        "paradl_platform": platform.platform(),
        "paradl_sources": json.dumps({entry.name: list(entry.source) for entry in entries}),
    }


def list_versions() -> dict[str, str]:
    """Return the versions of this process' packages and formulas, and the digest of its code."""
    named = {name: look_up_version(name) for name in RECORDED}
    return named | {CODE: digest_code(), "layouts": str(LAYOUT_FORMULAS)}


@cache
def digest_code() -> str:
    """Return a digest of the sources that compute answers."""
    return digest_sources(Path(str(resources.files(package))) for package in COMPUTING)


def check_code(began: Mapping[str, object]) -> str:
    """Describe how the code that began a cube differs from this process; empty: not at all."""
    return ", ".join(
        f"{name} {began.get(name)} there, {now} here"
        for name, now in list_versions().items()
        if name in DECISIVE and began.get(name) != now
    )


def format_event(what: str) -> str:
    """Write a line for a store's history."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return f"{now}: {what} by paradl {look_up_version('paradl')}"
