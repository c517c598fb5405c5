"""Launch: a configuration in the words of a launcher: processes, ranks, their groups.

Ranks are numbered as the oracle lays PEs out (docs/machine.md, Network): node after node, a
replica's PEs next to each other, so that groups are inside nodes where they fit.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grids.entries.systems import System
from grids.grid import Grid
from grids.inputs.groups import Groups
from kernels.arrays import Cells
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.machine.network import link
from kernels.machine.rings import Ring, find_path
from kernels.namespace import xp
from kernels.oracle.exchanges import ring_replicas

Row = dict[str, Any]

# The share of each PE of a group, by the group's strategy.
SHARES = {
    "spatial": "a part of each sample",
    "pipeline": "a stage: contiguous layers",
    "filter": "its filters of each split layer",
    "channel": "its channels of each split layer",
    "placement": "its operators",
}


# Groups, and ranks of a group, that are listed one by one.
MOST_LISTED = 3


@dataclass(frozen=True)
class Ranks:
    """Groups of ranks: `count` of them, of `size` ranks each, `stride` apart."""

    size: int
    count: int
    stride: int

    def list_ranks(self, number: int) -> range:
        """The ranks of a group."""
        start = number * self.size if self.stride == 1 else number
        return range(start, start + self.size * self.stride, self.stride)


def describe_launch(grid: Grid, case: Case, groups: Groups, predicted: Row) -> Row:
    """The processes of a configuration, its groups of ranks, and the samples of each.

    groups: the case's, with the choices settled. world_size [ranks]; nodes from 0; local_batch:
    samples per replica in one pass; micro_batch: samples of one of its segments.
    """
    system, p, p2 = grid.systems[0], predicted["pe"], predicted["group"]
    per_node = min(p, system.pes_per_node)
    nodes = math.ceil(p / per_node)
    strategy = groups.strategy
    segments = predicted["segments"] if p2 > 1 else 1
    accumulate = int(predicted["parameters"]["accumulate"])
    return {
        "command": f"torchrun --nnodes={nodes} --nproc-per-node={per_node} train.py",
        "world_size": p,
        "nnodes": nodes,
        "nproc_per_node": per_node,
        "last_node": p - (nodes - 1) * per_node,
        "mesh": _list_mesh(strategy.base, predicted),
        "groups": _list_groups(case, groups, system, predicted),
        "sampler": {"num_replicas": predicted["replicas"], "rank": _write_coordinate(p2)},
        "local_batch": predicted["batch"],
        "micro_batch": predicted["batch"] / segments,
        "micro_batches": segments * accumulate,
        "accumulate": accumulate,
        "global_batch": predicted["global_batch"],
    }


def _write_coordinate(p2: int) -> str:
    """The replica of a rank, as Python writes it."""
    return "rank" if p2 == 1 else f"rank // {p2}"


def _list_mesh(base: str, predicted: Row) -> dict[str, int]:
    """The dimensions of a device mesh, whose ranks count up along the last one."""
    inner = base.rpartition("+")[2]
    sizes = {"data": predicted["replicas"]} if base.startswith("data") else {}
    return sizes if inner in ("data", "serial") else {**sizes, inner: predicted["group"]}


def _list_groups(case: Case, groups: Groups, system: System, predicted: Row) -> list[Row]:
    """Rows of groups that share a replica, and of groups that add up gradients."""
    p2, group = predicted["group"], groups.strategy.group_strategy
    inside, across = (int(np.asarray(level).item()) for level in _find_levels(case))
    rows = []
    if p2 > 1:
        row = _describe_ranks("model", Ranks(p2, predicted["replicas"], 1), system, inside)
        rows.append(row | {"each": SHARES[group] + _write_parts(groups)})
    for ranks, level in _list_rings(case, predicted, group == "spatial", inside, across):
        if ranks.size > 1:
            row = _describe_ranks("gradient", ranks, system, level)
            rows.append(row | {"each": "the same weights"})
    return rows


def _list_rings(
    case: Case, predicted: Row, replicated: bool, inside: int, across: int
) -> list[tuple[Ranks, int]]:
    """The ranks that add up gradients, one step after the other, and the level of each.

    replicated: each PE of a group has all weights.
    """
    p, p1, p2 = predicted["pe"], predicted["replicas"], predicted["group"]
    replicas = Ranks(p1, p2, p2)
    if not replicated or p2 == 1:
        return [(replicas, across)]
    if case.options.allreduce == "hierarchical":
        return [(Ranks(p2, p1, 1), inside), (replicas, across)]
    return [(Ranks(p, 1, 1), across)]


def _write_parts(groups: Groups) -> str:
    """The parts of a sample in a spatial group, in words."""
    if groups.strategy.group_strategy != "spatial":
        return ""
    factors = np.asarray(groups.place()[0].factors).reshape(3, -1)[:, 0]
    depth, height, width = map(int, factors)
    return f", {depth} x {height} x {width} of them (depth, height, width)"


def _describe_ranks(of: str, ranks: Ranks, system: System, level: int) -> Row:
    """Groups in numbers and in words; level: the one whose latency the oracle takes."""
    last = ranks.count - 1
    listed = range(ranks.count) if ranks.count <= MOST_LISTED else [0, 1, last]
    members = [ranks.list_ranks(number) for number in listed]
    nodes = [_write_nodes(group, system.pes_per_node) for group in members]
    return {
        "of": of,
        "size": ranks.size,
        "count": ranks.count,
        "stride": ranks.stride,
        "ranks": _join([_write_numbers(group) for group in members], ranks.count),
        "nodes": _join(nodes, ranks.count),
        "level": system.levels[min(level, len(system.levels) - 1)].name,
    }


def _write_nodes(ranks: range, pes: int) -> str:
    """The nodes that ranks are on."""
    if ranks.step <= pes:  # they leave none out
        return _write_numbers(range(ranks[0] // pes, ranks[-1] // pes + 1))
    listed = ranks if len(ranks) <= MOST_LISTED else [ranks[0], ranks[1], ranks[-1]]
    nodes = [str(rank // pes) for rank in listed]
    return ",".join(nodes) if len(ranks) <= MOST_LISTED else f"{nodes[0]},{nodes[1]}..{nodes[2]}"


def _write_numbers(numbers: range) -> str:
    """Consecutive numbers as 4-7, others as 0,4..60."""
    if numbers.step == 1 and len(numbers) > 1:
        return f"{numbers[0]}-{numbers[-1]}"
    if len(numbers) <= MOST_LISTED:
        return ",".join(map(str, numbers))
    return f"{numbers[0]},{numbers[1]}..{numbers[-1]}"


def _join(texts: list[str], count: int) -> str:
    """The first two and the last of many texts, or the one that all of them are."""
    if len(set(texts)) == 1:
        return texts[0] if count == 1 else f"{texts[0]} each"
    if count <= len(texts):
        return "; ".join(texts)
    return "; ".join([*texts[:-1], f"... {texts[-1]}"])


@compiled(numpy=True)
def _find_levels(case: Case) -> tuple[Cells, Cells]:
    """The levels of the network that the oracle takes a group and its replicas to span."""
    network, run = case.network, case.run
    latency = xp.asarray(network.latency)
    # The level's number in the place of its latency, so that the oracle itself says which it takes.
    column = xp.arange(latency.shape[0], dtype=float).reshape(-1, *[1] * (latency.ndim - 1))
    numbered = replace(network, latency=xp.broadcast_to(column, latency.shape))
    if case.options.oracle == "paper":
        return link(numbered, run.p2).alpha, link(numbered, run.p).alpha
    inside = Ring(run.p2, xp.ones(()), run.p)
    across = ring_replicas(case)
    return find_path(numbered, inside).alpha, find_path(numbered, across).alpha
