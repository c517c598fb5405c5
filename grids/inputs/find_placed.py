"""Finding placed groups: a network's layers on two and more devices of a node (docs/placement.md).

A search that gives the same answer each time, and not the exact program, which takes a minute a
network: of Inception-v3 on two PEs of a DGX-1 it finds 1.383, and the program 1.386.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from grids.entries.precision import PRECISIONS
from grids.entries.strategies import Strategy
from grids.entries.systems import Level, System
from grids.graphs.from_models import make_graph
from grids.graphs.graph import Graph
from grids.graphs.links import Links, link_devices
from grids.inputs.case import Workload, build_groups
from grids.inputs.divisors import divisors
from grids.inputs.values import Settings
from grids.placing.critical_path import CriticalPath, trace_path
from grids.placing.group import MOST_DEVICES, PlacedGroup
from grids.placing.problem import Edge, Placement, pose_problem
from grids.placing.solve import search_plan
from kernels.formulas import time_layers

# Samples for which layers are placed: seconds and bytes a sample are the same for all, but launches
# and start-ups weigh less the more there are.
BATCH = 32


@dataclass(eq=False)
class FoundGroups:
    """The groups of a model's layers on a system, each found when it is asked for, once."""

    graph: Graph
    system: System
    item_bytes: float
    _found: dict[int, PlacedGroup] = field(default_factory=dict)

    @classmethod
    def from_workload(cls, workload: Workload, settings: Settings) -> "FoundGroups":
        """Those of a model's layers, which take as long as they do on the system."""
        item_bytes = float(PRECISIONS[workload.system.precision].item)
        return cls(_make_graph(workload, settings, item_bytes), workload.system, item_bytes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of devices that divide a node."""
        most = min(len(self.graph), MOST_DEVICES)
        return tuple(each for each in divisors(self.system.pes_per_node) if 1 < each <= most)

    def find(self, devices: int) -> PlacedGroup:
        """The group of so many devices."""
        if devices not in self._found:
            links = link_devices(self.system, devices)
            node = self.system.levels[0]
            self._found[devices] = _place(self.graph, links, node, self.item_bytes)
        return self._found[devices]


def _make_graph(workload: Workload, settings: Settings, item_bytes: float) -> Graph:
    """The graph of the layers, as long as they take on the system."""
    axes = {"pe": np.ones(1), "batch": np.full(1, float(BATCH))}
    groups = build_groups(workload, Strategy("serial"), axes, settings)
    times = time_layers(groups.layers, groups.pe, groups.delta, groups.options)
    forward, backward, fixed = (
        np.asarray(each).reshape(len(workload.table))
        for each in (times.forward, times.backward, times.fixed)
    )
    return make_graph(
        "",
        workload.table,
        BATCH * forward + fixed / 3,
        BATCH * backward + 2 * fixed / 3,
        batch=BATCH,
        item_bytes=item_bytes,
    )


def _place(graph: Graph, links: Links, node: Level, item_bytes: float) -> PlacedGroup:
    """The best placement that is met, and its critical path."""
    problem = pose_problem(graph, links)
    plan = search_plan(problem)
    device = plan.placement
    forward, backward = (
        trace_path(problem, durations, device, starts)
        for durations, starts in zip(problem.durations.tolist(), plan.starts, strict=True)
    )
    messages, items = _weigh(graph, device, (*forward.messages, *backward.messages), links, node)
    return PlacedGroup(
        device=device,
        forward=_mark(forward, len(graph)),
        backward=_mark(backward, len(graph)),
        messages=messages,
        items=items / (BATCH * item_bytes),
    )


def _weigh(
    graph: Graph, device: Placement, messages: Sequence[Edge], links: Links, node: Level
) -> tuple[float, float]:
    """Start-ups, and bytes, each as often as its link is slower than the node's."""
    ways = [(device[each.maker], device[each.taker]) for each in messages]
    sizes = [graph.tensors[each.tensor].bytes for each in messages]
    startups = sum(links.latency[way] for way in ways) / node.latency if node.latency else 0.0
    seconds = sum(size * links.seconds_per_byte[way] for size, way in zip(sizes, ways, strict=True))
    return float(startups), float(seconds * node.bandwidth)


def _mark(path: CriticalPath, operators: int) -> tuple[bool, ...]:
    """Which operators are on it."""
    on_path = set(path.operators)
    return tuple(each in on_path for each in range(operators))
