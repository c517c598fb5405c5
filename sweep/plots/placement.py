"""A placement as a timeline: one lane per device with its operators, and messages between lanes.

The two shades of a colour mean nothing; they separate neighbouring operators.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sweep.plots.figures import make_axes, use_style
from sweep.plots.looks import BLUE, ORANGE
from sweep.show.columns import format_percent

FORWARD, BACKWARD = (BLUE, "#5BA4CF"), (ORANGE, "#F3C65F")
MESSAGE = "#D55E00"  # Okabe and Ito's vermilion
WIDTH, LANE, AROUND = 8.0, 0.5, 0.9  # [inch], 1,200 pixels wide
BAR = 0.62  # of a lane
MOST_LINES = 400  # messages; more lines would hide the operators


def draw_placement(answer: Mapping[str, Any]) -> Figure:
    """Draw the answer of `place`."""
    with use_style("page"):
        height = AROUND + LANE * answer["devices"]
        figure, axes = make_axes("page", _make_title(answer), height=height, width=WIDTH)
        for device in range(answer["devices"]):
            _draw_lane(axes, answer, device)
        keys: list[Artist] = [
            Patch(facecolor=FORWARD[0], label="forward"),
            Patch(facecolor=BACKWARD[0], label="backward"),
        ]
        if len(answer["messages"]) <= MOST_LINES:
            keys.append(_draw_messages(axes, answer))
        axes.set_xlim(0, 1e3 * answer["step_time"])
        axes.set_ylim(answer["devices"] - 0.5, -0.5)
        axes.set_yticks(range(answer["devices"]), [f"PE {pe}" for pe in answer["pes"]])
        axes.set_xlabel("ms since the step began", loc="left")
        axes.spines["left"].set_visible(False)
        figure.legend(handles=keys, loc="lower right", ncols=3, borderpad=0)
    return figure


def _draw_lane(axes: Axes, answer: Mapping[str, Any], device: int) -> None:
    rows = [row for row in answer["operators"] if row["device"] == device]
    for name, colours in (("forward", FORWARD), ("backward", BACKWARD)):
        ends = sorted((1e3 * row[f"{name}_start"], 1e3 * row[f"{name}_end"]) for row in rows)
        spans = [(start, end - start) for start, end in ends if end > start]
        axes.broken_barh(spans, (device - BAR / 2, BAR), facecolors=colours, linewidth=0)


def _draw_messages(axes: Axes, answer: Mapping[str, Any]) -> Line2D:
    """Draw a line per message, from its sender to its receiver; return their legend key."""
    lanes = {pe: device for device, pe in enumerate(answer["pes"])}
    lines = []
    for message in answer["messages"]:
        begin, end = lanes[message["from"]], lanes[message["to"]]
        side = BAR / 2 if end > begin else -BAR / 2
        lines.append([(1e3 * message["sent"], begin + side), (1e3 * message["come"], end - side)])
    axes.add_collection(LineCollection(lines, colors=MESSAGE, linewidths=0.7, zorder=3))
    return Line2D([], [], color=MESSAGE, linewidth=0.7, label="messages")


def _make_title(answer: Mapping[str, Any]) -> str:
    proof = "proven" if answer["proven"] else f"gap {format_percent(answer['gap'])}"
    return (
        f"{answer['graph']} on {answer['system']}: a step of {1e3 * answer['step_time']:.4g} ms, "
        f"{answer['speedup']:.3f} times as fast as one device ({proof})"
    )
