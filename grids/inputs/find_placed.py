"""Search of placed groups: a network's layers on two or more devices of a node (docs/placement.md).

The search gives the same answer each time. The exact program would take a minute per network, and
gain little: for Inception-v3 on two PEs of a DGX-1 a speedup of 1.386 instead of 1.383.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.graphs.graph import Graph, make_graph
from paradl.grids.graphs.links import Links, link_devices
from paradl.grids.inputs.case import divide_rows
from paradl.grids.inputs.groups import Groups
from paradl.grids.inputs.partition import place_stages
from paradl.grids.inputs.values import Settings
from paradl.grids.inputs.workload import Workload
from paradl.grids.placing.group import MOST_DEVICES, PlacedGroup, PlacedGroups
from paradl.grids.placing.pipelined_steps import Piped, unroll_graph
from paradl.grids.placing.problem import Problem, pose_problem
from paradl.grids.placing.schedule import CriticalPath, PlacementPlan, trace_path
from paradl.grids.placing.solve import search_piped, search_plan
from paradl.kernels.divisors import list_divisors
from paradl.kernels.oracle.formulas import time_layers

# Plans kept by a process.
KEPT = 64
# Samples per segment for which layers are placed: seconds and bytes per sample are the same for
# all, but launches and start-ups weigh less the more samples there are.
BATCH = 32


def graph_layers(name: str, groups: Groups, batch: int, item_bytes: float) -> Graph:
    """Make the graph of a network's layers, with their times for a batch on one device."""
    times = time_layers(groups.layers, groups.pe, groups.delta, groups.options)
    forward, backward, fixed = (
        np.broadcast_to(np.asarray(part), np.shape(times.forward)).reshape(len(groups.table))
        for part in (times.forward, times.backward, times.fixed)
    )
    # A third of a layer's work is forward, so count a third of the fixed time there.
    passes = batch * forward + fixed / 3, batch * backward + 2 * fixed / 3
    return make_graph(name, groups.table, *passes, batch=batch, item_bytes=item_bytes)


@dataclass(frozen=True, eq=False, kw_only=True)
class FoundGroups(PlacedGroups):
    """The groups of a model's layers on a system, each searched on first use."""

    groups: dict[tuple[int, int], PlacedGroup]
    workload: Workload
    settings: Settings

    @property
    def sizes(self) -> tuple[int, ...]:
        """Group sizes that divide a node."""
        most = min(len(self.workload.table), MOST_DEVICES)
        count = self.workload.system.pes_per_node
        return tuple(devices for devices in list_divisors(count) if 1 < devices <= most)

    def find(self, devices: int, segments: int = 1) -> PlacedGroup:
        """Return the group of this many devices for a step in this many segments."""
        if (devices, segments) not in self.groups:
            plan = search_devices(self.graph, self.workload.system, devices, segments)
            self.groups[devices, segments] = self._describe(plan, devices, segments)
        return self.groups[devices, segments]

    @cached_property
    def graph(self) -> Graph:
        """Graph of one segment's layers, with their times on the system."""
        workload = self.workload
        axes = {"pe": np.ones(1), "batch": np.full(1, float(BATCH))}
        groups = divide_rows(workload, Strategy("serial"), axes, self.settings).groups
        return graph_layers("", groups, BATCH, self._item_bytes)

    @property
    def _item_bytes(self) -> float:
        return float(PRECISIONS[self.workload.system.precision].item)

    def _describe(self, plan: PlacementPlan, devices: int, segments: int) -> PlacedGroup:
        """Summarise a plan by how often layers and messages are on its critical path."""
        links = link_devices(self.workload.system, devices)
        problem, layers = _unroll(self.graph, links, segments), len(self.graph)
        device = plan.placement * segments
        forward, backward = (
            trace_path(problem, durations, device, starts)
            for durations, starts in zip(problem.durations.tolist(), plan.starts, strict=True)
        )
        messages = [
            (problem.tensors[edge.tensor].bytes, (device[edge.maker], device[edge.taker]))
            for edge in (*forward.messages, *backward.messages)
        ]
        node = self.workload.system.levels[0]
        # In links of a node, so that axes of latency and bandwidth change them.
        startups = sum(links.latency[way] for _, way in messages)
        seconds = sum(size * links.seconds_per_byte[way] for size, way in messages)
        return PlacedGroup(
            device=plan.placement,
            forward=_count_runs(forward, layers),
            backward=_count_runs(backward, layers),
            messages=float(startups / node.latency if node.latency else 0.0),
            items=float(seconds * node.bandwidth) / (BATCH * self._item_bytes),
        )


# A question makes several grids of one configuration, which share their search.
@lru_cache(maxsize=KEPT)
def search_devices(graph: Graph, system: System, devices: int, segments: int) -> PlacementPlan:
    """Search a plan; with several segments, start from the plans of fewer segments."""
    links = link_devices(system, devices)
    whole = pose_problem(graph, links)
    if segments == 1:
        return search_plan(whole)
    counts = (1, segments // 2)
    fewer = {search_devices(graph, system, devices, count).placement for count in counts}
    piped = Piped(whole, _unroll(graph, links, segments))
    return search_piped(piped, [*sorted(fewer), *place_stages(whole)])


def _unroll(graph: Graph, links: Links, segments: int) -> Problem:
    """Build the problem of all segments in sequence, without a memory limit."""
    return pose_problem(unroll_graph([graph] * segments), links)


def _count_runs(path: CriticalPath, layers: int) -> tuple[int, ...]:
    """Count the segments of each layer on the path."""
    runs = Counter(operator % layers for operator in path.operators)
    return tuple(runs[layer] for layer in range(layers))
