"""Collectives as measured, and as an imported machine predicts them: bus bandwidth by size."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sweep.plots.figures import Size, make_axes, use_style


def draw_collectives(rows: Sequence[dict[str, Any]], size: Size = "page") -> Figure:
    """The figure: points are rows of logs, lines are the fit; m / time over message sizes m."""
    with use_style(size):
        figure, axes = make_axes(
            size, "Collectives: points as measured, lines as fitted", "size over time, by size"
        )
        for number, row in enumerate(rows):
            order = np.argsort(row["sizes"])
            sizes = np.array(row["sizes"])[order]
            color, label = f"C{number % 10}", f"{row['collective']}, {row['pes']} PEs"
            measured = sizes / np.array(row["measured"])[order]
            axes.plot(sizes, measured, "o", color=color, label=label)
            axes.plot(sizes, sizes / np.array(row["predicted"])[order], "-", color=color)
        axes.set(xscale="log", yscale="log", xlabel="size [B]", ylabel="size / time [B/s]")
        axes.grid(True)
        axes.legend()
    return figure
