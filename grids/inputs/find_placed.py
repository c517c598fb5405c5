"""Finding placed groups: a network's layers on two and more devices of a node (docs/placement.md).

A search that gives the same answer each time, and not the exact program, which takes a minute a
network: of Inception-v3 on two PEs of a DGX-1 it finds 1.383, and the program 1.386.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from grids.entries.precision import PRECISIONS
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.graphs.graph import Graph
from grids.graphs.layer_graphs import make_graph
from grids.graphs.links import Links, link_devices
from grids.inputs.case import Workload, build_groups
from grids.inputs.divisors import divisors
from grids.inputs.stage_placements import place_stages
from grids.inputs.values import Settings
from grids.placing.critical_path import CriticalPath, trace_path
from grids.placing.group import MOST_DEVICES, PlacedGroup
from grids.placing.pipelined_steps import Piped, unroll_graph
from grids.placing.problem import Problem, pose_problem
from grids.placing.schedule import PlacementPlan
from grids.placing.solve import search_piped, search_plan
from kernels.oracle.formulas import time_layers

# Plans that a process keeps.
KEPT = 64
# Samples of a segment for which layers are placed: seconds and bytes a sample are the same for all,
# but launches and start-ups weigh less the more there are.
BATCH = 32


@dataclass(eq=False)
class FoundGroups:
    """The groups of a model's layers on a system, each searched when it is asked for, once.

    known: those that were searched before, by their devices and segments.
    """

    workload: Workload
    settings: Settings
    known: dict[tuple[int, int], PlacedGroup] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of devices that divide a node."""
        most = min(len(self.workload.table), MOST_DEVICES)
        count = self.workload.system.pes_per_node
        return tuple(devices for devices in divisors(count) if 1 < devices <= most)

    def find(self, devices: int, segments: int = 1) -> PlacedGroup:
        """The group of so many devices, of a step in so many segments."""
        if (devices, segments) not in self.known:
            plan = search_devices(self.graph, self.workload.system, devices, segments)
            self.known[devices, segments] = self._describe(plan, devices, segments)
        return self.known[devices, segments]

    @cached_property
    def graph(self) -> Graph:
        """The graph of the layers of one segment, as long as they take on the system."""
        workload = self.workload
        axes = {"pe": np.ones(1), "batch": np.full(1, float(BATCH))}
        groups = build_groups(workload, Strategy("serial"), axes, self.settings)
        times = time_layers(groups.layers, groups.pe, groups.delta, groups.options)
        forward, backward, fixed = (
            np.asarray(seconds).reshape(len(workload.table))
            for seconds in (times.forward, times.backward, times.fixed)
        )
        return make_graph(
            "",
            workload.table,
            BATCH * forward + fixed / 3,
            BATCH * backward + 2 * fixed / 3,
            batch=BATCH,
            item_bytes=self._item_bytes,
        )

    @property
    def _item_bytes(self) -> float:
        return float(PRECISIONS[self.workload.system.precision].item)

    def _describe(self, plan: PlacementPlan, devices: int, segments: int) -> PlacedGroup:
        """The group of a plan: how often layers and messages are on its critical path."""
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
        startups = sum(links.latency[way] for _, way in messages)
        seconds = sum(size * links.seconds_per_byte[way] for size, way in messages)
        return PlacedGroup(
            device=plan.placement,
            forward=_count_runs(forward, layers),
            backward=_count_runs(backward, layers),
            messages=float(startups / node.latency if node.latency else 0.0),
            items=float(seconds * node.bandwidth) / (BATCH * self._item_bytes),
        )


# A question makes several grids of one configuration: what is the same for them is searched once.
@lru_cache(maxsize=KEPT)
def search_devices(graph: Graph, system: System, devices: int, segments: int) -> PlacementPlan:
    """The best plan that is met; of several segments, from placements of fewer of them."""
    links = link_devices(system, devices)
    whole = pose_problem(graph, links)
    if segments == 1:
        return search_plan(whole)
    counts = (1, segments // 2)
    fewer = {search_devices(graph, system, devices, count).placement for count in counts}
    piped = Piped(whole, _unroll(graph, links, segments))
    return search_piped(piped, [*sorted(fewer), *place_stages(whole)])


def _unroll(graph: Graph, links: Links, segments: int) -> Problem:
    """The problem of all segments, one after another, without memory."""
    return pose_problem(unroll_graph([graph] * segments), links)


def _count_runs(path: CriticalPath, layers: int) -> tuple[int, ...]:
    """How many segments of each layer are on the path."""
    runs = Counter(operator % layers for operator in path.operators)
    return tuple(runs[layer] for layer in range(layers))
