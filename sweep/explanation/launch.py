"""Describe how to launch a configuration: processes, ranks and their groups.

Ranks are numbered as the oracle lays out PEs (docs/machine.md, Network): node by node, with the PEs
of the innermost parallelism adjacent, so that groups stay inside a node if they fit.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from paradl.grids.grid import Grid
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.parallelisms import DATA, KINDS
from paradl.kernels.oracle.formulas import count_segments
from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.numbers import number
from paradl.sweep.explanation.facts import WorkFacts

# Most groups, and ranks of a group, that are listed one by one.
MOST_LISTED = 3
# Parallelisms whose PEs hold the same weights, and so reduce gradients together, as replicas do.
ALIKE = ("context", *(name for name, kind in KINDS.items() if kind.splits == "rows"))
# Divides the PEs of other parallelisms once more.
FOLDED = "expert"


def describe_processes(pes: int, most: int) -> Row:
    """Describe the processes of a run, one per PE, on nodes that have room for `most` each."""
    # torchrun takes one number for all nodes; the last node may run fewer.
    per_node = min(pes, most)
    nodes = math.ceil(pes / per_node)
    return {
        "command": f"torchrun --nnodes={nodes} --nproc-per-node={per_node}",
        "world_size": pes,
        "nnodes": nodes,
        "nproc_per_node": per_node,
        "last_node": pes - (nodes - 1) * per_node,
    }


def note_last_node(processes: Mapping[str, Any]) -> list[str]:
    """Note how to start the last node if it runs fewer processes than the others."""
    last = processes["last_node"]
    is_short = last < processes["nproc_per_node"]
    return [f"on the last node --nproc-per-node={last}"] if is_short else []


@dataclass(frozen=True)
class RankMesh:
    """Ranks in a grid. sizes: degrees of parallelisms, the outermost first."""

    sizes: Mapping[str, int]

    @cached_property
    def strides(self) -> dict[str, int]:
        """Ranks from one PE of a parallelism to the next: the product of the degrees inside it."""
        sizes = [*self.sizes.values()]
        return {name: math.prod(sizes[at + 1 :]) for at, name in enumerate(self.sizes)}

    def describe(self, of: str, task: str, *names: str) -> Iterator[Row]:
        """Yield a row for the groups of ranks that differ in some parallelisms; none of one rank.

        of: name of the groups; task: what each rank has.
        """
        inside = [name for name in self.sizes if name in names and self.sizes[name] > 1]
        if not inside:
            return
        size = math.prod(self.sizes[name] for name in inside)
        count, step = math.prod(self.sizes.values()) // size, self.strides[inside[-1]]
        # Ranks that are evenly apart, from the innermost parallelism outwards.
        near = 1
        for name in reversed(inside):
            near *= self.sizes[name] if self.strides[name] == near * step else 1
        # All ranks of the first two groups and the last, or the evenly spaced ones in each.
        numbers = range(count) if count <= MOST_LISTED else (0, 1, count - 1)
        firsts = [self._find_first(group, inside) for group in numbers]
        texts = [_write_ranks(range(first, first + near * step, step)) for first in firsts]
        if count > MOST_LISTED:
            texts[-1] = f"... {texts[-1]}"
        others = "; the first replica's, and the others' alike" if near < size else ""
        yield {
            "of": of,
            "size": size,
            "count": count,
            "stride": step,
            "ranks": "; ".join(texts),
            "each": f"{task}{others}",
        }

    def _find_first(self, group: int, inside: list[str]) -> int:
        """Find the first rank of a group of ranks that differ in the parallelisms `inside`."""
        apart = [name for name in self.sizes if name not in inside]
        at = np.unravel_index(group, [self.sizes[name] for name in apart])
        return sum(int(n) * self.strides[name] for n, name in zip(at, apart, strict=True))

    def write_replica(self) -> str:
        """Write the replica of a rank as a Python expression."""
        replicas, count = self.sizes.get(DATA, 1), math.prod(self.sizes.values())
        inside = self.strides[DATA] if replicas > 1 else count
        replica = "rank" if inside == 1 else f"rank // {inside}"
        return replica if inside * replicas == count else f"{replica} % {replicas}"


def _write_ranks(ranks: range) -> str:
    """Write consecutive ranks like 4-7, others like 0,4..60."""
    if ranks.step == 1 and len(ranks) > 1:
        return f"{ranks[0]}-{ranks[-1]}"
    if len(ranks) <= MOST_LISTED:
        return ",".join(map(str, ranks))
    return f"{ranks[0]},{ranks[1]}..{ranks[-1]}"


def describe_launch(grid: Grid, case: Case, facts: WorkFacts, predicted: Row) -> Row:
    """Describe the processes of a configuration, its groups of ranks, and their samples.

    Keys include world_size [ranks]; local_batch: samples per replica and pass; micro_batch: samples
    per segment of a pass.
    """
    processes = describe_processes(predicted["pe"], grid.systems[0].pes_per_node)
    sizes = {name: n for name, n in predicted["degrees"].items() if name != FOLDED}
    mesh = RankMesh(sizes)
    # A single stage does not cut its passes into segments.
    segments = predicted["segments"] if number(count_segments(case)) > 1 else 1
    accumulate = int(number(case.run.accumulate))
    return {
        **processes,
        "command": f"{processes['command']} train.py",
        # In a device mesh, ranks increase fastest along the last dimension.
        "mesh": sizes,
        "groups": [
            *_list_model_groups(mesh, facts),
            *_list_gradient_groups(mesh, facts, case.options.allreduce == "hierarchical"),
        ],
        "sampler": {"num_replicas": predicted["replicas"], "rank": mesh.write_replica()},
        "local_batch": predicted["batch"],
        "micro_batch": predicted["batch"] / segments,
        "micro_batches": segments * accumulate,
        "accumulate": accumulate,
        "global_batch": predicted["global_batch"],
    }


def _list_model_groups(mesh: RankMesh, facts: WorkFacts) -> Iterator[Row]:
    """Yield rows for the groups of each parallelism that shares a replica, the innermost first."""
    names = [name for name in mesh.sizes if name != DATA]
    for name in reversed(names):
        of = name if len(names) > 1 else "model"
        yield from mesh.describe(of, facts.tasks[name], name)
    for name in facts.experts:
        if name in facts.tasks and name not in mesh.sizes:
            yield from RankMesh(facts.experts).describe(name, facts.tasks[name], name)


def _list_gradient_groups(mesh: RankMesh, facts: WorkFacts, in_two: bool) -> Iterator[Row]:
    """Yield rows for the groups that reduce gradients, in the order of the steps.

    in_two: inside replicas first, then across them.
    """
    among = f" over at most {facts.shard} ranks" if facts.shard else ""
    sharing = f", shared by ZeRO {facts.zero}{among}" if facts.zero else ""
    for names in [ALIKE, (DATA,)] if in_two else [(DATA, *ALIKE)]:
        yield from mesh.describe("gradient", f"the same weights{sharing}", *names)
    if facts.experts:
        yield from RankMesh(facts.experts).describe("gradient", f"the same experts{sharing}", DATA)
