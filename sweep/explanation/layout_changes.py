"""Layouts near one: changes that would let it fit, or larger micro-batches of one that fits."""

from collections.abc import Iterator

import numpy as np

from paradl.grids.entries.layout_words import write_layout
from paradl.kernels.arrays import use_numpy
from paradl.kernels.names.parallelisms import LAYOUT_DEGREES, RECOMPUTE
from paradl.kernels.oracle.blocks import find_limits, is_possible, sum_memory
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training
from paradl.sweep.answers.numbers import number
from paradl.sweep.answers.types.prediction import ChangeRow
from paradl.sweep.configurations.layout_cells import LayoutCell

Columns = dict[str, int]


def list_changes(cell: LayoutCell) -> list[ChangeRow]:
    """List layouts that fit after one or two changes; of one that fits, larger micro-batches."""
    net, training = cell.net, cell.training
    capacity = number(cell.case.pe.memory_capacity)
    with use_numpy():
        fits = sum_memory(net, cell.layout, training)[0] <= capacity
        for changed in _change(cell.layout, training, fits=bool(fits)):
            layouts = changed.select(is_possible(find_limits(net, changed, training)))
            memory = sum_memory(net, layouts, training)
            helps = np.flatnonzero(memory <= capacity)
            if helps.size:
                names = layouts.select(helps).to_names()
                return [
                    {"layout": write_layout(columns, training.schedule), "memory": float(size)}
                    for columns, size in zip(names, memory[helps], strict=True)
                ]
    return []


def _change(layout: Layouts, training: Training, *, fits: bool) -> Iterator[Layouts]:
    """Yield layouts with one change, then with two; if the layout fits, larger micro-batches."""
    (columns,) = layout.to_names()
    if fits:
        # Larger micro-batches, up to a replica's part of the batch.
        most = training.batch // (columns["data"] * columns["micro"])
        sizes = (columns["micro"] << bit for bit in range(1, most.bit_length()))
        yield Layouts.from_names(columns | {"micro": size} for size in sizes)
        return
    changed = [columns | change for change in _lessen(columns, training)]
    yield Layouts.from_names(changed)
    yield Layouts.from_names(
        first | change for first in changed for change in _lessen(first, training)
    )


def _lessen(columns: Columns, training: Training) -> Iterator[Columns]:
    """Yield single changes that take less memory."""
    micro = columns["micro"]
    yield from ({"micro": micro >> bit} for bit in range(1, micro.bit_length()))
    modules = ("blocks",) if training.fused_attention else ("core_attn", "blocks")
    yield from ({"recompute": columns["recompute"] | RECOMPUTE[name]} for name in modules)
    # ZeRO shares states among the PEs that have the same weights.
    if columns["data"] * columns["context"] > 1:
        yield from ({"zero": stage} for stage in range(columns["zero"] + 1, 4))
    if columns["tensor"] > 1 and not columns["sequence"]:
        yield {"sequence": 1}
    if columns["chunks"] > 1:
        # Groups are those of interleaved chunks, of which there are then none.
        yield {"chunks": 1, "group": 0}
    # The number of PEs stays: to divide the model further halves the replicas.
    if columns["data"] % 2 == 0:
        for name in LAYOUT_DEGREES:
            yield {name: 2 * columns[name], "data": columns["data"] // 2}
