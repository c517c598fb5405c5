"""Axes, colours and tooltips of a report's charts."""

from collections.abc import Sequence

import altair as alt

from paradl.sweep.answers.objectives import Goal
from paradl.sweep.plots.looks import choose_looks

# The page sets these as it shows rows: ticks that suit them, and the entries of the legend, which
# would otherwise list all strategies and terms that there are.
SIGNALS = ("times", "numbers", "shown")
# Vega has no format for a duration in units that one would say.
WRITE_TIME = (
    "datum.value < 0.001 ? format(datum.value * 1e6, '~r') + ' us' :"
    " datum.value < 1 ? format(datum.value * 1000, '~r') + ' ms' :"
    " datum.value < 60 ? format(datum.value, '~r') + ' s' :"
    " datum.value < 3600 ? format(datum.value / 60, '~r') + ' min' :"
    " datum.value < 86400 ? format(datum.value / 3600, '~r') + ' h' :"
    " format(datum.value / 86400, ',~r') + ' d'"
)
TIMES = alt.Axis(values=alt.expr("times"), labelExpr=WRITE_TIME, labelOverlap="greedy")
WRITE_NUMBER = "format(datum.value, datum.value < 1000 ? '~r' : '~s')"
NUMBERS = alt.Axis(values=alt.expr("numbers"), labelExpr=WRITE_NUMBER, labelOverlap="greedy")
USUAL = alt.Axis(labelExpr=WRITE_NUMBER, labelOverlap="greedy")  # with Vega's own ticks
# A label has room beside the next one.
FEW = alt.expr("max(2, width / 90)")
SHARES = alt.Axis(format="%", tickCount=FEW)
BYTES = alt.Axis(labelExpr="format(datum.value / 1e9, ',~r') + ' GB'", tickCount=FEW)
LEGEND = alt.Legend(title=None, orient="bottom", values=alt.expr("shown"))

# What each objective is called on an axis, and how it is written there.
GOALS: dict[Goal, tuple[str, alt.Axis]] = {
    "epoch_time": ("time of an epoch", TIMES),
    "train_time": ("time to the target", TIMES),
    "pe_hours": ("PE-hours", NUMBERS),
    "cost": ("cost", NUMBERS),
}
EPOCH = GOALS["epoch_time"][0]


def colour_strategies(strategies: Sequence[str]) -> alt.Color:
    """Colour strategies as everywhere."""
    looks = choose_looks(strategies)
    scale = alt.Scale(domain=list(looks), range=[look.colour for look in looks.values()])
    return alt.Color("strategy:N", scale=scale, legend=LEGEND)


HEADS = {
    "name": "configuration",
    "pe": "PEs",
    "written": "amount",
    "held": "memory",
    "pe_hours": "PE-hours",
}


def show_fields(*names: str) -> list[alt.Tooltip]:
    """Show fields of what is under the pointer, if they are there."""
    return [
        alt.Tooltip(f"{name}:N", title=HEADS.get(name, name.replace("_", " "))) for name in names
    ]
