"""Graphs of networks: a layer is an operator, its output a tensor."""

from paradl.grids.graphs.graph import Graph, GraphTensor, Operator
from paradl.grids.models.flow import SAMPLE
from paradl.grids.models.layers import LayerTable
from paradl.kernels.names.arrays import Floats


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
    return Graph(name, tuple(operators), _list_tensors(table, sizes), batch)


def _round(seconds: Floats) -> list[float]:
    """Round to six digits, so that rounding errors of sums do not decide between placements."""
    return [float(f"{time:.5e}") for time in seconds.tolist()]


def _list_tensors(table: LayerTable, sizes: list[float]) -> tuple[GraphTensor, ...]:
    """List the outputs that other layers take."""
    takers: dict[int, list[int]] = {}
    # A set of makers, since a layer may read one tensor twice.
    for taker, makers in enumerate(table.inputs):
        for maker in {*makers} - {SAMPLE}:  # hosts feed the sample to every device
            takers.setdefault(maker, []).append(taker)
    return tuple(GraphTensor(maker, tuple(takers[maker]), sizes[maker]) for maker in sorted(takers))
