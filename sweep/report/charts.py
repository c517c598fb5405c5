"""Charts of a report, as Vega-Lite specifications that the page gives their rows.

A chart names the table of its rows and the fields by which the page selects from it; strategies
have the colours of all other pictures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.objectives import Goal
from paradl.sweep.plots.looks import (
    BLUE,
    MEMORY_LOOKS,
    TERM_LOOKS,
    PartLooks,
    choose_ink,
    choose_looks,
    name_part,
)
from paradl.sweep.report.report import Report
from paradl.sweep.text.sentences import Asked

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


# Logarithmic axes; the second has room for whole dots at both ends.
LOG = alt.Scale(type="log", nice=False)
LOG_OF_DOTS = alt.Scale(type="log", nice=False, padding=12)
FEASIBLE = {"feasible": True}
BY_RANK = alt.Y("strategy:N", sort=alt.EncodingSortField("rank", op="min"), title=None)


# Title and meaning of each chart.
TITLES = {
    "ranking": ("Strategies, each at its best", "Lines: the 80 % interval."),
    "losers": ("What is ruled out", "Strategies without a feasible configuration here."),
    "scaling": (
        "How far each strategy scales",
        "Time of an epoch over the number of PEs; dashed: a single replica.",
    ),
    "limits": ("Where scaling ends", "Of each strategy's best batch and other choices."),
    "map": (
        "What wins where",
        "The fastest configuration at each number of PEs, for each batch or other choice.",
    ),
    "time": (
        "Where the time goes",
        "Share of each term in the time of an epoch, of each strategy at its best.",
    ),
    "memory": (
        "What fills the memory",
        "Bytes per PE, of each strategy at its best; the line is the capacity.",
    ),
    "upgrades": (
        "What to buy",
        "Change of the best strategy's time if one parameter of the machine were better.",
    ),
    "trade": (
        "Time against cost",
        "Configurations at each number of PEs; the line joins those that none beats in both, "
        "the ring is its knee.",
    ),
}


def make_charts(report: Report) -> list[Chart]:
    """Make the charts and tables of a report, in the order of the page."""
    question = report.question
    # Altair would validate each part of each chart as it is made, and each chart again at its end.
    with debug_mode(False):
        charts = [*([_ask(question, report.strategies)] if question else []), *_list_charts(report)]
    return [chart for chart in charts if not question or chart.name != question.replaces]


def _list_charts(report: Report) -> Iterator[Chart]:
    strategies, goal = report.strategies, report.goal
    ranged = any(row["value_p10"] is not None for row in report.ranking)
    title, meaning = TITLES["ranking"]
    heads = list_heads(
        *("rank", "name", "pe", "batch", "global_batch", "group_size", "segment_count"),
        *(() if goal == "epoch_time" else ("value",)),
        *("epoch_time", "epoch_time_p10", "epoch_time_p90", "memory", "pe_hours"),
        value=GOALS[goal][0],
    )
    dots = specify(_rank(strategies, goal, ranged))
    texts = title, meaning if ranged else ""
    yield Chart("ranking", *texts, "ranking", heads, dots, FEASIBLE, height=24, bands="strategy")
    heads = list_heads("strategy", "reason", "remedy")
    yield Chart("losers", *TITLES["losers"], "ranking", heads, where={"feasible": False})
    heads = list_heads("name", "pe", "choice", "time", "memory", "pe_hours", "reason")
    counts = sorted({row["pe"] for row in report.points})
    curves, where = specify(_scale(strategies, counts)), {"choice": "chosen"}
    yield Chart("scaling", *TITLES["scaling"], "points", heads, curves, where, 380, "", strategies)
    heads = list_heads("name", "batch", "largest_pe", "stop", "efficient_pe")
    yield Chart("limits", *TITLES["limits"], "ranking", heads, where=FEASIBLE)
    tiles = specify(_map(strategies, report.choices))
    where = {"choice": "each" if report.choices else "best"}
    yield Chart("map", *TITLES["map"], "points", {}, tiles, where, 26, "choice", strategies)
    shares = alt.X("amount:Q", title=None, stack="normalize", axis=SHARES)
    # Work comes before what limits it, and communication last.
    terms = sorted(
        TERM_LOOKS,
        key=lambda name: (EVERY_TERM[name].part != "compute", EVERY_TERM[name].kind != "work"),
    )
    yield _stack("time", shares, "s per epoch", {name: TERM_LOOKS[name] for name in terms})
    amounts = alt.X("amount:Q", title="memory per PE", axis=BYTES)
    yield _stack("memory", amounts, "bytes per PE", MEMORY_LOOKS, _draw_capacity())
    names = ("parameter", "value", "upgrade", "elasticity", "change")
    heads, bars = list_heads(*names, value="today [SI]"), specify(_upgrade())
    yield Chart("upgrades", *TITLES["upgrades"], "upgrades", heads, bars, {}, 22, "parameter")
    heads, front = (
        list_heads("name", "pe", "time", "pe_hours", "front"),
        specify(_trade(strategies)),
    )
    best = {"choice": "best"}
    yield Chart("trade", *TITLES["trade"], "points", heads, front, best, 340, "", strategies)


def _ask(question: Asked, strategies: list[str]) -> Chart:
    """The answer to the question that leads the page: dots of strategies, or a front."""
    (x, heading), y, columns = question.x, question.y, dict(question.columns)
    base = alt.Chart(ROWS).transform_filter(f"isValid(datum.{x})")
    across = alt.X(f"{x}:Q", title=heading, scale=LOG_OF_DOTS, axis=USUAL)
    along: Any = alt.Y("strategy:N", title=None)
    if y:
        along = alt.Y(f"{y[0]}:Q", title=y[1], scale=LOG_OF_DOTS, axis=USUAL)
    picture: Any = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=across,
        y=along,
        color=colour_strategies(strategies).legend(LEGEND if y else None),
        tooltip=[alt.Tooltip(f"{name}:N", title=head) for name, head in columns.items()],
    )
    if y:
        line = base.mark_line(color="gray", interpolate="step-before", aria=False)
        picture = line.encode(x=across, y=along, order=f"{y[0]}:Q") + picture
    texts, (height, bands) = (
        (question.title, question.meaning),
        (340, "") if y else (24, "strategy"),
    )
    return Chart("asked", *texts, "asked", columns, specify(picture), {}, height, bands, strategies)


def _rank(strategies: Sequence[str], goal: Goal, ranged: bool) -> Any:
    """Objective of each strategy at its best; ranged: with intervals."""
    words, axis = GOALS[goal]
    base = alt.Chart(ROWS).transform_filter("isValid(datum.value)")
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("value:Q", title=words, scale=LOG_OF_DOTS, axis=axis),
        y=BY_RANK,
        color=colour_strategies(strategies).legend(None),
        tooltip=show_fields("name", "pe", "batch", "written"),
    )
    # Without the values of intervals, Vega would warn of a scale without an extent.
    whiskers = base.mark_rule(color="gray", strokeWidth=3, aria=False).encode(
        x=alt.X("value_p10:Q", scale=LOG_OF_DOTS), x2="value_p90:Q", y=BY_RANK
    )
    return whiskers + dots if ranged else dots


def _scale(strategies: Sequence[str], counts: Sequence[float]) -> Any:
    """Time over PE counts; counts: those that have a tick."""
    ticks = alt.Axis(values=list(counts), format=",", labelOverlap="greedy")
    # Each PE count has its tick, so the axis need not end at a round number.
    scale = alt.Scale(type="log", base=2, nice=False)
    base = alt.Chart(ROWS).transform_filter("isValid(datum.time)")
    # Dashes as in other pictures (Look): solid for data and its hybrids.
    return base.mark_line(point={"size": 40}, strokeWidth=2, aria=False).encode(
        x=alt.X("pe:Q", scale=scale, title="PEs", axis=ticks),
        y=alt.Y("time:Q", scale=LOG, title=EPOCH, axis=TIMES),
        color=colour_strategies(strategies),
        strokeDash=alt.condition(
            "indexof(datum.strategy, '+') > 0 || datum.strategy == 'data'",
            alt.value([1, 0]),
            alt.value([6, 3]),
        ),
        detail="strategy:N",
        tooltip=show_fields("name", "pe", "choice", "written"),
    )


def _map(strategies: Sequence[str], choices: Sequence[str]) -> Any:
    """The fastest configuration at each PE count and choice."""
    order = alt.EncodingSortField(choices[0], op="min") if choices else None
    winners = (
        alt.Chart(ROWS)
        .transform_filter("isValid(datum.time)")
        .encode(
            # Upright: Vega-Lite turns the labels of such an axis by 90 degrees.
            x=alt.X("pe:O", title="PEs", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("choice:N", title=None, sort=order),
            tooltip=show_fields("name", "pe", "choice", "written"),
        )
    )
    # Black `data` and pale `serial` need different inks.
    inks = {name: choose_ink(look.colour) for name, look in choose_looks(strategies).items()}
    ink = alt.Scale(domain=list(inks), range=list(inks.values()))
    fitted = alt.expr("bandwidth('x') - 4")
    # The page keeps the winners, breaks their names into lines that fit a cell, and makes the cells
    # as high.
    names = winners.mark_text(
        fontSize=10, lineHeight=12, limit=fitted, lineBreak="\n", aria=False
    ).encode(text="cell:N", color=alt.Color("strategy:N", scale=ink, legend=None))
    tiles = winners.mark_rect(stroke="white").encode(color=colour_strategies(strategies))
    # Layers share a scale of colours otherwise, and tiles and names differ in theirs.
    return (tiles + names).resolve_scale(color="independent")


def _draw_capacity() -> Any:
    """A line at the capacity, with its name."""
    capacity = alt.Chart(ROWS).transform_aggregate(capacity="max(capacity)")
    line = capacity.mark_rule(strokeWidth=2, strokeDash=[5, 3], aria=False)
    name = capacity.transform_calculate(
        label="'capacity ' + format(datum.capacity / 1e9, ',.3~r') + ' GB'"
    ).mark_text(align="right", dx=-4, dy=-8, baseline="bottom", aria=False)
    return line.encode(x="capacity:Q") + name.encode(x="capacity:Q", y=alt.value(0), text="label:N")


def _stack(kind: str, x: alt.X, unit: str, looks: PartLooks, line: Any = None) -> Chart:
    """Stacked bars of parts, one for each strategy, in the colours and order of other pictures."""
    colours = {name_part(name): look["facecolor"] for name, look in looks.items()}
    names = list(colours)
    scale = alt.Scale(domain=names, range=list(colours.values()))
    bars = (
        alt.Chart(ROWS)
        .transform_calculate(place=f"indexof({names!r}, datum.part)")
        .mark_bar(height=16, stroke="black", strokeWidth=0.3)
        .encode(
            x=x,
            y=BY_RANK,
            order="place:Q",
            color=alt.Color("part:N", scale=scale, legend=LEGEND),
            tooltip=show_fields("name", "part", "written"),
        )
    )
    heads = list_heads("name", "part", "amount", amount=unit)
    spec = specify(bars if line is None else bars + line)
    return Chart(kind, *TITLES[kind], "parts", heads, spec, {"kind": kind}, 26, "strategy", names)


def _upgrade() -> Any:
    """Upgrades of the machine that would pay most, for the best strategy."""
    return (
        alt.Chart(ROWS)
        .mark_bar(height=14, color=BLUE)
        .encode(
            x=alt.X("change:Q", title="change of the time of an epoch", axis=SHARES),
            y=alt.Y("what:N", title=None, sort=alt.EncodingSortField("change", op="min")),
            tooltip=["parameter:N", "upgrade:N", alt.Tooltip("change:Q", format=".1%")],
        )
        .transform_calculate(what="replace(datum.parameter, /_/g, ' ') + ', ' + datum.upgrade")
    )


def _trade(strategies: Sequence[str]) -> Any:
    """Time against PE-hours; the front, and its knee."""
    x = alt.X("pe_hours:Q", scale=LOG, title="PE-hours of an epoch", axis=NUMBERS)
    y = alt.Y("time:Q", scale=LOG, title=EPOCH, axis=TIMES)
    base = alt.Chart(ROWS).transform_filter("isValid(datum.time)").encode(x=x, y=y)
    points = base.mark_point(filled=True, opacity=0.7, size=45).encode(
        color=colour_strategies(strategies),
        tooltip=show_fields("name", "pe", "batch", "written", "pe_hours"),
    )
    # At a cost between two points nothing is faster than the slower one. From the fastest point
    # on, the line first goes to the time of the next, then to its cost.
    front = base.transform_filter("isValid(datum.front)").mark_line(
        color="gray", interpolate="step-before", aria=False
    )
    knee = base.transform_filter("datum.front == 'knee'").mark_point(
        size=260, strokeWidth=2.5, color="black", aria=False
    )
    return front.encode(order="time:Q") + points + knee
