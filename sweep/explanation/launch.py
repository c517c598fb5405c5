"""Describe how to launch a configuration: processes, ranks and their groups.

Ranks are numbered as the oracle lays out PEs (docs/machine.md, Network): node by node, with the PEs
of a replica adjacent, so that groups stay inside a node if they fit.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from paradl.grids.grid import Grid
from paradl.grids.inputs.groups import Groups
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.parallelisms import KINDS

Row = dict[str, Any]

# Most groups, and ranks of a group, that are listed one by one.
MOST_LISTED = 3


@dataclass(frozen=True)
class Processes:
    """Processes of a run on nodes that have room for `most` each: one per PE."""

    pes: int
    most: int

    @property
    def per_node(self) -> int:
        """Processes of each node but the last; torchrun takes one number for all nodes."""
        return min(self.pes, self.most)

    @property
    def nodes(self) -> int:
        """Nodes that the processes fill, the last one perhaps in part."""
        return math.ceil(self.pes / self.per_node)

    @property
    def last(self) -> int:
        """Processes of the last node."""
        return self.pes - (self.nodes - 1) * self.per_node

    @property
    def command(self) -> str:
        """The start of a line that starts them, before the script."""
        return f"torchrun --nnodes={self.nodes} --nproc-per-node={self.per_node}"


@dataclass(frozen=True)
class Ranks:
    """`count` groups of `size` ranks that are `stride` apart.

    near: of groups that have several ranks in each replica, how many of them.
    """

    size: int
    count: int
    stride: int
    near: int | None = None

    def describe(self, of: str, task: str) -> Row:
        """Describe the groups: what their ranks are `of`, and the task of each rank."""
        # All ranks of the first two groups and the last, or their ranks in the first replica.
        size, step = self.near or self.size, self.stride
        numbers = range(self.count) if self.count <= MOST_LISTED else (0, 1, self.count - 1)
        # Groups interleave: `step` of them share a block of size x step ranks.
        starts = [n // step * self.size * step + n % step for n in numbers]
        texts = [_write_ranks(range(start, start + size * step, step)) for start in starts]
        if self.count > MOST_LISTED:
            texts[-1] = f"... {texts[-1]}"
        ranks = "; ".join(texts)
        return {
            **{"of": of, "size": self.size, "count": self.count, "stride": step},
            **{"ranks": ranks, "each": task},
        }


def _write_ranks(ranks: range) -> str:
    """Write consecutive ranks like 4-7, others like 0,4..60."""
    if ranks.step == 1 and len(ranks) > 1:
        return f"{ranks[0]}-{ranks[-1]}"
    if len(ranks) <= MOST_LISTED:
        return ",".join(map(str, ranks))
    return f"{ranks[0]},{ranks[1]}..{ranks[-1]}"


def describe_launch(grid: Grid, case: Case, groups: Groups, predicted: Row) -> Row:
    """Describe the processes of a configuration, its groups of ranks, and their samples.

    groups: those of the case, with choices settled. Keys include world_size [ranks]; local_batch:
    samples per replica and pass; micro_batch: samples per segment of a pass.
    """
    p, p2, degrees = predicted["pe"], predicted["group"], predicted["degrees"]
    processes = Processes(p, grid.systems[0].pes_per_node)
    # A single stage does not cut its passes into segments.
    is_cut = any(KINDS[name].segmented and degrees[name] > 1 for name in groups.strategy.parts)
    segments = predicted["segments"] if is_cut else 1
    accumulate = int(predicted["parameters"]["accumulate"])
    return {
        "command": f"{processes.command} train.py",
        "world_size": p,
        "nnodes": processes.nodes,
        "nproc_per_node": processes.per_node,
        "last_node": processes.last,
        # In a device mesh, ranks increase fastest along the last dimension.
        "mesh": degrees,
        "groups": [*_list_model_groups(groups, predicted), *_list_rings(case, predicted)],
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


def _list_model_groups(groups: Groups, predicted: Row) -> list[Row]:
    """Return rows for the groups of each parallelism that shares a replica."""
    rows, stride = [], 1
    # The innermost first: the stride of a parallelism is the product of those inside it.
    for name in reversed(groups.strategy.parts):
        size = predicted["degrees"][name]
        if size > 1:
            task = KINDS[name].part
            if KINDS[name].splits == "rows":
                factors = np.asarray(groups.place()[0].factors).reshape(3, -1)[:, 0]
                parts = " x ".join(f"{factor:.0f}" for factor in factors)
                task += f", {parts} parts (depth, height, width)"
            ranks = Ranks(size, predicted["pe"] // size, stride)
            rows.append(ranks.describe(name if groups.strategy.several else "model", task))
        stride *= size
    return rows


def _list_rings(case: Case, predicted: Row) -> list[Row]:
    """Return rows for the groups that reduce gradients, in the order of the steps."""
    p, p1, p2 = predicted["pe"], predicted["replicas"], predicted["group"]
    degrees: dict[str, int] = predicted["degrees"]
    # PEs that only divide rows hold the same weights. They reduce gradients together: with the same
    # rank of other replicas, and among themselves.
    alike = [name for name in degrees if name in KINDS and KINDS[name].splits == "rows"]
    near = math.prod(degrees[name] for name in alike)
    rings = [Ranks(p1, p2, p2)]
    if near > 1 and case.options.allreduce == "hierarchical":
        rings = [Ranks(p2, p1, 1), *rings]
    elif near > 1 and near == p2:
        rings = [Ranks(p, 1, 1)]
    elif near > 1:
        names = [*degrees]
        inside = math.prod(degrees[name] for name in names[names.index(alike[0]) + 1 :])
        rings = [Ranks(p1 * near, p2 // near, inside, near)]
    shared = f", shared by ZeRO {case.options.zero}" if case.options.zero else ""
    others = "; the first replica's, and the others' alike"
    return [
        ring.describe("gradient", f"the same weights{shared}{others if ring.near else ''}")
        for ring in rings
        if ring.size > 1
    ]
