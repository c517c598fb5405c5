"""Clusters of published runs: systems of the catalogue, and what they have instead."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paradl.grids.entries.systems import System
from paradl.grids.library import find

# [PEs] More than any published run has: clusters outgrow the reference designs of the catalogue.
MOST_PES = 2**20


@dataclass(frozen=True)
class Cluster:
    """A system of the catalogue, and what a cluster has instead; None: the same.

    links: adapters of a node. inside, beyond: bandwidth between the PEs of a node, and of an
    adapter [B/s]. memory: bandwidth of a PE's memory [B/s]. capacity: its memory. fp8: peak
    [FLOP/s].
    """

    system: str
    links: int | None = None
    inside: float | None = None
    beyond: float | None = None
    memory: float | None = None
    capacity: str | None = None
    fp8: float | None = None


# As the sources of the rows say. MLPerf's runs on TPUs multiply matrices in int8, which has the
# bytes of fp8 and a peak of its own (Google Cloud's pages of v5e, v5p and v6e). Logs of torchtitan
# state memory and its share, and so the capacity of H100 with 96 GB.
CLUSTERS: Mapping[str, Cluster] = {
    "v100-oneflow": Cluster("dgx1-v100", links=1),
    "a100-jean-zay": Cluster("dgx-a100-80gb", links=4, beyond=12.5e9),
    "a100-roce": Cluster("dgx-a100-80gb", links=4, beyond=12.5e9),
    "a800": Cluster("dgx-a100-80gb", inside=200e9),
    "h100-a3": Cluster("dgx-h100", links=4, beyond=25e9),
    "h100-96gb": Cluster("grand-teton", memory=2.4e12, capacity="95 GiB"),
    "tpu-v5e-int8": Cluster("tpu-v5e", fp8=394e12),
    "tpu-v5p-int8": Cluster("tpu-v5p", fp8=918e12),
    "tpu-v6e-int8": Cluster("tpu-v6e", fp8=1836e12),
}


@cache
def find_cluster(name: str) -> System:
    """Return the system that has this name here or in the catalogue, with room for any run."""
    cluster = CLUSTERS.get(name, Cluster(name))
    entry: dict[str, Any] = find("system", cluster.system, Path()).definition()
    pe, (node, *others) = entry["pe"], entry["levels"]
    node |= _keep({"bandwidth": cluster.inside})
    others = [level | _keep({"bandwidth": cluster.beyond}) for level in others]
    others[-1] |= {"pes": MOST_PES}
    peaks = pe.get("tensor_peaks", {}) | _keep({"fp8": cluster.fp8})
    of_memory = {"memory_bandwidth": cluster.memory, "memory_capacity": cluster.capacity}
    changes = {
        "name": name,
        "size": MOST_PES,
        "levels": [node, *others],
        "pe": pe | _keep(of_memory) | {"tensor_peaks": peaks},
        **_keep({"links_per_node": cluster.links}),
    }
    return System.from_definition(entry | changes)


def _keep(values: Mapping[str, float | str | None]) -> dict[str, float | str]:
    return {key: value for key, value in values.items() if value is not None}
