"""Compute how the PEs of a row divide into replicas and groups, its global batch, and its rates.

This is plain arithmetic without JAX, unless the kernels choose the group (`best`) or cut a flush.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.entries.parameters import DEFAULTS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid, Index
from paradl.kernels.batches import iterations
from paradl.kernels.names.flags import Limit
from paradl.sweep.answers.mapping import A, extend
from paradl.sweep.answers.numbers import number
from paradl.sweep.answers.types.words import (
    CellDegrees,
    Degrees,
    InsideDegrees,
    IterationRates,
    SampleRates,
    TokenRates,
)
from paradl.sweep.cells.reader import CHOSEN
from paradl.sweep.cells.selection import locate_row, read_axis
from paradl.sweep.cells.space import look_up_value
from paradl.sweep.cube.variables import name_limits

if TYPE_CHECKING:
    from paradl.sweep.configurations.layout_cells import LayoutCell

# An answer's row: labels, values along the axes, and what is known of the cell.
Row = Mapping[str, object]

# The degrees of a row without a cell.
NO_DEGREES: Degrees = {
    "replicas": None,
    "group_size": None,
    "segment_count": None,
    "global_batch": None,
}


def list_no_degrees(grid: Grid, row: Row) -> Degrees:
    """The degrees of a row of which nothing is feasible, with the layout that others have."""
    words: InsideDegrees = {"layout": None} if grid.find_blocks(locate_row(grid, row)) else {}
    return {**NO_DEGREES, **words}


def list_degrees(
    grid: Grid,
    row: Row,
    chosen: Mapping[str, int] | None = None,
    layout: "LayoutCell | None" = None,
) -> CellDegrees:
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
    pe, batch = int(read_axis(row, "pe")), read_axis(row, "batch")
    replicas = max(pe // group, 1) if settled.replicated else 1
    cut = settled.cut_by_axis or settled.segments is not None
    # Pipelines have segments, and placements that state them.
    segments = look_up_value(grid, row, "segments") or DEFAULTS["segments"]
    if isinstance(settled.segments, int):
        segments = settled.segments
    passes = look_up_value(grid, row, "accumulate") or DEFAULTS["accumulate"]
    samples = batch if grid.spec.scaling == "strong" else batch * passes * replicas
    if settled.micro and settled.segmented:
        from paradl.sweep.configurations.row_cases import build_row_case  # late: imports JAX

        run = build_row_case(grid, {name: row[name] for name in grid.dims}).run
        cut, segments = True, number(run.segments)
    inside: InsideDegrees = {"degrees": degrees} if degrees else {}
    return {
        "replicas": replicas,
        "group_size": group,
        "segment_count": int(segments) if cut else None,
        **inside,
        "global_batch": int(samples),
    }


def settle_known(strategy: Strategy, row: Row) -> Strategy:
    """Settle the strategy's choices with the degrees in a row, if it has them all."""
    degrees = row.get("degrees")
    known = {**row, **(degrees if isinstance(degrees, dict) else {})}
    keys = {name: CHOSEN.get(name, name) for name in strategy.choices}
    if any(known.get(key) is None for key in keys.values()):  # the kernels choose
        return strategy
    return strategy.settle({name: int(read_axis(known, key)) for name, key in keys.items()})


def find_layout(grid: Grid, row: Row) -> "LayoutCell | None":
    """Find the layout of a row's cell; None if its strategy divides layers, not blocks."""
    index = locate_row(grid, row)
    if not grid.find_blocks(index):
        return None
    from paradl.sweep.configurations.layout_cells import find_cell  # late: JAX comes with it
    from paradl.sweep.configurations.row_cases import build_row_case

    return find_cell(grid, build_row_case(grid, {name: row[name] for name in grid.dims}), index)


def _list_layout(grid: Grid, row: Row, cell: "LayoutCell") -> CellDegrees:
    """The same of a transformer's layout, with its words."""
    inside: InsideDegrees = {"degrees": cell.degrees}
    if LAYOUT not in grid.axes:
        inside["layout"] = cell.words
    replicas = cell.degrees["data"]
    return {
        "replicas": replicas,
        "group_size": int(read_axis(row, "pe")) // replicas,
        "segment_count": int(cell.training.count_micro_batches(cell.layout)[0]),
        **inside,
        "global_batch": cell.training.batch,
    }


def write_layouts(grid: Grid, rows: Sequence[A], pe: str = "pe") -> list[A]:
    """Rows with the words of their layouts in the place of row numbers. pe: their PE count."""
    if LAYOUT not in grid.rows:
        return list(rows)
    return [_write_layout(grid, row, row.get(pe)) for row in rows]


def _write_layout(grid: Grid, row: A, pe: object) -> A:
    if pe is None:  # nothing is feasible
        return extend(row, {LAYOUT: None})
    # Rows about an axis that a question varied lack it: any value has the same layout.
    first = {name: values[0] for name, values in grid.axes.items()}
    words = name_layout(grid, {**first, **row, "pe": pe})
    return extend(row, {LAYOUT: words}) if words else row


