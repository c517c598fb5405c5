"""Pictures of Pal et al., IEEE Micro 2019: speed-up of trainings over PEs, operators on devices.

Of speed-ups, bands are 80 % intervals; hollow markers mean that the global batch lies outside the
measured ones.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from paradl.sweep.plots.figures import add_legend, format_tick, make_axes, scale_counts, scale_unit
from paradl.sweep.plots.looks import (
    BLUE,
    ORANGE,
    Look,
    choose_looks,
    draw_curve,
    make_hollow_key,
    mix,
    styled,
)
from paradl.sweep.text.columns import format_percent

Row = Mapping[str, Any]

PASSES = {"forward": BLUE, "backward": ORANGE}
MESSAGE = "#D55E00"  # Okabe and Ito's vermilion
LANE = 2.2  # height of a device in lines of text
BAR = 0.7  # of a lane
MOST_LINES = 400  # messages; more lines would hide the operators


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


@styled
def draw_placement(answer: Mapping[str, Any]) -> Figure:
    """Draw the answer of `place`: a lane for each device, the first on top."""
    proof = "proven" if answer["proven"] else f"gap {format_percent(answer['gap'])}"
    title = (
        f"{answer['graph']} on {answer['system']}: a step of {1e3 * answer['step_time']:.4g} ms, "
        f"{answer['speedup']:.3f} times as fast as one device ({proof})"
    )
    pes, step = answer["pes"], answer["step_time"]
    note = "two shades of a colour separate operators"
    figure, axes = make_axes(title, note, LANE * len(pes), exactly=True)
    axes.set(xlim=(0, step), ylim=(len(pes) - 0.5, -0.5))
    axes.set_yticks(range(len(pes)), [f"PE {pe}" for pe in pes])
    scale_unit(axes.xaxis, "time since the iteration began", step, "s")
    operators = [*enumerate(answer["operators"])]
    for (name, colour), lane, odd in product(PASSES.items(), range(len(pes)), (0, 1)):
        rows = [row for at, row in operators if row["device"] == lane and at % 2 == odd]
        bars = [(row[f"{name}_start"], row[f"{name}_end"] - row[f"{name}_start"]) for row in rows]
        look: Any = {"facecolor": mix(colour, 0.4 * odd), "linewidth": 0.2, "edgecolor": "white"}
        axes.broken_barh(bars, (lane - BAR / 2, BAR), **look)
    keys: list[Artist] = [Patch(label=name, facecolor=colour) for name, colour in PASSES.items()]
    if 0 < len(answer["messages"]) <= MOST_LINES:
        keys.append(_draw_messages(axes, answer))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    add_legend(figure, keys)
    return figure


def _draw_messages(axes: Axes, answer: Mapping[str, Any]) -> Line2D:
    """Draw a line per message, from the edge of a lane to that of another; return their key."""
    lanes, lines = {pe: lane for lane, pe in enumerate(answer["pes"])}, []
    for row in answer["messages"]:
        sender, receiver = lanes[row["from"]], lanes[row["to"]]
        side = BAR / 2 if receiver > sender else -BAR / 2
        lines.append([(row["sent"], sender + side), (row["come"], receiver - side)])
    axes.add_collection(LineCollection(lines, colors=MESSAGE, linewidths=0.7, zorder=3))
    return Line2D([], [], color=MESSAGE, linewidth=0.7, label="messages")
