"""A placement as a timeline: a lane a device, its operators, and the messages between lanes.

Colours are those of Okabe and Ito, which the colour-blind tell apart; shades only tell one operator
from the next.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep.show.comparison import format_percent
from sweep.show.plots.figures import make_figure, save_figure
from sweep.show.visible import escape_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito, Color Universal Design, 2008: blue, orange, and their paler halves; vermilion.
FORWARD, BACKWARD = ("#0072B2", "#5BA4CF"), ("#E69F00", "#F3C65F")
MESSAGE = "#D55E00"
WIDTH, LANE, AROUND = 8.0, 0.5, 0.9  # [inch], 1,200 pixels wide
LOW, HIGH = 0.52, 0.3  # [inch] below and above the lanes
BAR = 0.62  # of a lane
SMALL, NORMAL = 8, 9  # [pt]
# With more messages their lines would hide what they join.
MOST_LINES = 400


def plot_placement(answer: Mapping[str, Any], path: Path) -> None:
    """Draw what `place` answers into a file; its suffix chooses the format.

    RunError: matplotlib is not installed. InputError: a file that cannot be written.
    """
    height = AROUND + LANE * answer["devices"]
    figure = make_figure(WIDTH, height)
    axes = figure.add_axes((0.07, LOW / height, 0.91, (height - LOW - HIGH) / height))
    for device in range(answer["devices"]):
        _draw_lane(axes, answer, device)
    _draw_messages(axes, answer)
    _label_axes(axes, answer)
    save_figure(figure, path)


def _draw_lane(axes: "Axes", answer: Mapping[str, Any], device: int) -> None:
    """Draw the operators of a device, one beside the other in two shades."""
    rows = [row for row in answer["operators"] if row["device"] == device]
    for name, colours in (("forward", FORWARD), ("backward", BACKWARD)):
        ordered = sorted(rows, key=lambda row: row[f"{name}_start"])
        spans = [
            (1e3 * row[f"{name}_start"], 1e3 * (row[f"{name}_end"] - row[f"{name}_start"]))
            for row in ordered
        ]
        axes.broken_barh(
            [span for span in spans if span[1] > 0],
            (device - BAR / 2, BAR),
            facecolors=colours,
            linewidth=0,
        )


def _draw_messages(axes: "Axes", answer: Mapping[str, Any]) -> None:
    """Draw a line from where a message leaves to where it comes."""
    lanes = {pe: device for device, pe in enumerate(answer["pes"])}
    if len(answer["messages"]) > MOST_LINES:
        return
    for each in answer["messages"]:
        begin, end = lanes[each["from"]], lanes[each["to"]]
        side = BAR / 2 if end > begin else -BAR / 2
        axes.plot(
            (1e3 * each["sent"], 1e3 * each["come"]),
            (begin + side, end - side),
            color=MESSAGE,
            linewidth=0.7,
            zorder=3,
        )


def _label_axes(axes: "Axes", answer: Mapping[str, Any]) -> None:
    """Lanes by their PE, time in ms, the title and the legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    axes.set_xlim(0, 1e3 * answer["step_time"])
    axes.set_ylim(answer["devices"] - 0.5, -0.5)
    axes.set_yticks(range(answer["devices"]), [f"PE {pe}" for pe in answer["pes"]])
    axes.set_xlabel("ms from the beginning of the step", fontsize=NORMAL, labelpad=1, loc="left")
    axes.tick_params(labelsize=SMALL, length=3)
    axes.spines[["top", "right", "left"]].set_visible(False)
    # Names are no formulas, whatever dollars are in them.
    axes.set_title(_make_title(answer), fontsize=NORMAL, loc="left", parse_math=False)
    handles: list[Any] = [
        Patch(facecolor=FORWARD[0], label="forward"),
        Patch(facecolor=BACKWARD[0], label="backward"),
    ]
    if len(answer["messages"]) <= MOST_LINES:
        handles.append(Line2D([], [], color=MESSAGE, linewidth=0.7, label="messages"))
    axes.figure.legend(
        handles=handles, fontsize=SMALL, frameon=False, loc="lower right", ncols=3, borderpad=0
    )


def _make_title(answer: Mapping[str, Any]) -> str:
    """What is placed where, what it gains, and how good that is."""
    proof = "proven" if answer["proven"] else f"gap {format_percent(answer['gap'])}"
    return escape_lines(
        f"{answer['graph']} on {answer['system']}: a step of {1e3 * answer['step_time']:.4g} ms, "
        f"{answer['speedup']:.3f} times as fast as one device ({proof})"
    )
