"""The placement problem: operators with times and bytes, and times of messages between devices.

A step is two passes. Forward, an operator begins when all that it takes is there; backward, its
makers wait for the gradients of what they made. On the same devices, and with links that are alike
in both directions, a backward pass played in reverse is a forward pass with other durations: so
both passes are one problem, [2, n] durations on the same graph (docs/placement.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grids.graphs.graph import Graph, Tensor
from grids.graphs.links import Links

Floats = NDArray[np.float64]
Placement = tuple[int, ...]


class Edge(NamedTuple):
    """A tensor on its way to one of its takers, and what it takes between devices [s, M by M]."""

    maker: int
    taker: int
    tensor: int
    delays: tuple[tuple[float, ...], ...]


class TimeBounds(NamedTuple):
    """Lower bounds of a step's time [s].

    critical_path: the longest way of each pass, without messages. work: all of it over the devices.
    proven: the largest that is proven, by these or by the program.
    """

    critical_path: float
    work: float
    proven: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Operators in an order in which they can run.

    durations [s, passes by n]; delays [s, tensors by M by M], alike both ways; held [B, n]: what an
    operator holds wherever it is; room [B]: of a device.
    """

    durations: Floats
    tensors: tuple[Tensor, ...]
    delays: Floats
    held: Floats
    room: float = np.inf

    @property
    def operators(self) -> int:
        return int(self.durations.shape[1])

    @property
    def devices(self) -> int:
        return int(self.delays.shape[1])

    @property
    def serial(self) -> float:
        """Both passes on one device [s]."""
        return float(self.durations.sum())

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Each tensor's way to each of its takers."""
        return tuple(
            Edge(tensor.maker, taker, number, _list_rows(self.delays[number]))
            for number, tensor in enumerate(self.tensors)
            for taker in tensor.takers
        )

    @cached_property
    def entering(self) -> tuple[tuple[Edge, ...], ...]:
        """The edges into each operator."""
        edges: list[list[Edge]] = [[] for _ in range(self.operators)]
        for edge in self.edges:
            edges[edge.taker].append(edge)
        return tuple(map(tuple, edges))

    @cached_property
    def leaving(self) -> tuple[tuple[Edge, ...], ...]:
        """The edges out of each operator."""
        edges: list[list[Edge]] = [[] for _ in range(self.operators)]
        for edge in self.edges:
            edges[edge.maker].append(edge)
        return tuple(map(tuple, edges))

    @cached_property
    def before(self) -> tuple[int, ...]:
        """The operators that come before each, as the bits of a number."""
        bits: list[int] = []
        for edges in self.entering:
            mask = 0
            for edge in edges:
                mask |= bits[edge.maker] | 1 << edge.maker
            bits.append(mask)
        return tuple(bits)

    @cached_property
    def behind(self) -> tuple[int, ...]:
        """The operators that come after each, as the bits of a number."""
        bits = [0] * self.operators
        for position in reversed(range(self.operators)):
            for edge in self.leaving[position]:
                bits[position] |= bits[edge.taker] | 1 << edge.taker
        return tuple(bits)

    def count_rivals(self) -> int:
        """Pairs of operators that could run at once: neither waits for the other."""
        waiting = sum(mask.bit_count() for mask in self.before)
        return self.operators * (self.operators - 1) // 2 - waiting

    def list_rivals(self) -> Iterator[tuple[int, int]]:
        """The pairs of operators that could run at once."""
        for i, j in combinations(range(self.operators), 2):
            if not self.before[j] >> i & 1:
                yield i, j

    @cached_property
    def heads(self) -> Floats:
        """The earliest that each can begin, messages apart [s, passes by n]."""
        heads = np.zeros_like(self.durations)
        for edge in self.edges_in_order:
            done = heads[:, edge.maker] + self.durations[:, edge.maker]
            heads[:, edge.taker] = np.maximum(heads[:, edge.taker], done)
        return heads

    @cached_property
    def tails(self) -> Floats:
        """The least that there is to do from the beginning of each on [s, passes by n]."""
        tails = self.durations.copy()
        for edge in reversed(self.edges_in_order):
            through = self.durations[:, edge.maker] + tails[:, edge.taker]
            tails[:, edge.maker] = np.maximum(tails[:, edge.maker], through)
        return tails

    @cached_property
    def bounds(self) -> TimeBounds:
        """The bounds that need no program; a pass takes at least the larger of both."""
        paths = self.tails.max(axis=1)
        work = self.durations.sum(axis=1) / self.devices
        proven = sum(max(path, share) for path, share in zip(paths, work, strict=True))
        return TimeBounds(float(paths.sum()), float(work.sum()), float(proven))

    @cached_property
    def edges_in_order(self) -> tuple[Edge, ...]:
        """Edges, those into an operator before those out of it."""
        return tuple(sorted(self.edges, key=lambda edge: edge.maker))

    def take_part(self, positions: Sequence[int], started: bool = False) -> "Problem":
        """The problem of some operators alone, ascending; if `started`, the first is done."""
        number = {position: new for new, position in enumerate(positions)}
        durations = self.durations[:, list(positions)]
        if started:
            durations[:, 0] = 0.0
        kept, tensors = [], []
        for position, tensor in enumerate(self.tensors):
            takers = tuple(number[taker] for taker in tensor.takers if taker in number)
            if tensor.maker in number and takers:
                kept.append(position)
                tensors.append(Tensor(number[tensor.maker], takers, tensor.bytes))
        return Problem(
            durations, tuple(tensors), self.delays[kept], self.held[list(positions)], self.room
        )

    def measure_memory(self, placement: Placement) -> Floats:
        """Bytes on each device [M]: what operators hold, and what others sent them, each once."""
        needed = np.zeros(self.devices)
        np.add.at(needed, list(placement), self.held)
        for tensor in self.tensors:
            away = {placement[taker] for taker in tensor.takers} - {placement[tensor.maker]}
            needed[list(away)] += tensor.bytes
        return needed

    def fits(self, placement: Placement) -> bool:
        """True if each device has room for what it holds."""
        return bool(np.isinf(self.room) or (self.measure_memory(placement) <= self.room).all())


def pose_problem(
    graph: Graph, links: Links, *, room: float = np.inf, states: float = 1.0
) -> Problem:
    """The problem of a graph on so many devices as there are links for.

    room [B]: of a device; states: bytes that stay for each byte of weights, itself included.
    """
    operators = graph.operators
    return Problem(
        durations=np.array(
            [
                [operator.forward for operator in operators],
                [operator.backward for operator in operators],
            ]
        ),
        tensors=graph.tensors,
        delays=np.array([links.time_message(tensor.bytes) for tensor in graph.tensors]).reshape(
            len(graph.tensors), len(links), len(links)
        ),
        held=np.array([states * operator.weights + operator.kept for operator in operators]),
        room=room,
    )


def _list_rows(delays: Floats) -> tuple[tuple[float, ...], ...]:
    """As plain numbers, which loops read ten times as fast as an array's items."""
    return tuple(map(tuple, delays.tolist()))
