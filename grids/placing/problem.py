"""The placement problem: operators with times and bytes, and message times between devices.

A step is two passes. Forward, an operator begins when its inputs have arrived; backward, when the
gradients of its outputs have. Links are symmetric, so a backward pass played in reverse is a
forward pass with other durations on the same devices: both passes are one problem with [2, n]
durations on one graph (docs/placement.md).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from paradl.grids.graphs.graph import Graph, GraphTensor
from paradl.grids.graphs.links import Links
from paradl.kernels.names.arrays import Floats

Placement = tuple[int, ...]


class Edge(NamedTuple):
    """A tensor on its way to one taker, and its message time between devices [s, M by M]."""

    maker: int
    taker: int
    tensor: int
    delays: tuple[tuple[float, ...], ...]


class StepBounds(NamedTuple):
    """Lower bounds of a step's time [s].

    critical_path: the longest path of each pass, without messages. work: total work divided by the
    number of devices. proven: the largest bound known, from these or from the program.
    """

    critical_path: float
    work: float
    proven: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Operators in an order in which they can run.

    durations [s, passes by n]; delays [s, tensors by M by M], symmetric; held [B, n]: memory that
    an operator needs wherever it runs; room [B]: memory of a device.
    """

    durations: Floats
    tensors: tuple[GraphTensor, ...]
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
        """One edge per tensor and taker."""
        return tuple(
            # Loops read plain floats ten times as fast as array items.
            Edge(tensor.maker, taker, number, tuple(map(tuple, self.delays[number].tolist())))
            for number, tensor in enumerate(self.tensors)
            for taker in tensor.takers
        )

    @cached_property
    def entering(self) -> tuple[tuple[Edge, ...], ...]:
        """Edges into each operator."""
        edges: list[list[Edge]] = [[] for _ in range(self.operators)]
        for edge in self.edges:
            edges[edge.taker].append(edge)
        return tuple(map(tuple, edges))

    @cached_property
    def leaving(self) -> tuple[tuple[Edge, ...], ...]:
        """Edges out of each operator."""
        edges: list[list[Edge]] = [[] for _ in range(self.operators)]
        for edge in self.edges:
            edges[edge.maker].append(edge)
        return tuple(map(tuple, edges))

    @cached_property
    def before(self) -> tuple[int, ...]:
        """Ancestors of each operator, as the bits of an integer."""
        # Python's integers are sets of any size, united in one operation.
        bits: list[int] = []
        for edges in self.entering:
            mask = 0
            for edge in edges:
                mask |= bits[edge.maker] | 1 << edge.maker
            bits.append(mask)
        return tuple(bits)

    @cached_property
    def behind(self) -> tuple[int, ...]:
        """Descendants of each operator, as the bits of an integer."""
        bits = [0] * self.operators
        for position in reversed(range(self.operators)):
            for edge in self.leaving[position]:
                bits[position] |= bits[edge.taker] | 1 << edge.taker
        return tuple(bits)

    def count_rivals(self) -> int:
        """Count pairs of operators that could run at once: neither depends on the other."""
        waiting = sum(mask.bit_count() for mask in self.before)
        return self.operators * (self.operators - 1) // 2 - waiting

    def list_rivals(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of operators that could run at once."""
        for i, j in combinations(range(self.operators), 2):
            if not self.before[j] >> i & 1:
                yield i, j

    @cached_property
    def heads(self) -> Floats:
        """Earliest start of each operator, without messages [s, passes by n]."""
        heads = np.zeros_like(self.durations)
        # In this order, all edges into an operator come before those out of it.
        for edge in chain.from_iterable(self.leaving):
            done = heads[:, edge.maker] + self.durations[:, edge.maker]
            heads[:, edge.taker] = np.maximum(heads[:, edge.taker], done)
        return heads

    @cached_property
    def tails(self) -> Floats:
        """Least time from each operator's start to the end of the pass [s, passes by n]."""
        tails = self.durations.copy()
        for edge in reversed([*chain.from_iterable(self.leaving)]):
            through = self.durations[:, edge.maker] + tails[:, edge.taker]
            tails[:, edge.maker] = np.maximum(tails[:, edge.maker], through)
        return tails

    @cached_property
    def bounds(self) -> StepBounds:
        """Bounds from path lengths and work; a pass takes at least the larger of the two."""
        paths = self.tails.max(axis=1)
        work = self.durations.sum(axis=1) / self.devices
        proven = sum(max(path, share) for path, share in zip(paths, work, strict=True))
        return StepBounds(float(paths.sum()), float(work.sum()), float(proven))

    @cached_property
    def least_memory(self) -> Floats:
        """Lower bound of the bytes of each operator's device [n]."""
        least = self.held.copy()
        for taker, edges in enumerate(self.entering):
            sent: dict[int, float] = defaultdict(float)
            for edge in edges:
                sent[edge.maker] += self.tensors[edge.tensor].bytes
            # A device receives an input, or also holds what makes it.
            least[taker] += sum(min(size, self.held[maker]) for maker, size in sent.items())
        return least

    def take_part(self, positions: Sequence[int], started: bool = False) -> "Problem":
        """Return the problem of these operators (ascending); `started`: the first is done."""
        number = {position: new for new, position in enumerate(positions)}
        durations = self.durations[:, list(positions)]
        if started:
            durations[:, 0] = 0.0
        kept, tensors = [], []
        for position, tensor in enumerate(self.tensors):
            takers = tuple(number[taker] for taker in tensor.takers if taker in number)
            if tensor.maker in number and takers:
                kept.append(position)
                tensors.append(GraphTensor(number[tensor.maker], takers, tensor.bytes))
        return Problem(
            durations, tuple(tensors), self.delays[kept], self.held[list(positions)], self.room
        )

    def measure_memory(self, placement: Placement) -> Floats:
        """Bytes on each device [M]: held by its operators, plus each received tensor once."""
        needed = np.zeros(self.devices)
        np.add.at(needed, list(placement), self.held)
        for tensor in self.tensors:
            receivers = {placement[taker] for taker in tensor.takers} - {placement[tensor.maker]}
            needed[list(receivers)] += tensor.bytes
        return needed

    def fits(self, placement: Placement) -> bool:
        """True if every device has room for its bytes."""
        # Searches without a memory limit skip the count.
        return bool(np.isinf(self.room) or (self.measure_memory(placement) <= self.room).all())


def pose_problem(
    graph: Graph, links: Links, *, room: float = np.inf, states: float = 1.0
) -> Problem:
    """Build the problem of a graph on the linked devices.

    room [B]: memory of a device. states: bytes kept per byte of weights, the weights included.
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
        # Shaped, since without tensors the array would have one dimension.
        delays=np.array([links.time_message(tensor.bytes) for tensor in graph.tensors]).reshape(
            len(graph.tensors), len(links), len(links)
        ),
        held=np.array([states * operator.weights + operator.kept for operator in operators]),
        room=room,
    )
