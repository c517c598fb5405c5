"""Speed-up of the whole training over PEs: data parallelism, hybrids, and their crossovers.

After the figures of Pal et al., IEEE Micro 2019. Bands are 80 % intervals; hollow markers mean that
the global batch lies outside the measured ones.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from paradl.sweep.plots.figures import add_legend, format_tick, make_axes, scale_counts
from paradl.sweep.plots.looks import Look, choose_looks, draw_curve, make_hollow_key, styled

Row = Mapping[str, Any]


@styled
def draw_hybrid(answer: Mapping[str, Any]) -> Figure:
    """Draw the answer of `hybrid`: one curve per strategy, its crossover in the legend."""
    names = list(dict.fromkeys(row["strategy"] for row in answer["rows"]))
    looks = choose_looks(names)
    where = f" on {answer['system']}" if answer["system"] else ""
    run = f"{answer['model']}, {answer['dataset']}{where}, b = {answer['batch']:,}"
    title, rows = f"speed-up of training: {run}", 3 * len(names) + 1
    figure, axes = make_axes(title, "bands: 80 % intervals", rows)
    lines = {name: _draw_line(axes, answer, name, looks[name]) for name in names}
    for crossover in answer["crossovers"]:
        # Data's best time, the other opponent, may be at another PE count: no curves cross there.
        if crossover["against"] == "same" and crossover["pe"] is not None:
            line, pe = lines[crossover["strategy"]], crossover["pe"]
            marked: Any = {"color": line.get_color(), "linestyle": ":", "zorder": 2}
            axes.vlines(pe, 0, crossover["speedup"], **marked)
            line.set_label(f"{line.get_label()}\nwins from {pe:,}")
    scale_counts(axes, np.array([row["pe"] for row in answer["rows"]], float))
    # As the axis of PEs, so that a speed-up of p is a straight line.
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: format_tick(value))
    axes.set_ylabel("speed-up to the target over one PE")
    axes.grid()
    keys = [*lines.values()]
    if any(row["extrapolated"] for row in answer["rows"]):
        keys.append(make_hollow_key("batch outside\nthe measured range"))
    add_legend(figure, keys)
    return figure


def _draw_line(axes: Axes, answer: Mapping[str, Any], name: str, look: Look) -> Line2D:
    rows = [row for row in answer["rows"] if row["strategy"] == name and row["speedup"]]
    pe, values, low, high = (
        np.array([row[key] for row in rows], float) for key in ("pe", "speedup", "p10", "p90")
    )
    hollow = np.array([row["extrapolated"] for row in rows], bool)
    line = draw_curve(axes, look, pe, values, hollow, (low, high))
    line.set_label(look.name)
    return line
