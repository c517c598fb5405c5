"""Describe how to launch a configuration: processes, ranks and their groups.

Ranks are numbered as the oracle lays out PEs (docs/machine.md, Network): node by node, with the PEs
of a replica adjacent, so that groups stay inside a node if they fit.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.grid import Grid
from grids.inputs.groups import Groups
from kernels.arrays import Cells
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.machine.network import link
from kernels.machine.rings import find_path
from kernels.names.parallelisms import KINDS
from kernels.namespace import xp
from kernels.oracle.exchanges import ring_replicas
from kernels.parallelism.layout import find_part, list_degrees

Row = dict[str, Any]

# Most groups, and ranks of a group, that are listed one by one.
MOST_LISTED = 3


@dataclass(frozen=True)
class Ranks:
    """`count` groups of `size` ranks that are `stride` apart.

    near: of groups that have several ranks in each replica, how many of them.
    """

    size: int
    count: int
    stride: int
    near: int | None = None

    @property
    def listed(self) -> "Ranks":
        """The ranks to print: all, or those of the first replica."""
        return self if self.near is None else Ranks(self.near, self.count, self.stride)

    def list_ranks(self, number: int) -> range:
        """Return ranks of a group, by its number."""
        block, place = divmod(number, self.stride)
        start = block * self.size * self.stride + place
        return range(start, start + self.size * self.stride, self.stride)


def describe_launch(grid: Grid, case: Case, groups: Groups, predicted: Row) -> Row:
    """Describe the processes of a configuration, its groups of ranks, and their samples.

    groups: those of the case, with choices settled. Keys include world_size [ranks]; local_batch:
    samples per replica and pass; micro_batch: samples per segment of a pass. Nodes count from 0.
    """
    system, p, p2 = grid.systems[0], predicted["pe"], predicted["group"]
    # torchrun takes one number for all nodes; the last node may need a smaller one.
    per_node = min(p, system.pes_per_node)
    nodes = math.ceil(p / per_node)
    strategy = groups.strategy
    segments = predicted["segments"] if _is_cut(strategy, predicted) else 1
    accumulate = int(predicted["parameters"]["accumulate"])
    return {
        "command": f"torchrun --nnodes={nodes} --nproc-per-node={per_node} train.py",
        "world_size": p,
        "nnodes": nodes,
        "nproc_per_node": per_node,
        "last_node": p - (nodes - 1) * per_node,
        # In a device mesh, ranks increase fastest along the last dimension.
        "mesh": predicted["degrees"],
        "groups": _list_groups(case, groups, system, predicted),
        # The replica of a rank, as a Python expression.
        "sampler": {
            "num_replicas": predicted["replicas"],
            "rank": "rank" if p2 == 1 else f"rank // {p2}",
        },
        "local_batch": predicted["batch"],
        "micro_batch": predicted["batch"] / segments,
        "micro_batches": segments * accumulate,
        "accumulate": accumulate,
        "global_batch": predicted["global_batch"],
    }


def _is_cut(strategy: Strategy, predicted: Row) -> bool:
    """Return whether passes are cut into segments, which a single stage is not."""
    degrees = predicted["degrees"]
    return any(KINDS[name].segmented and degrees[name] > 1 for name in strategy.parts)


def _list_groups(case: Case, groups: Groups, system: System, predicted: Row) -> list[Row]:
    """Return rows for the groups that share a replica, and for those that reduce gradients."""
    strategy, p = groups.strategy, predicted["pe"]
    levels, across = _find_levels(case, strategy.parts)
    rows, stride = [], 1
    # The innermost first: the stride of a parallelism is the product of those inside it.
    for name in reversed(levels):
        size = predicted["degrees"][name]
        if size > 1:
            ranks = Ranks(size, p // size, stride)
            of = name if strategy.several else "model"
            row = _describe_ranks(of, ranks, system, int(np.asarray(levels[name]).item()))
            rows.append(row | {"each": KINDS[name].part + _write_parts(groups, name)})
        stride *= size
    inside = levels[strategy.parts[-1]] if strategy.parts else across
    for ranks, level in _list_rings(case, groups.strategy, predicted, inside, across):
        if ranks.size > 1:
            row = _describe_ranks("gradient", ranks, system, level)
            alike = "" if ranks.listed == ranks else "; the first replica's, and the others' alike"
            shared = f", shared by ZeRO {case.options.zero}" if case.options.zero else ""
            rows.append(row | {"each": f"the same weights{shared}{alike}"})
    return rows


def _list_rings(
    case: Case, strategy: Strategy, predicted: Row, inside: Cells, across: Cells
) -> list[tuple[Ranks, int]]:
    """Return groups of ranks that reduce gradients, in the order of the steps, with their level."""
    p, p1, p2 = predicted["pe"], predicted["replicas"], predicted["group"]
    replicas, level = Ranks(p1, p2, p2), int(np.asarray(across).item())
    # PEs that only divide rows hold the same weights.
    alike = [size for name, size in predicted["degrees"].items() if _is_replicated(name)]
    # These reduce gradients together: with the same rank of other replicas, and among themselves.
    near = math.prod(alike)
    if near == 1:
        return [(replicas, level)]
    if case.options.allreduce == "hierarchical":
        return [(Ranks(p2, p1, 1), int(np.asarray(inside).item())), (replicas, level)]
    if near == p2:
        return [(Ranks(p, 1, 1), level)]
    return [(Ranks(p1 * near, p2 // near, _find_step(predicted["degrees"]), near), level)]


def _find_step(degrees: Mapping[str, int]) -> int:
    """Return the stride of PEs with the same weights: the product of the degrees inside."""
    names = [*degrees]
    rows = next(name for name in names if _is_replicated(name))
    return math.prod(degrees[name] for name in names[names.index(rows) + 1 :])


def _is_replicated(name: str) -> bool:
    """Return whether a parallelism inside a replica gives every PE all weights."""
    return name in KINDS and KINDS[name].splits == "rows"


def _write_parts(groups: Groups, name: str) -> str:
    """Return the text for the division of samples, if a parallelism divides rows; else empty."""
    if KINDS[name].splits != "rows":
        return ""
    factors = np.asarray(groups.place()[0].factors).reshape(3, -1)[:, 0]
    depth, height, width = map(int, factors)
    return f", {depth} x {height} x {width} parts (depth, height, width)"


def _describe_ranks(of: str, ranks: Ranks, system: System, level: int) -> Row:
    """Return the row for groups of ranks. level: whose latency the oracle takes."""
    # The first two show the stride, the last one the end.
    last = ranks.count - 1
    listed = range(ranks.count) if ranks.count <= MOST_LISTED else [0, 1, last]
    members = [ranks.listed.list_ranks(number) for number in listed]
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
    """Write the nodes of some ranks."""
    if ranks.step <= pes:  # every node in between has a rank
        return _write_numbers(range(ranks[0] // pes, ranks[-1] // pes + 1))
    listed = ranks if len(ranks) <= MOST_LISTED else [ranks[0], ranks[1], ranks[-1]]
    nodes = [str(rank // pes) for rank in listed]
    return ",".join(nodes) if len(ranks) <= MOST_LISTED else f"{nodes[0]},{nodes[1]}..{nodes[2]}"


def _write_numbers(numbers: range) -> str:
    """Write consecutive numbers like 4-7, others like 0,4..60."""
    if numbers.step == 1 and len(numbers) > 1:
        return f"{numbers[0]}-{numbers[-1]}"
    if len(numbers) <= MOST_LISTED:
        return ",".join(map(str, numbers))
    return f"{numbers[0]},{numbers[1]}..{numbers[-1]}"


def _join(texts: list[str], count: int) -> str:
    """Join texts, the first two and the last of many; write equal ones once."""
    if len(set(texts)) == 1:
        return texts[0] if count == 1 else f"{texts[0]} each"
    if count <= len(texts):
        return "; ".join(texts)
    return "; ".join([*texts[:-1], f"... {texts[-1]}"])


@compiled("names", numpy=True)
def _find_levels(case: Case, names: tuple[str, ...]) -> tuple[dict[str, Cells], Cells]:
    """Return network levels that parallelisms span, and that replicas span, by the oracle."""
    network, run = case.network, case.run
    latency = xp.asarray(network.latency)
    # Replace each level's latency by its number: the latency that the oracle takes is the level.
    column = xp.arange(latency.shape[0], dtype=float).reshape(-1, *[1] * (latency.ndim - 1))
    numbered = replace(network, latency=xp.broadcast_to(column, latency.shape))
    if case.options.oracle == "paper":
        inside = dict.fromkeys(list_degrees(names, run), link(numbered, run.group).alpha)
        return inside, link(numbered, run.p).alpha
    inside = {
        name: find_path(numbered, case.find_ring(find_part(name).sends_as)).alpha
        for name in list_degrees(names, run)
    }
    return inside, find_path(numbered, ring_replicas(case)).alpha
