"""Stacked bars, one below the other: of terms of time, parts of memory, or elasticities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.arrays import Floats
from paradl.sweep.plots.figures import add_legend, make_axes, scale_unit
from paradl.sweep.plots.looks import EDGE, PartLooks, name_part, shorten_names, styled, wrap_name

MOST_BARS = 20
LEAST = 0.002  # of the longest bar: a part that is always thinner would be only a line
HEIGHT = 1.3  # of a bar with its gap, in lines of text
FEWEST = 5  # bars; the figure is not lower for fewer


@dataclass(frozen=True)
class Bars:
    """Stacked bars, the first on top, each with a text behind it.

    parts: sizes [bar] by part. quantity: what sizes measure, and its unit. bold: bars whose text is
    bold. capacities [bar]: at which a line is drawn; empty: none.
    """

    title: str
    names: Sequence[str]
    parts: Mapping[str, Floats]
    looks: PartLooks
    quantity: tuple[str, str]
    texts: Sequence[str]
    notes: Sequence[str] = ()
    bold: Sequence[int] = ()
    capacities: Sequence[float] = ()
    axis: str = ""

    @property
    def totals(self) -> Floats:
        """Length of each bar."""
        totals: Floats = np.sum([*self.parts.values()], axis=0)
        return totals


@styled
def draw_bars(bars: Bars) -> Figure:
    """Draw bars with their texts on the right; the note names parts that are too thin to see."""
    least = LEAST * float(np.abs(bars.totals).max())
    parts = {name: sizes for name, sizes in bars.parts.items() if np.abs(sizes).max() > least}
    thin = [
        name_part(name) for name, sizes in bars.parts.items() if name not in parts and any(sizes)
    ]
    notes = [*bars.notes, *([f"too small to see: {', '.join(thin)}"] if thin else [])]
    lines = [wrap_name(name) for name in shorten_names(bars.names).values()]
    # A name of two lines needs more room than a bar, so bars stand apart as their names need.
    rooms = np.array([max(1.0, 1.1 / HEIGHT * (1 + line.count("\n"))) for line in lines])
    rows = np.cumsum(rooms) - rooms / 2 - 0.5
    height = max(HEIGHT * max(rooms.sum(), FEWEST), len(parts) + 2)
    figure, axes = make_axes(bars.title, "; ".join(notes), height, exactly=True)
    left = np.zeros(len(lines))
    for name, sizes in parts.items():
        axes.barh(rows, sizes, 0.7, left, **bars.looks[name], **EDGE)
        left = left + sizes
    axes.set_yticks(rows, lines)
    # From the bottom to the top: the first bar is the uppermost.
    axes.set_ylim(rooms.sum() - 0.4, -0.6)
    axes.use_sticky_edges = False  # room beyond bars on both sides of zero
    if left.min() < 0:
        axes.axvline(0, color="grey", linewidth=0.6, zorder=0)
    else:
        axes.set_xlim(left=0)
    label, unit = bars.quantity
    if unit:
        scale_unit(axes.xaxis, label, float(left.max()), unit)
    else:
        axes.set_xlabel(label)
    # Names and texts leave less room than the locator assumes.
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10)))
    axes.set_ylabel(bars.axis)
    _write_texts(axes, bars)
    keys: list[Artist] = [
        Patch(label=name_part(name), **bars.looks[name], **EDGE) for name in parts
    ]
    if bars.capacities:
        keys.append(_draw_capacities(axes, bars.capacities))
    add_legend(figure, keys)
    return figure


def _write_texts(axes: Axes, bars: Bars) -> None:
    """Write the text of each bar to its right."""
    right = axes.secondary_yaxis("right")
    right.set_yticks(axes.get_yticks(), list(bars.texts))
    right.spines[:].set_visible(False)
    small, colour = mpl.rcParams["font.size"], mpl.rcParams["text.color"]
    right.tick_params(length=0, labelsize=small, labelcolor=colour)
    for row in bars.bold:
        right.get_yticklabels()[row].set_fontweight("bold")


def _draw_capacities(axes: Axes, capacities: Sequence[float]) -> Artist:
    """Draw a line through all bars, or one at each bar if their machines differ."""
    ink, paper = mpl.rcParams["text.color"], mpl.rcParams["axes.facecolor"]
    largest = max(capacities)
    # The line is in the picture even if all bars are short.
    axes.set_xlim(right=max(axes.get_xlim()[1], 1.05 * largest))
    dashes: Any = {"color": ink, "linestyle": (0, (3, 1.5)), "zorder": 3}
    # Below the dashes a line in the colour of the paper sets them off from bars.
    if min(capacities) == largest:
        axes.axvline(largest, color=paper, zorder=3)
        label = f"capacity\n{format_quantity(largest, 'B', digits=3)}"
        return axes.axvline(largest, label=label, **dashes)
    rows = np.array(axes.get_yticks())
    axes.vlines(capacities, rows - 0.45, rows + 0.45, color=paper, zorder=3)
    return axes.vlines(capacities, rows - 0.45, rows + 0.45, label="capacity", **dashes)
