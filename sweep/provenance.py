"""Where a cube comes from: versions, machine, sources, as attributes of its store."""

import json
import platform
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any
from uuid import uuid4

from grids.grid import Grid
from sweep.plan import Plan

# Of the layout of a store; a store of another one is not read.
FORMAT = 3

PAPER = (
    "Kahira, Nguyen et al., An Oracle for Guiding Large-Scale Model/Hybrid Parallel Training of "
    "Convolutional Neural Networks, HPDC 2021"
)
RECORDED = ("paradl", "jax", "jaxlib", "numpy", "xarray", "zarr", "dask")


@cache  # looking one up takes a millisecond
def version(package: str) -> str:
    """The version of a package that is installed."""
    return metadata.version(package)


def attributes(grid: Grid, plan: Plan) -> dict[str, Any]:
    """Root attributes of a store: CF ones, the whole spec, versions and sources."""
    entries = (*grid.models, *grid.datasets, *grid.systems)
    return {
        "Conventions": "CF-1.11",
        "title": grid.spec.name,
        "source": f"paradl {version('paradl')}",
        "history": event("created"),
        "references": PAPER,
        "comment": (
            "epoch time = comp_time + comm_time; speedup = serial_time / epoch time; a cell is "
            "feasible where limit has no bit but its marks"
        ),
        "paradl_format": FORMAT,
        "paradl_id": uuid4().hex,
        "paradl_spec": json.dumps(grid.definition()),
        "paradl_plan": json.dumps(
            {"shard": plan.shard, "chunk": plan.chunk, "layers": plan.layers}
        ),
        "paradl_versions": json.dumps({name: version(name) for name in RECORDED}),
        "paradl_python": platform.python_version(),
        "paradl_platform": platform.platform(),
        "paradl_sources": json.dumps({each.name: list(each.source) for each in entries}),
    }


def event(what: str) -> str:
    """A line of a store's history."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return f"{now}: {what} by paradl {version('paradl')}"
