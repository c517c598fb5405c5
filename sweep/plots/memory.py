"""Memory of the fullest PE by part, against the capacity of a PE."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator

from grids.grid import LABELS, Grid
from grids.reading.units import format_quantity
from kernels.names.flags import FORBIDS, Limit
from kernels.oracle.answer import settle_choices
from sweep.cases.memory_parts import list_memory_parts
from sweep.cases.rejection import look_up_capacity
from sweep.cases.row_cases import find_row_cell
from sweep.cells.selection import Selection, locate_row
from sweep.cells.source import Source
from sweep.cube.derived_quantities import Paradl
from sweep.plots.figures import SCALES, Size, add_legend, make_axes, use_style
from sweep.plots.slices import (
    BEYOND,
    build_case,
    expect_any,
    find_beyond,
    list_by_cause,
    name_reasons,
    open_slice,
    read_slice,
    write_title,
)

if TYPE_CHECKING:
    import xarray as xr

MOST_BARS = 20


@dataclass(frozen=True)
class Bar:
    """Memory of the fullest PE by part, for a strategy or a PE count; capacity: of a PE [B]."""

    name: str
    parts: Mapping[str, float]
    capacity: float
    fits: bool

    @property
    def total(self) -> float:
        """Sum of the parts [B]."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class MemoryBars:
    """Bars of strategies (by: strategy) or of PE counts (by: pe).

    forbidden: names without a bar, with the reason; what only lacks memory has a bar. beyond: bars
    whose global batch is larger than the data set.
    """

    title: str
    by: str
    bars: tuple[Bar, ...]
    forbidden: Mapping[str, str] = field(default_factory=dict)
    beyond: tuple[str, ...] = ()


def describe_memory(source: Source, selection: Selection | None = None) -> MemoryBars:
    """Compute the bars of a slice with several strategies, or with several PE counts.

    More than 20 PE counts are thinned out on a logarithmic scale. InputError: another axis has
    several values. NothingFeasibleError: no bar, however large the memory.
    """
    cells = open_slice(source, selection)
    by: Literal["strategy", "pe"] = "strategy" if cells.sizes["strategy"] > 1 else "pe"
    cells = read_slice(cells, (by,))
    single = (cells.isel({by: [position]}) for position in _spread_positions(cells, by))
    named = {_name_bar(cell, by): cell for cell in single}
    existing = {name: cell for name, cell in named.items() if _exists(cell)}
    expect_any(existing, name_reasons(cells["limit"].values))
    grid = Paradl(cells).grid
    return MemoryBars(
        write_title(cells, shown=(by,)),
        by,
        tuple(_make_bar(grid, name, cell) for name, cell in existing.items()),
        {
            name: name_reasons(cell["limit"].values)
            for name, cell in named.items()
            if name not in existing
        },
        tuple(name for name, cell in existing.items() if find_beyond(cell["limit"].values).any()),
    )


def _exists(cell: "xr.Dataset") -> bool:
    """Return whether nothing but memory forbids a cell."""
    return not int(cell["limit"].item()) & FORBIDS & ~Limit.MEMORY


def _spread_positions(cells: "xr.Dataset", by: str) -> list[int]:
    """Choose all positions, or PE counts evenly spread on a logarithmic scale."""
    if by == "strategy" or cells.sizes["pe"] <= MOST_BARS:
        return list(range(cells.sizes[by]))
    flags = cells["limit"].values.reshape(-1) & np.uint16(FORBIDS & ~Limit.MEMORY)
    existing = np.flatnonzero(flags == 0)
    if not existing.size:
        return [0]
    logs = np.log(cells["pe"].values[existing].astype(float))
    nearest = np.abs(logs - np.linspace(logs[0], logs[-1], MOST_BARS)[:, None]).argmin(axis=1)
    return sorted(set(existing[nearest].tolist()))


def _name_bar(cell: "xr.Dataset", by: str) -> str:
    return str(cell["strategy"].item()) if by == "strategy" else f"p = {cell['pe'].item():,.0f}"


def _make_bar(grid: Grid, name: str, cell: "xr.Dataset") -> Bar:
    row = {dim: str(cell[dim].item()) for dim in LABELS}
    index = locate_row(grid, row)
    axes = {axis: float(cell[axis].item()) for axis in grid.axes}
    if grid.strategies[index[3]].laid:
        parts = find_row_cell(grid, row | axes).measure_parts()
    else:
        case = settle_choices(build_case(grid, cell))
        parts = list_memory_parts(grid, case, index[2])["memory_parts"]
    fits = not int(cell["limit"].item()) & Limit.MEMORY
    return Bar(name, parts, look_up_capacity(grid, index, axes), fits)


