"""Layouts that are a change, or two, away from another."""

from collections.abc import Iterable, Iterator

import numpy as np

from kernels.layouts.transformer import COLUMNS, RECOMPUTE, Layouts, Training
from sweep.cases.layout_words import list_layouts

Columns = dict[str, int]


def list_changes(layout: Layouts, training: Training, fits: bool) -> Iterator[Layouts]:
    """Layouts that differ in one thing, then in two: of one that fits, in micro-batches alone."""
    (columns,) = list_layouts(layout)
    if fits:
        yield _make_layouts(columns | change for change in _enlarge(columns, training))
        return
    changed = [columns | change for change in _lessen(columns, training)]
    yield _make_layouts(changed)
    again = (first | change for first in changed for change in _lessen(first, training))
    yield _make_layouts(again)


def _make_layouts(rows: Iterable[Columns]) -> Layouts:
    """The layouts of columns by name."""
    names = COLUMNS
    table = [[row[name] for name in names] for row in rows]
    return Layouts.from_rows(np.array(table, int).reshape(-1, len(names)))


def _enlarge(columns: Columns, training: Training) -> Iterator[Columns]:
    """Larger micro-batches, up to a replica's part of the batch."""
    micro = 2 * columns["micro"]
    while micro * columns["data"] <= training.batch:
        yield {"micro": micro}
        micro *= 2


def _lessen(columns: Columns, training: Training) -> Iterator[Columns]:
    """What takes less memory, one at a time."""
    micro = columns["micro"]
    while micro > 1:
        micro //= 2
        yield {"micro": micro}
    modules = ("blocks",) if training.fused_attention else ("core_attn", "blocks")
    yield from ({"recompute": columns["recompute"] | RECOMPUTE[name]} for name in modules)
    if columns["data"] * columns["context"] > 1:
        yield from ({"zero": stage} for stage in range(columns["zero"] + 1, 4))
    if columns["tensor"] > 1 and not columns["sequence"]:
        yield {"sequence": 1}
    if columns["chunks"] > 1:
        yield {"chunks": 1, "group": 0}
    if columns["data"] % 2 == 0:
        for name in ("tensor", "pipeline", "context"):
            yield {name: 2 * columns[name], "data": columns["data"] // 2}
