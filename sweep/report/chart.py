"""A chart of a report: its specification, axes, colours, tooltips, and the table that it draws."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from paradl.sweep.answers.mapping import Row
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


# Heads of columns and of tooltips; others are the fields themselves.
HEADS = {
    "name": "configuration",
    "pe": "PEs",
    "written": "amount",
    "held": "memory",
    "group_size": "group",
    "segment_count": "segments",
    "epoch_time": "s per epoch",
    "epoch_time_p10": "p10",
    "epoch_time_p90": "p90",
    "time": "s per epoch",
    "memory": "bytes per PE",
    "pe_hours": "PE-hours",
    "reason": "infeasible because",
    "remedy": "feasible with",
    "largest_pe": "feasible up to PEs",
    "stop": "then",
    "efficient_pe": "at least 50 % efficient up to",
    "change": "change of time",
}


def list_heads(*names: str, **others: str) -> dict[str, str]:
    """Return the head of each field; others: heads of this table alone."""
    heads = HEADS | others
    return {name: heads.get(name, name.replace("_", " ")) for name in names}


def show_fields(*names: str) -> list[alt.Tooltip]:
    """Show fields of what is under the pointer, if they are there."""
    return [alt.Tooltip(f"{name}:N", title=head) for name, head in list_heads(*names).items()]


ROWS = alt.NamedData("rows")


@dataclass(frozen=True)
class Chart:
    """A chart, and the table behind it; without a specification a table alone.

    table: of the report. columns: fields of the table's rows that are listed below the chart, with
    their heads. where: the value that a field of the table must have. height: in pixels; of a chart
    with a band for each value of the field `bands`, that of one band. order: entries of the legend.
    """

    name: str
    title: str
    meaning: str
    table: str
    columns: dict[str, str]
    spec: Row | None = None
    where: Row = field(default_factory=dict)
    height: int = 0
    bands: str = ""
    order: list[str] = field(default_factory=list)


def specify(picture: Any) -> Row:
    """Return the specification of a picture, without data of its own, as wide as the page."""
    spec: Row = picture.to_dict(validate=False)
    # Not by methods of the picture, each of which would copy all of it.
    return spec | {
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "params": [*spec.get("params", ()), *({"name": name, "value": []} for name in SIGNALS)],
    }
