"""Collectives as measured, and as an imported machine predicts them: bus bandwidth by size."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from paradl.sweep.plots.figures import add_legend, make_axes
from paradl.sweep.plots.looks import styled

MARKERS = "osDv^<>pPXh*"


@styled
def draw_collectives(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw the rows of logs as points, and the fit as lines: m / time over message sizes m."""
    title, lines = "bandwidth of collectives: points as measured, lines as fitted", 2 * len(rows)
    figure, axes = make_axes(title, rows=lines)
    keys = []
    for number, row in enumerate(rows):
        order = np.argsort(row["sizes"])
        sizes = np.array(row["sizes"])[order]
        style: dict[str, Any] = {
            "color": f"C{number % 10}",  # matplotlib's cycle has ten
            "marker": MARKERS[number % len(MARKERS)],
        }
        label = f"{row['collective']},\n{row['pes']} PEs"
        measured = sizes / np.array(row["measured"])[order]
        keys += axes.plot(sizes, measured, linestyle="", label=label, **style)
        axes.plot(sizes, sizes / np.array(row["predicted"])[order], color=style["color"])
    axes.set(xscale="log", yscale="log", xlabel="message size", ylabel="size / time")
    axes.xaxis.set_major_formatter(EngFormatter("B"))
    axes.yaxis.set_major_formatter(EngFormatter("B/s"))
    axes.grid()
    add_legend(figure, keys)
    return figure
