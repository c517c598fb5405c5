"""A graph of operators: how long each takes, what it holds, and the tensors between them.

    left = Operator("left", forward=1e-3, backward=2e-3, weights=4e6, kept=8e6)
    right = Operator("right", forward=1e-3, backward=2e-3)
    graph = link_operators("pair", (left, right), (NamedTensor("left", ("right",), bytes=8e6),))

An operator is the smallest piece that a device runs: a layer, or part of one. A tensor is listed
once, with all its takers: two takers on one device get it in one message. Of a network, a layer is
an operator and its output a tensor (`make_graph`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from paradl.grids.models.layers import SAMPLE, LayerTable
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.names.arrays import Floats

# More than any network that was profiled operator by operator; a search looks at pairs of them.
MOST_OPERATORS = 20_000


@dataclass(frozen=True)
class Operator:
    """One operator, for the samples of one step.

    forward, backward [s]: on one device. weights [B]: in the step's precision. kept [B]: what the
    backward pass needs from the forward pass.
    """

    name: str
    forward: float
    backward: float
    weights: float = 0.0
    kept: float = 0.0


@dataclass(frozen=True)
class NamedTensor:
    """A tensor as written in a file: operators by name, and its place in the file."""

    maker: str
    takers: tuple[str, ...]
    bytes: float
    where: str = ""


@dataclass(frozen=True)
class GraphTensor:
    """A tensor [B]: position of the operator that makes it, and of those that take it.

    In the backward pass its gradient, of the same size, goes from the takers to the maker.
    """

    maker: int
    takers: tuple[int, ...]
    bytes: float


@dataclass(frozen=True)
class Graph:
    """Operators in an order in which they can run, and the tensors between them.

    batch: samples of the step, None if unknown. The network's input is no tensor here, since hosts
    feed every device. `link_operators` sorts operators and checks its arguments.
    """

    name: str
    operators: tuple[Operator, ...]
    tensors: tuple[GraphTensor, ...]
    batch: int | None = None
    title: str = ""
    source: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Searches rely on the order: a maker runs before its takers.
        for tensor in self.tensors:
            assert tensor.takers
            assert 0 <= tensor.maker < min(tensor.takers)
            assert max(tensor.takers) < len(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    @property
    def forward(self) -> float:
        """Time of all forward passes on one device [s]."""
        # Exactly, so that the order of operators does not change the sum.
        return math.fsum(operator.forward for operator in self.operators)

    @property
    def backward(self) -> float:
        """Time of all backward passes on one device [s]."""
        return math.fsum(operator.backward for operator in self.operators)

    @property
    def serial_time(self) -> float:
        """Time of a step on one device [s]."""
        return self.forward + self.backward


def link_operators(
    name: str,
    operators: Sequence[Operator],
    tensors: Iterable[NamedTensor],
    *,
    where: str = "",
    batch: int | None = None,
    title: str = "",
    source: tuple[str, ...] = (),
) -> Graph:
    """Build a graph from operators in any order and tensors by name.

    InputError: no operators or too many, two of one name, a tensor with an unknown operator or a
    repeated taker, operators that wait for each other.
    """
    positions = _number_operators(operators, where)
    linked = [_link_tensor(tensor, positions, where) for tensor in tensors]
    order = _sort_operators(operators, linked, where)
    rank = {position: number for number, position in enumerate(order)}
    moved = (
        GraphTensor(
            rank[tensor.maker], tuple(sorted(rank[to] for to in tensor.takers)), tensor.bytes
        )
        for tensor in linked
    )
    return Graph(
        name,
        tuple(operators[position] for position in order),
        tuple(sorted(moved, key=lambda tensor: (tensor.maker, tensor.takers))),
        batch,
        title,
        source,
    )


def _number_operators(operators: Sequence[Operator], where: str) -> dict[str, int]:
    if not operators:
        raise InputError("no operators", where=where, advice="give the graph one that takes time")
    if len(operators) > MOST_OPERATORS:
        raise InputError(
            f"expected at most {MOST_OPERATORS:,} operators, got {len(operators):,}", where=where
        )
    ((commonest, count),) = Counter(operator.name for operator in operators).most_common(1)
    if count > 1:
        what = f"two operators are called {shorten(commonest)}"
        raise InputError(what, where=where, advice="rename one")
    return {operator.name: position for position, operator in enumerate(operators)}


def _link_tensor(tensor: NamedTensor, positions: dict[str, int], where: str) -> GraphTensor:
    location = tensor.where or where
    for name in (tensor.maker, *tensor.takers):
        if name not in positions:
            raise InputError.unknown("operator", name, positions, where=location)
    if not tensor.takers or len({*tensor.takers}) < len(tensor.takers):
        what = f"the tensor of {shorten(tensor.maker)} has no takers, or one twice"
        raise InputError(what, where=location, advice="name each taker once")
    takers = tuple(positions[taker] for taker in tensor.takers)
    return GraphTensor(positions[tensor.maker], takers, tensor.bytes)


def _sort_operators(
    operators: Sequence[Operator], tensors: Sequence[GraphTensor], where: str
) -> list[int]:
    """Return positions in topological order, otherwise in the given order."""
    # With all operators from the start: one without tensors would be missing.
    sorter = TopologicalSorter[int](dict.fromkeys(range(len(operators)), ()))
    for tensor in tensors:
        for taker in tensor.takers:
            sorter.add(taker, tensor.maker)
    try:
        sorter.prepare()
    except CycleError as error:
        names = " -> ".join(shorten(operators[position].name) for position in error.args[1])
        raise InputError(
            f"operators wait for each other: {names}", where=where, advice="take one tensor out"
        ) from None
    # A heap takes the lowest position first, which keeps the given order where it is possible.
    ready, order = list[int](), list[int]()
    while sorter:
        for position in sorter.get_ready():
            heappush(ready, position)
        order.append(heappop(ready))
        sorter.done(order[-1])
    return order


def make_graph(
    name: str,
    table: LayerTable,
    forward: Floats,
    backward: Floats,
    *,
    batch: int,
    item_bytes: float,
) -> Graph:
    """Build the graph of a network's layers for a step of `batch` samples.

    forward, backward [s per step, G]; item_bytes [B]: size of an item and of a weight. An output
    with several takers is one tensor, such as the input of a residual block's body and shortcut.
    """
    # Masks and indices have the same bytes in every precision.
    kept = batch * (item_bytes * table.kept_items + table.kept_bytes)
    weights = item_bytes * (table.w + table.bias)
    columns = weights.tolist(), kept.tolist()
    operators = map(Operator, table.names, _round(forward), _round(backward), *columns)
    sizes = (batch * item_bytes * table.y).tolist()
    takers: dict[int, list[int]] = {}
    # A set of makers, since a layer may read one tensor twice.
    for taker, makers in enumerate(table.inputs):
        for maker in {*makers} - {SAMPLE}:  # hosts feed the sample to every device
            takers.setdefault(maker, []).append(taker)
    tensors = (GraphTensor(maker, tuple(takers[maker]), sizes[maker]) for maker in sorted(takers))
    return Graph(name, tuple(operators), tuple(tensors), batch)


def _round(seconds: Floats) -> list[float]:
    """Round to six digits, so that rounding errors of sums do not decide between placements."""
    return [float(f"{time:.5e}") for time in seconds.tolist()]
