"""Curves of strategies over PE counts: their looks, 80 % bands and names in the legend."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from grids.models.layers import Floats
from sweep.plots.looks import Look

FEW = 16  # points with a marker each; of more, only some: a caterpillar else
APART = 0.1  # of the axes' diagonal, from one marker to the next


def draw_curve(
    axes: Axes,
    look: Look,
    pe: Floats,
    values: Floats,
    band: tuple[Floats, Floats] | None = None,
    hollow: NDArray[np.bool_] | None = None,
) -> Line2D:
    """The curve, drawn through its points; hollow: where its markers are so."""
    if band is not None:
        axes.fill_between(pe, *band, color=look.colour, alpha=0.18, linewidth=0, zorder=1)
    marked: Any = None if len(pe) <= FEW else APART
    shared: dict[str, Any] = {"zorder": 3, "clip_on": False, "markevery": marked}
    (line,) = axes.plot(pe, values, **look.line, **shared)
    if hollow is not None and hollow.any():
        marks = look.line | {"linestyle": "", "markerfacecolor": "white"}
        axes.plot(pe[hollow], values[hollow], **marks, **shared)
    return line


def name_curve(line: Line2D, name: str, remark: str | None) -> None:
    """Give a curve its name in the legend, with a remark in a line below."""
    line.set_label(f"{name}\n{remark}" if remark else name)


def make_hollow_key(meaning: str) -> Line2D:
    """The legend's entry of hollow markers."""
    look: dict[str, Any] = {
        "color": "grey",
        "marker": "o",
        "markerfacecolor": "white",
        "linestyle": "",
    }
    return Line2D([], [], label=meaning, **look)
