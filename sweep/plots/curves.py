"""Curves of strategies over PE counts: their looks, markers and 80 % bands."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from grids.models.layers import Floats
from sweep.plots.looks import Look

FEW = 16  # points with a marker each; with more of them a curve looks like a caterpillar
APART = 0.1  # of the axes' diagonal, from one marker to the next


def draw_curve(
    axes: Axes,
    look: Look,
    pe: Floats,
    values: Floats,
    hollow: NDArray[np.bool_],
    band: tuple[Floats, Floats] | None = None,
) -> Line2D:
    """The curve, drawn through its points; hollow: where its markers are so; band: its ends."""
    if band is not None:
        axes.fill_between(pe, *band, color=look.colour, alpha=0.18, linewidth=0, zorder=1)
    marked: Any = None if len(pe) <= FEW else APART
    shared: dict[str, Any] = {"zorder": 3, "clip_on": False, "markevery": marked}
    (line,) = axes.plot(pe, values, **look.line, **shared)
    if hollow.any():
        marks = look.line | {"linestyle": "", "markerfacecolor": "white"}
        axes.plot(pe[hollow], values[hollow], **marks, **shared)
    return line


def make_hollow_key(meaning: str) -> Line2D:
    """The legend's entry of hollow markers."""
    return Line2D([], [], color="grey", marker="o", mfc="white", linestyle="", label=meaning)
