"""Graphs small enough to place by hand or by exhaustive search."""

import random
from collections.abc import Callable

import numpy as np

from paradl.grids.graphs.graph import Graph, NamedTensor, Operator, link_operators
from paradl.grids.graphs.links import Links


def diamond(branch: float = 3.0, size: float = 1.0) -> Graph:
    """Make a stem, two equal branches and a join: 1 s, `branch`, `branch`, 1 s per pass."""
    times = {"stem": 1.0, "left": branch, "right": branch, "join": 1.0}
    operators = [Operator(name, time, time, kept=4.0) for name, time in times.items()]
    tensors = [
        NamedTensor("stem", ("left", "right"), size),
        NamedTensor("left", ("join",), size),
        NamedTensor("right", ("join",), size),
    ]
    return link_operators("diamond", operators, tensors)


def join_devices(devices: int, latency: float = 0.0, seconds_per_byte: float = 0.0) -> Links:
    """Make equal devices."""
    apart = 1.0 - np.eye(devices)
    return Links(latency * apart, seconds_per_byte * apart, tuple(range(devices)))


def draw_graph(chance: random.Random, operators: int) -> Graph:
    """Draw a graph of `count` operators: some take no time, some have no bytes or no inputs."""
    return link_operators(
        "random",
        [
            Operator(
                f"o{number}",
                chance.choice([0.0, 1.0, 2.0, 3 * chance.random()]),
                chance.choice([0.1, 2.0, 4.0, 6 * chance.random()]),
                kept=chance.randint(0, 4),
            )
            for number in range(operators)
        ],
        [
            NamedTensor(f"o{maker}", tuple(f"o{taker}" for taker in takers), size)
            for maker in range(operators)
            for size in [chance.choice([0.0, 1.0, 2.0, 3 * chance.random()])]
            if (takers := [x for x in range(maker + 1, operators) if chance.random() < 0.45])
        ],
    )


def draw_links(chance: random.Random, devices: int) -> Links:
    """Draw links between devices, equal or different."""
    if chance.random() < 0.5:
        return join_devices(devices, 0.1, 0.5)
    latency, per_byte = np.zeros((2, devices, devices))
    for here in range(devices):
        for there in range(here):
            latency[here, there] = latency[there, here] = chance.choice([0.0, 0.1, 0.3])
            per_byte[here, there] = per_byte[there, here] = chance.choice([0.2, 0.5, 1.0])
    return Links(latency, per_byte, tuple(range(devices)))


def unpack(
    graph: Graph,
) -> tuple[list[float], list[float], list[tuple[int, tuple[int, ...], float]]]:
    """Convert to the reference's input: times and tensors without classes."""
    tensors = [(tensor.maker, tensor.takers, tensor.bytes) for tensor in graph.tensors]
    forward = [operator.forward for operator in graph.operators]
    return forward, [operator.backward for operator in graph.operators], tensors


def wire(links: Links) -> Callable[[int, int, float], float]:
    """Return a message's time for the reference."""
    return lambda here, to, size: float(
        links.latency[here, to] + size * links.seconds_per_byte[here, to]
    )