LONGEST = 30  # letters in a line of a bar's name: settings of layouts would leave no room for bars


def _wrap_name(name: str) -> str:
    """Break a long name of a strategy between its settings."""
    lines = [""]
    for part in name.replace(":", ":\0").replace(",", ",\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > LONGEST:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


# Greys and hatches, since colours mean strategies.
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "activations": {"facecolor": "#404040"},
    "parameters": {"facecolor": "#8A8A8A"},
    "weights": {"facecolor": "#8A8A8A"},
    "gradients": {"facecolor": "#B8B8B8", "hatch": "/////"},
    "optimizer": {"facecolor": "#DEDEDE", "hatch": "....."},
    # Of layouts of transformers alone.
    "states": {"facecolor": "#DEDEDE", "hatch": "ooooo"},
    "recomputed": {"facecolor": "#606060", "hatch": "\\\\\\\\\\"},
    "gathered": {"facecolor": "#A0A0A0", "hatch": "xxxxx"},
    "embedding": {"facecolor": "#C8C8C8"},
    "logits": {"facecolor": "#F0F0F0", "hatch": "-----"},
    "reserved": {"facecolor": "#FFFFFF"},
}
EDGE: Mapping[str, Any] = {"edgecolor": "black", "linewidth": 0.5}
BAR = 1.3  # height of a bar with its gap, in lines of text
FEWEST = 6  # bars; the figure is not lower for fewer, since the legend needs the height


def draw_memory(memory: MemoryBars, size: Size = "page") -> Figure:
    """Draw bars, the first at the top, with their totals on the right."""
    bars = memory.bars
    with use_style(size):
        title = f"memory of the fullest PE: {memory.title}"
        height = SCALES[size].measure_rows(BAR * max(len(bars), FEWEST))
        figure, axes = make_axes(size, title, _write_note(memory), height)
        keys: list[Any] = [*_draw_parts(axes, bars), _draw_capacity(axes, bars[0].capacity)]
        axes.set_yticks(range(len(bars)), [_wrap_name(bar.name) for bar in bars])
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.xaxis.set_major_formatter(EngFormatter("B"))
        if max(len(bar.name) for bar in bars) > LONGEST:
            axes.xaxis.set_major_locator(MaxNLocator(5))  # names leave less room than it assumes
        axes.set_xlabel("memory per PE")
        _write_totals(axes, bars)
        add_legend(figure, keys)
    return figure


def _draw_parts(axes: Axes, bars: Sequence[Bar]) -> Iterator[BarContainer]:
    """Draw the parts of bars side by side; yield each part for the legend."""
    left = np.zeros(len(bars))
    for name, look in LOOKS.items():
        sizes = np.array([bar.parts.get(name, 0.0) for bar in bars])
        if sizes.any():
            yield axes.barh(range(len(bars)), sizes, 0.7, left, label=name, **EDGE, **look)
            left = left + sizes


def _write_note(memory: MemoryBars) -> str:
    parts = [f"not drawn: {list_by_cause(memory.forbidden)}"] if memory.forbidden else []
    if memory.beyond:
        parts.append(f"{BEYOND}: {', '.join(memory.beyond)}")
    return "; ".join(parts)


def _draw_capacity(axes: Axes, capacity: float) -> Line2D:
    axes.axvline(capacity, color="white", zorder=3)  # sets the black line off from dark bars
    label = f"capacity\n{_format_bytes(capacity)}"
    return axes.axvline(capacity, color="black", linestyle=(0, (3, 1.5)), label=label, zorder=3)


def _write_totals(axes: Axes, bars: Sequence[Bar]) -> None:
    """Write the total of each bar, in bold if it exceeds the capacity."""
    totals = axes.secondary_yaxis("right")
    totals.set_yticks(range(len(bars)), [_format_bytes(bar.total) for bar in bars])
    totals.spines[:].set_visible(False)
    totals.tick_params(length=0, labelsize=axes.yaxis.label.get_fontsize())
    for label, bar in zip(totals.get_yticklabels(), bars, strict=True):
        label.set_fontweight("normal" if bar.fits else "bold")


def _format_bytes(size: float) -> str:
    return format_quantity(size, "B", digits=3)
