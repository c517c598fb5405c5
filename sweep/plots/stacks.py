"""What stacked bars show: terms of time over p, parts of memory, or elasticities."""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.cells.selection import Selection, locate_row
from paradl.sweep.cells.source import Source
from paradl.sweep.cells.space import look_up_capacity, thin_axis
from paradl.sweep.configurations.row_cases import answer_expected
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.cube.variables import find_allowed
from paradl.sweep.engine.resources import keep_programs
from paradl.sweep.explanation.kinds import measure_row_parts
from paradl.sweep.plots import slices
from paradl.sweep.plots.bars import LEAST, MOST_BARS, Bars
from paradl.sweep.plots.looks import LESS, MEMORY_LOOKS, MORE, SLOPE_LOOKS, TERM_LOOKS
from paradl.sweep.questions.sensitivity import list_sensitivities

if TYPE_CHECKING:
    import xarray as xr

MOST_LAYOUTS = 12  # bars of rows of parameters, whose names take two lines
MOST_SLOPES = 12
LEAST_SLOPE = 0.001  # an elasticity that is drawn
SLOPES = "elasticity: % of time for 1 % more of a parameter; right: time if halved or doubled"


def describe_breakdown(source: Source, selection: Selection | None = None) -> Bars:
    """Compute the terms of a slice with one strategy: seconds per iteration at allowed PE counts.

    InputError: an axis other than pe has several values. NothingFeasibleError: no PE count.
    """
    cells = slices.read_fastest(slices.open_slice(source, selection), ("pe",))
    limit = cells["limit"].values.reshape(-1)
    allowed = np.flatnonzero(find_allowed(limit))
    title = slices.write_title(cells, shown=("pe", "strategy"))
    slices.expect_any(allowed, slices.name_reasons(limit))
    counts = cells["pe"].values[allowed].astype(float)
    shown = allowed[np.isin(counts, thin_axis(counts, MOST_BARS))]
    line = cells.isel(pe=shown)
    # Each PE count may have a layout of its own.
    varies = any("pe" in line[dim].dims for dim in Paradl(line).grid.rows)
    parts = [line.isel(pe=[at]) for at in range(line.sizes["pe"])] if varies else [line]
    computed = list(map(_compute_terms, parts))
    terms = {name: np.concatenate([part[name] for part in computed]) for name in computed[0]}
    notes = []
    if cause := slices.name_stop(limit, int(allowed[-1])):
        notes.append(f"ends at {counts[-1]:,.0f}: {cause}")
    if shown.size < allowed.size:
        notes.append(f"{shown.size} of {allowed.size:,} PE counts")
    names = [f"{count:,.0f}" for count in line["pe"].values]
    if (beyond := slices.find_beyond(limit[shown])).any():
        notes.append(f"{slices.BEYOND} from {names[beyond.argmax()]}")
    return Bars(
        f"time of an iteration: {cells['strategy'].item()}, {title}",
        names,
        {name: seconds for name, seconds in terms.items() if (seconds > 0).any()},
        TERM_LOOKS,
        ("time of an iteration", "s"),
        [*_write_times(terms)],
        notes,
        axis="PEs, p",
    )


def _write_times(terms: Mapping[str, Floats]) -> Iterator[str]:
    """Write the time at each PE count, and how much of it is communication."""
    waits = [EVERY_TERM[name].part == "communication" for name in terms]
    for seconds in zip(*terms.values(), strict=True):
        total, waiting = sum(seconds), sum(compress(seconds, waits))
        yield f"{format_quantity(total, 's', digits=3)}, {waiting / total:.0%} comm."


def _compute_terms(line: "xr.Dataset") -> dict[str, Floats]:
    grid = Paradl(line).grid
    keep_programs()
    index = locate_row(grid, {dim: str(line[dim].item()) for dim in LABELS})
    axes = {name: line[name].values.astype(float).reshape(-1) for name in grid.axes}
    case = grid.case(index, axes)
    assert case is not None  # pictures show cells that exist
    answer, shape = answer_expected(case), tuple(values.size for values in axes.values())

    def spread(values: object) -> Floats:
        # The kernels leave out dimensions along which nothing varies.
        return np.broadcast_to(np.asarray(values, float), shape).reshape(-1)

    iterations = spread(answer.iterations)
    return {
        name: spread(seconds) / iterations
        for name, seconds in vars(answer.terms).items()
        if EVERY_TERM[name].part != "hidden"
    }


