"""A placement as a timeline: one lane per device with its operators, and messages between lanes."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from sweep.plots.figures import Size
from sweep.plots.passes import BACKWARD, FORWARD
from sweep.plots.timeline import Timeline, TimeSpan, draw_timeline
from sweep.show.columns import format_percent


def draw_placement(answer: Mapping[str, Any], size: Size = "page", dark: bool = False) -> Figure:
    """Draw the answer of `place`."""
    proof = "proven" if answer["proven"] else f"gap {format_percent(answer['gap'])}"
    lanes = {pe: device for device, pe in enumerate(answer["pes"])}
    spans = [
        TimeSpan(
            row["device"], kind, row[f"{kind}_start"], row[f"{kind}_end"], shade=0.4 * (number % 2)
        )
        for number, row in enumerate(answer["operators"])
        for kind in (FORWARD, BACKWARD)
        if row[f"{kind}_end"] > row[f"{kind}_start"]
    ]
    messages = [
        ((row["sent"], lanes[row["from"]]), (row["come"], lanes[row["to"]]))
        for row in answer["messages"]
    ]
    timeline = Timeline(
        f"{answer['graph']} on {answer['system']}: a step of {1e3 * answer['step_time']:.4g} ms, "
        f"{answer['speedup']:.3f} times as fast as one device ({proof})",
        [f"PE {pe}" for pe in answer["pes"]],
        spans,
        answer["step_time"],
        "two shades of a colour separate operators",
        messages,
    )
    return draw_timeline(timeline, size, dark)