def name_layout(grid: Grid, row: Row) -> str | None:
    """Return the layout of a row's cell in words; None if its strategy divides layers."""
    if words := read_layout_words(row):
        return words
    cell = find_layout(grid, row)
    return cell.words if cell else None


def list_layout_rows(grid: Grid) -> list[str]:
    """List the axes whose rows are layouts: parameters that a planner chooses together."""
    return [name for name in grid.axes if name in grid.rows and grid.parameters[name].chosen]


def read_layout_words(row: Row) -> str | None:
    """Return the layout of a row in words; None if it has none."""
    words = row.get(LAYOUT)
    return words if isinstance(words, str) else None


def _find_group(grid: Grid, strategy: Strategy, row: Row, index: Index) -> int:
    """Number of PEs that share a replica."""
    pe = int(read_axis(row, "pe"))
    if not strategy.parts:
        return 1
    if not strategy.hybrid:
        return pe
    if isinstance(strategy.group, int):
        return strategy.group
    (part,) = strategy.parts
    for name in (part, "group"):
        given = look_up_value(grid, row, name)
        if given is not None:
            return int(given)
    node = grid.systems[index[2]].pes_per_node
    # Fewer PEs than a node has form one group; Table III keeps the node, which then cannot divide.
    return node if grid.spec.oracle == "paper" else min(node, pe)


def _list_parts(grid: Grid, strategy: Strategy, row: Row) -> dict[str, int]:
    """Degree of each of several parallelisms; one left open takes the remaining PEs."""
    stated = dict(strategy.degrees)
    sizes = {name: stated.get(name) or look_up_value(grid, row, name) for name in strategy.parts}
    known = {name: int(size) for name, size in sizes.items() if size is not None}
    rest = max(int(read_axis(row, "pe")) // math.prod(known.values()), 1)
    return {name: known.get(name, rest) for name in sizes}


def mark_batch(grid: Grid, row: Row, global_batch: float) -> list[str]:
    """Marks of an allowed cell: its global batch is larger than the data set, or none."""
    exceeds = global_batch > _count_epoch_samples(grid, row)
    return name_limits(Limit.BATCH_EXCEEDS_DATASET) if exceeds else []


def mark_cell(grid: Grid, row: Row) -> list[str]:
    """Marks of an allowed cell; computes its degrees only if a mark is possible."""
    passes = look_up_value(grid, row, "accumulate") or DEFAULTS["accumulate"]
    replicas = 1 if grid.spec.scaling == "strong" else read_axis(row, "pe") * passes
    # This is the largest global batch that any group gives; to find the group may take the kernels.
    if read_axis(row, "batch") * replicas <= _count_epoch_samples(grid, row):
        return []
    return mark_batch(grid, row, list_degrees(grid, row)["global_batch"])


def _count_epoch_samples(grid: Grid, row: Row) -> int:
    """Samples per epoch."""
    return next(data.samples for data in grid.datasets if data.name == row["dataset"])


# A backward pass computes the gradients of inputs and of weights: two products for each forward.
PASSES = 3
NO_RATES: SampleRates = {"samples_per_second": None, "samples_per_pe_second": None, "mfu": None}


def list_rates(
    grid: Grid, index: Index, cell: Row, global_batch: float, seconds: float
) -> SampleRates:
    """List samples per second, of all PEs and of one, and MFU; None without a time.

    cell: values of a cell by axis. seconds: of an iteration. MFU counts multiply-accumulates of
    layers that multiply by weights, as `list models` does, whatever is computed again.
    """
    table, pe = grid.table(*index[:2]), read_axis(cell, "pe")
    if table is None or not math.isfinite(seconds) or not seconds:
        return {**NO_RATES}
    system = grid.systems[index[2]]
    usual = system.pe.peak_flops if grid.spec.oracle == "paper" else system.peak
    peak = look_up_value(grid, cell, "peak_flops") or usual
    rate = global_batch / seconds
    blocks, tokens = grid.find_blocks(index), TokenRates()
    if blocks:
        of_tokens = rate * (blocks.length or grid.datasets[index[1]].shape[1])
        tokens = {"tokens_per_second": of_tokens, "tokens_per_pe_second": of_tokens / pe}
    return {
        "samples_per_second": rate,
        "samples_per_pe_second": rate / pe,
        **tokens,
        "mfu": 2 * PASSES * table.macs * rate / (pe * peak),
    }


def time_iteration(
    grid: Grid, index: Index, cell: Row, global_batch: float, seconds: float
) -> IterationRates:
    """Return the time of an iteration [s] and its rates. seconds: of an epoch."""
    count = iterations(grid.datasets[index[1]].samples, global_batch, grid.spec.iterations)
    seconds /= count
    return {"iteration_time": seconds, **list_rates(grid, index, cell, global_batch, seconds)}