def describe_memory(source: Source, selection: Selection | None = None) -> Bars:
    """Compute the bars of a slice along its one axis with several values, or of strategies.

    What only lacks memory has a bar, whose text is bold. Many values are thinned out; of many
    layouts the fastest have a bar. InputError: another axis has several values.
    NothingFeasibleError: no bar, however large the memory.
    """
    cells = slices.open_slice(source, selection)
    wide = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
    by = wide[0] if len(wide) == 1 else "strategy" if "strategy" in wide else "pe"
    cells, grid = slices.read_slice(cells, (by,)), Paradl(cells).grid
    limit = cells["limit"].values.reshape(-1)
    exists = (limit & np.uint16(FORBIDS & ~Limit.MEMORY)) == 0
    kept, note = _choose_positions(cells, by, exists)
    slices.expect_any(kept, slices.name_reasons(limit))

    def name_bar(at: int) -> str:
        cell = cells.isel({by: [at]})
        if by in LABELS:
            return str(cell[by].item())
        return slices.write_choice(grid, slices.read_row(grid, cell), [by])

    names = [name_bar(at) for at in kept]
    notes = [note] if note else []
    # Of an axis with too many values for bars, reasons would be too many as well.
    if not note and not exists.all():
        others = np.flatnonzero(~exists).tolist()
        forbidden = {name_bar(at): slices.name_reasons(limit[at]) for at in others}
        notes.append(f"not drawn: {slices.list_by_cause(forbidden)}")
    if beyond := [*compress(names, slices.find_beyond(limit[kept]))]:
        notes.append(f"{slices.BEYOND}: {', '.join(beyond)}")
    measured = [_measure_cell(grid, cells.isel({by: [at]})) for at in kept]
    parts = {
        name: np.array([sizes.get(name, 0.0) for sizes, _ in measured])
        for name in MEMORY_LOOKS
        if any(name in sizes for sizes, _ in measured)
    }
    return Bars(
        f"memory of the fullest PE: {slices.write_title(cells, shown=(by,))}",
        names,
        parts,
        MEMORY_LOOKS,
        ("memory per PE", "B"),
        [format_quantity(sum(sizes.values()), "B", digits=3) for sizes, _ in measured],
        notes,
        [bar for bar, at in enumerate(kept) if int(limit[at]) & Limit.MEMORY],
        [capacity for _, capacity in measured],
    )


def _choose_positions(
    cells: "xr.Dataset", by: str, exists: NDArray[np.bool_]
) -> tuple[list[int], str]:
    """Choose positions along an axis, and say which they are if they are not all."""
    at = np.flatnonzero(exists)
    if by in Paradl(cells).grid.rows and at.size > MOST_LAYOUTS:
        times = Paradl(cells).epoch_time.values.reshape(-1)[at]
        fastest = at[np.argsort(times, kind="stable")[:MOST_LAYOUTS]]
        return fastest.tolist(), f"the {MOST_LAYOUTS} fastest of {at.size:,} {by}s"
    if by == "strategy" or at.size <= MOST_BARS:
        return at.tolist(), ""
    values = cells[by].values[at].astype(float)
    shown = thin_axis(values, MOST_BARS)
    return at[np.isin(values, shown)].tolist(), f"{shown.size} of {at.size:,} values of {by}"


def _measure_cell(grid: Grid, cell: "xr.Dataset") -> tuple[dict[str, float], float]:
    """Measure a cell's memory by part [B], and the capacity of its PE [B]."""
    row = slices.read_row(grid, cell)
    index, axes = locate_row(grid, row), {axis: row[axis] for axis in grid.axes}
    keep_programs()
    return measure_row_parts(grid, row), look_up_capacity(grid, index, axes)


def describe_tornado(source: Source, selection: Selection | None = None) -> Bars:
    """Find the elasticities d log T / d log x of one configuration's time, the steepest first.

    Texts are of the upgrade that was tried. InputError: an axis has several values.
    NothingFeasibleError: the configuration is forbidden.
    """
    cells = slices.read_fastest(slices.open_slice(source, selection), ())
    rows_of_cell = {dim: [cells[dim].item()] for dim in Paradl(cells).grid.rows}
    rows = list_sensitivities(source, {**(selection or {}), **rows_of_cell})
    slices.expect_any(rows, "no allowed configuration; why: paradl explain")
    # The widest bar on top gives the picture its name.
    rows = sorted(rows, key=lambda row: -abs(row["elasticity"]))
    # Nor is what would be thinner than a line.
    least = max(LEAST_SLOPE, LEAST * abs(rows[0]["elasticity"]))
    shown = [row for row in rows if abs(row["elasticity"]) >= least][:MOST_SLOPES]
    rest = len(rows) - len(shown)
    slopes = np.array([row["elasticity"] for row in shown])
    return Bars(
        f"sensitivity of the time of an epoch: {slices.write_title(cells)}",
        [slices.write_axis(row["parameter"]) for row in shown],
        {MORE: np.minimum(slopes, 0), LESS: np.maximum(slopes, 0)},
        SLOPE_LOOKS,
        ("elasticity", ""),
        [
            "" if row["change"] is None else f"{row['upgrade']}: {row['change']:+.1%}"
            for row in shown
        ],
        [SLOPES, *([f"not drawn: {rest} smaller ones"] if rest else [])],
    )
