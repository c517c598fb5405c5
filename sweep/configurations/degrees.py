"""Compute how the PEs of a row divide into replicas and groups, and its global batch.

This is plain arithmetic without JAX, unless the kernels choose the group (`best`) or cut a flush.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paradl.grids.entries.parameters import DEFAULTS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid, Index
from paradl.kernels.names.flags import Limit
from paradl.sweep.answers.numbers import number
from paradl.sweep.cells.selection import locate_row
from paradl.sweep.cells.space import list_row_values
from paradl.sweep.cube.variables import name_limits

if TYPE_CHECKING:
    from paradl.sweep.configurations.layout_cells import LayoutCell

Row = Mapping[str, Any]

# The degrees of a row without a cell.
NO_DEGREES: dict[str, Any] = dict.fromkeys(
    ("replicas", "group_size", "segment_count", "global_batch")
)


def list_degrees(
    grid: Grid,
    row: Row,
    chosen: Mapping[str, int] | None = None,
    layout: "LayoutCell | None" = None,
) -> dict[str, Any]:
    """Compute `replicas` p1, `group_size` p2, `segment_count` and `global_batch` B of a row.

    `degrees` by name are added if several parallelisms divide a replica; `segment_count` is None if
    nothing is cut. chosen: the group and segments of `best` if known, else the kernels choose.
    layout: of the row, if already found.
    """
    if cell := layout or find_layout(grid, row):
        return _list_layout(grid, row, cell)
    index = locate_row(grid, row)
    strategy = grid.strategy(index)
    if not {*strategy.choices} <= {*(chosen or {})}:
        from paradl.sweep.configurations.row_cases import choose_row  # late: imports JAX

        chosen = choose_row(grid, row)
    settled = strategy.settle(chosen or {})
    degrees = _list_parts(grid, settled, row) if settled.several else {}
    group = math.prod(degrees.values()) if degrees else _find_group(grid, settled, row, index)
    replicas = max(int(row["pe"]) // group, 1) if settled.replicated else 1
    cut = settled.cut_by_axis or settled.segments is not None
    # Pipelines have segments, and placements that state them.
    segments = _read_value(grid, row, "segments") or DEFAULTS["segments"]
    if isinstance(settled.segments, int):
        segments = settled.segments
    passes = _read_value(grid, row, "accumulate") or DEFAULTS["accumulate"]
    samples = row["batch"] if grid.spec.scaling == "strong" else row["batch"] * passes * replicas
    if settled.micro and settled.segmented:
        from paradl.sweep.configurations.row_cases import build_row_case  # late: imports JAX

        run = build_row_case(grid, {name: row[name] for name in grid.dims}).run
        cut, segments = True, number(run.segments)
    return {
        "replicas": replicas,
        "group_size": group,
        "segment_count": int(segments) if cut else None,
        **({"degrees": degrees} if degrees else {}),
        "global_batch": int(samples),
    }


def find_layout(grid: Grid, row: Row) -> "LayoutCell | None":
    """Find the layout of a row's cell; None if its strategy divides layers, not blocks."""
    index = locate_row(grid, row)
    if not grid.find_blocks(index):
        return None
    from paradl.sweep.configurations.layout_cells import find_cell  # late: JAX comes with it
    from paradl.sweep.configurations.row_cases import build_row_case

    return find_cell(grid, build_row_case(grid, {name: row[name] for name in grid.dims}), index)


def _list_layout(grid: Grid, row: Row, cell: "LayoutCell") -> dict[str, Any]:
    """The same of a transformer's layout, with its words."""
    degrees = cell.degrees
    return {
        "replicas": degrees["data"],
        "group_size": int(row["pe"]) // degrees["data"],
        "segment_count": int(cell.training.count_micro_batches(cell.layout)[0]),
        "degrees": degrees,
        # Rows of a spec may have that name.
        **({} if "layout" in grid.axes else {"layout": cell.words}),
        "global_batch": cell.training.batch,
    }


def read_layout_words(row: Row) -> str | None:
    """Return the layout of a row in words; None if it has none.

    An axis of rows may have that name, too: its values are row numbers, and no words.
    """
    words = row.get("layout")
    return words if isinstance(words, str) else None


def _find_group(grid: Grid, strategy: Strategy, row: Row, index: Index) -> int:
    """Number of PEs that share a replica."""
    pe = int(row["pe"])
    if not strategy.parts:
        return 1
    if not strategy.hybrid:
        return pe
    if isinstance(strategy.group, int):
        return strategy.group
    (part,) = strategy.parts
    for name in (part, "group"):
        given = _read_value(grid, row, name)
        if given is not None:
            return int(given)
    node = grid.systems[index[2]].pes_per_node
    # Fewer PEs than a node has form one group; Table III keeps the node, which then cannot divide.
    return node if grid.spec.oracle == "paper" else min(node, pe)


def _list_parts(grid: Grid, strategy: Strategy, row: Row) -> dict[str, int]:
    """Degree of each of several parallelisms; one left open takes the remaining PEs."""
    stated = dict(strategy.degrees)
    sizes = {name: stated.get(name) or _read_value(grid, row, name) for name in strategy.parts}
    known = {name: int(size) for name, size in sizes.items() if size is not None}
    rest = max(int(row["pe"]) // math.prod(known.values()), 1)
    return {name: known.get(name, rest) for name in sizes}


def _read_value(grid: Grid, row: Row, name: str) -> float | None:
    """A parameter of the row: the value of its axis, or that fixed by the spec, or None."""
    if name in grid.axes:
        return float(row[name])
    return list_row_values(grid, row).get(name, grid.spec.parameters.get(name))


def mark_batch(grid: Grid, row: Row, global_batch: float) -> list[str]:
    """Marks of an allowed cell: its global batch is larger than the data set, or none."""
    exceeds = global_batch > _count_epoch_samples(grid, row)
    return name_limits(Limit.BATCH_EXCEEDS_DATASET) if exceeds else []


def mark_cell(grid: Grid, row: Row) -> list[str]:
    """Marks of an allowed cell; computes its degrees only if a mark is possible."""
    passes = _read_value(grid, row, "accumulate") or DEFAULTS["accumulate"]
    replicas = 1 if grid.spec.scaling == "strong" else row["pe"] * passes
    # This is the largest global batch that any group gives; to find the group may take the kernels.
    if row["batch"] * replicas <= _count_epoch_samples(grid, row):
        return []
    return mark_batch(grid, row, list_degrees(grid, row)["global_batch"])


def _count_epoch_samples(grid: Grid, row: Row) -> int:
    """Samples per epoch."""
    return next(data.samples for data in grid.datasets if data.name == row["dataset"])
