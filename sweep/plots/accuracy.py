"""Accuracy: predicted over measured time of runs over p, one panel per model and data set.

All panels share their axes, so that runs of milliseconds and of minutes compare. Runs that the
calibration was fitted to are hollow, since their accuracy is not what to expect of others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator

from paradl.grids.reading.errors import format_count
from paradl.sweep.plots.figures import (
    MOST_TICKS,
    add_legend,
    make_figure,
    scale_counts,
    set_tick_sizes,
)
from paradl.sweep.plots.looks import Look, choose_looks, make_hollow_key, styled
from paradl.sweep.text.visible import escape_lines

Row = Mapping[str, Any]

NUMBERS = ["p", "predicted_total", "measured_total", "accuracy_total", "p10", "p90"]
MOST_COLUMNS = 3
ROWS = 12  # lines of text that a panel is high
TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.4, 2, 3, 5, 10)
CLOSE: Any = {"facecolor": "grey", "alpha": 0.3, "linewidth": 0}


@styled
def draw_accuracy(rows: Sequence[Row]) -> Figure:
    """Draw the rows of a comparison; the title has the mean accuracy of the total time."""
    table = pd.DataFrame(rows)
    table[NUMBERS] = table[NUMBERS].astype(float)
    table["fitted"] = table["fitted"].eq(True)  # None: unknown
    runs = table[(table["predicted_total"] > 0) & (table["measured_total"] > 0)]
    places = list(dict.fromkeys(zip(table["model"], table["dataset"], strict=True)))
    looks = choose_looks(list(table["strategy"].unique()))
    columns = min(len(places), MOST_COLUMNS)
    lines = -(-len(places) // columns)
    rest = len(table) - len(runs)
    ratios = runs["predicted_total"] / runs["measured_total"]
    beyond = int((~ratios.between(TICKS[0], TICKS[-1])).sum())
    missing = [(rest, "without a prediction"), (beyond, f"beyond a factor of {TICKS[-1]}")]
    reasons = [f"{format_count(count, 'run')} {reason}" for count, reason in missing if count]
    note = f"not drawn: {', '.join(reasons)}" if reasons else ""
    shares, fitted, mean = runs["accuracy_total"].dropna(), int(runs["fitted"].sum()), ""
    if len(shares):
        mean = f": {shares.mean():.0%} on average of {format_count(len(shares), 'run')}"
        told = {0: "", len(runs): ", all fitted"}
        mean += told.get(fitted, f", {fitted:,} of them fitted")
    figure = make_figure(f"accuracy of predicted times{mean}", note, ROWS * lines)
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    # Panels beside each other have room for fewer ticks.
    scale_counts(grid[0, 0], table["p"].to_numpy(), MOST_TICKS - columns)
    for number, (axes, place) in enumerate(zip(grid.flat, places, strict=False)):
        here = (runs["model"] == place[0]) & (runs["dataset"] == place[1])
        _draw_panel(axes, runs[here], looks)
        axes.set_title(escape_lines("\n".join(place)), loc="left")
        # Shared axes have labels in the last row alone, which may have fewer panels.
        is_lowest = number + columns >= len(places)
        axes.tick_params(labelbottom=is_lowest)
        axes.set_xlabel("PEs, p" if is_lowest else "")
    for axes in grid.flat[len(places) :]:
        axes.set_visible(False)
    # Panels share their axes, so one scales all: logarithmically, around 1.
    first = grid[0, 0]
    first.set_yscale("log")
    first.set_yticks(TICKS)
    first.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    first.yaxis.set_minor_locator(NullLocator())
    ends = np.array([axes.dataLim.intervaly for axes in grid.flat[: len(places)]])
    low, high = ends.clip(TICKS[0], TICKS[-1]).T
    # At least the band of 10 %, with room beyond it.
    first.set_ylim(min(0.85, low.min() / 1.05), max(1.18, high.max() * 1.05))
    figure.supylabel("predicted / measured time of an iteration")
    add_legend(figure, [*_make_keys(runs, looks)])
    return figure


def _draw_panel(axes: Axes, runs: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw the ratio of each run, with its 80 % interval."""
    set_tick_sizes(axes)
    # As accuracies are counted: relative to the measured time.
    axes.axhspan(0.9, 1.1, **CLOSE)
    ratios = runs[["predicted_total", "p10", "p90"]].div(runs["measured_total"], axis=0)
    table = runs[["strategy", "fitted", "p"]].join(ratios)
    for (strategy, fitted), mine in table.groupby(["strategy", "fitted"], sort=False):
        look = looks[str(strategy)].marks
        face = "none" if fitted else look["color"]
        axes.plot(mine["p"], mine["predicted_total"], **look, markerfacecolor=face)
        axes.vlines(mine["p"], mine["p10"], mine["p90"], color=look["color"], linewidth=0.8)
    axes.grid()


def _make_keys(runs: pd.DataFrame, looks: Mapping[str, Look]) -> list[Artist]:
    drawn = {*runs["strategy"]}
    keys: list[Artist] = [
        Line2D([], [], label=look.name, **look.marks)
        for name, look in looks.items()
        if name in drawn
    ]
    if runs["p10"].notna().any():
        keys.append(Line2D([], [], color="grey", marker="|", linestyle="", label="80 % interval"))
    if runs["fitted"].any():
        keys.append(make_hollow_key("fitted run"))
    return [*keys, Patch(label="within 10 %", **CLOSE)]
