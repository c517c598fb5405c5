"""Stacked bars, one below the other, with their totals on the right."""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from paradl.kernels.names.arrays import Floats
from paradl.sweep.plots.figures import Picture, make_axes, scale_unit
from paradl.sweep.plots.looks import EDGE, PartLooks, name_part, wrap_name

MOST_BARS = 20
LEAST = 0.002  # of the longest bar: a part that is always thinner would be only a line
BAR = 1.3  # height of a bar with its gap, in lines of text
FEWEST = 5  # bars; the figure is not lower for fewer


def split_parts(parts: Mapping[str, Floats]) -> tuple[dict[str, Floats], list[str]]:
    """Return the parts that can be seen, and a note on those that are too thin, or none."""
    least = LEAST * float(np.sum([*parts.values()], axis=0).max())
    seen = {name: sizes for name, sizes in parts.items() if sizes.max() > least}
    thin = [name_part(name) for name in parts if name not in seen and parts[name].any()]
    return seen, [f"too small to see: {', '.join(thin)}"] if thin else []


def make_keys(parts: Iterable[str], looks: PartLooks) -> list[Patch]:
    """Make the legend's entries of parts."""
    return [Patch(label=name_part(name), **looks[name], **EDGE) for name in parts]


def draw_bars(
    title: str,
    note: str,
    names: Sequence[str],
    parts: Mapping[str, Floats],
    looks: PartLooks,
    quantity: tuple[str, str],
) -> tuple[Picture, Axes]:
    """Draw a stacked bar for each name, the first on top. quantity: what they measure, its unit."""
    lines = [*map(wrap_name, names)]
    # A name of two lines needs more room than a bar, so bars stand apart as their names need.
    rooms = np.array([max(1.0, 1.1 / BAR * (1 + line.count("\n"))) for line in lines])
    rows = np.cumsum(rooms) - rooms / 2 - 0.5
    height = BAR * max(rooms.sum(), FEWEST)
    figure, axes = make_axes(title, note, max(height, len(parts) + 2), exactly=True)
    left = np.zeros(len(names))
    for name, sizes in parts.items():
        axes.barh(rows, sizes, 0.7, left, **looks[name], **EDGE)
        left = left + sizes
    axes.set_yticks(rows, lines)
    # From the bottom to the top: the first bar is the uppermost.
    axes.set_ylim(rooms.sum() - 0.4, -0.6)
    axes.use_sticky_edges = False  # room beyond bars on both sides of zero
    if left.min() >= 0:
        axes.set_xlim(left=0)
    label, unit = quantity
    if unit:
        scale_unit(axes.xaxis, label, float(max(left)), unit)
    else:
        axes.set_xlabel(label)
    # Names and totals leave less room than the locator assumes.
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10)))
    return figure, axes


def write_totals(axes: Axes, totals: Sequence[str], bold: Iterable[int] = ()) -> None:
    """Write a text to the right of each bar, some of them in bold."""
    right = axes.secondary_yaxis("right")
    right.set_yticks(axes.get_yticks(), list(totals))
    right.spines[:].set_visible(False)
    small, colour = mpl.rcParams["font.size"], mpl.rcParams["text.color"]
    right.tick_params(length=0, labelsize=small, labelcolor=colour)
    for row in bold:
        right.get_yticklabels()[row].set_fontweight("bold")
