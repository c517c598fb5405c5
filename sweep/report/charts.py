"""Charts of a report, as Vega-Lite specifications that the page gives their rows.

A chart names the table of its rows and the fields by which the page selects from it; strategies
have the colours of all other pictures.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from paradl.kernels.names.layout_terms import EVERY_TERM
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
from paradl.sweep.report.chart import (
    BYTES,
    EPOCH,
    GOALS,
    LEGEND,
    NUMBERS,
    ROWS,
    SHARES,
    TIMES,
    USUAL,
    Chart,
    colour_strategies,
    finish,
    show_fields,
)
from paradl.sweep.report.report import Report
from paradl.sweep.text.sentences import Asked


def make_charts(report: Report) -> list[Chart]:
    """Make the charts and tables of a report, in the order of the page."""
    strategies, ranking = report.strategies, report.ranking
    ranged = any(row["value_p10"] is not None for row in ranking)
    counts = sorted({row["pe"] for row in report.points})
    # Altair would validate each part of each chart as it is made, and each chart again at its end.
    question, replaced = report.question, report.question.replaces if report.question else ""
    with debug_mode(False):
        charts = [
            *([_ask(question, strategies)] if question else []),
            _rank(strategies, report.goal, ranged),
            _list_losers(),
            _scale(strategies, counts),
            _limit(),
            _map(strategies, report.choices),
            _break_down(),
            _fill(),
            _upgrade(),
            _trade(strategies),
        ]
    return [chart for chart in charts if chart.name != replaced]


def _ask(question: Asked, strategies: Sequence[str]) -> Chart:
    """The answer to the question that leads the page: dots of strategies, or a front."""
    (x, heading), y = question.x, question.y
    title, meaning, columns = question.title, question.meaning, dict(question.columns)
    base = alt.Chart(ROWS).transform_filter(f"isValid(datum.{x})")
    scale = alt.Scale(type="log", nice=False, padding=12)
    across = alt.X(f"{x}:Q", title=heading, scale=scale, axis=USUAL)
    along: Any = alt.Y("strategy:N", title=None)
    if y:
        along = alt.Y(f"{y[0]}:Q", title=y[1], scale=scale, axis=USUAL)
    chart: Any = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=across,
        y=along,
        color=colour_strategies(strategies).legend(LEGEND if y else None),
        tooltip=[alt.Tooltip(f"{name}:N", title=head) for name, head in columns.items()],
    )
    if y:
        line = base.mark_line(color="gray", interpolate="step-before", aria=False)
        chart = line.encode(x=across, y=along, order=f"{y[0]}:Q") + chart
    more = {"height": 340} if y else {"height": 24, "bands": "strategy"}
    order = list(strategies)
    return finish(chart, "asked", title, meaning, "asked", columns, order=order, **more)


def _rank(strategies: Sequence[str], goal: Goal, ranged: bool) -> Chart:
    """Objective of each strategy at its best; ranged: with intervals."""
    title, meaning = "Strategies, each at its best", "Lines: the 80 % interval." if ranged else ""
    words, axis = GOALS[goal]
    base = alt.Chart(ROWS).transform_filter("isValid(datum.value)")
    y = alt.Y("strategy:N", sort=alt.EncodingSortField("rank", op="min"), title=None)
    # Room for whole dots at both ends of the axis.
    scale = alt.Scale(type="log", nice=False, padding=12)
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("value:Q", title=words, scale=scale, axis=axis),
        y=y,
        color=colour_strategies(strategies).legend(None),
        tooltip=show_fields("name", "pe", "batch", "written"),
    )
    # Without the values of intervals, Vega would warn of a scale without an extent.
    whiskers = base.mark_rule(color="gray", strokeWidth=3, aria=False).encode(
        x=alt.X("value_p10:Q", scale=scale), x2="value_p90:Q", y=y
    )
    columns = {
        "rank": "rank",
        "name": "configuration",
        "pe": "PEs",
        "batch": "batch",
        "global_batch": "global batch",
        "group_size": "group",
        "segment_count": "segments",
        **({} if goal == "epoch_time" else {"value": words}),
        "epoch_time": "s per epoch",
        "epoch_time_p10": "p10",
        "epoch_time_p90": "p90",
        "memory": "bytes per PE",
        "pe_hours": "PE-hours",
    }
    more: Any = {"where": {"feasible": True}, "height": 24, "bands": "strategy"}
    chart = whiskers + dots if ranged else dots
    return finish(chart, "ranking", title, meaning, "ranking", columns, **more)


def _list_losers() -> Chart:
    """Strategies that are infeasible, with what would let them in."""
    columns = {"strategy": "strategy", "reason": "because", "remedy": "feasible with"}
    title, meaning = "What is ruled out", "Strategies without a feasible configuration here."
    return Chart("losers", title, meaning, "ranking", columns, where={"feasible": False})


def _scale(strategies: Sequence[str], counts: Sequence[float]) -> Chart:
    """Time over PE counts; counts: those that have a tick."""
    title = "How far each strategy scales"
    meaning = "Time of an epoch over the number of PEs; dashed: a single replica."
    base = alt.Chart(ROWS).transform_filter("isValid(datum.time)")
    ticks = alt.Axis(values=list(counts), format=",", labelOverlap="greedy")
    # Each PE count has its tick, so the axis need not end at a round number.
    scale = alt.Scale(type="log", base=2, nice=False)
    # Dashes as in other pictures (Look): solid for data and its hybrids.
    lines = base.mark_line(point={"size": 40}, strokeWidth=2, aria=False).encode(
        x=alt.X("pe:Q", scale=scale, title="PEs", axis=ticks),
        y=alt.Y("time:Q", scale=alt.Scale(type="log", nice=False), title=EPOCH, axis=TIMES),
        color=colour_strategies(strategies),
        strokeDash=alt.condition(
            "indexof(datum.strategy, '+') > 0 || datum.strategy == 'data'",
            alt.value([1, 0]),
            alt.value([6, 3]),
        ),
        detail="strategy:N",
        tooltip=show_fields("name", "pe", "choice", "written"),
    )
    columns = {
        "name": "configuration",
        "pe": "PEs",
        "choice": "choice",
        "time": "s per epoch",
        "memory": "bytes per PE",
        "pe_hours": "PE-hours",
        "reason": "infeasible because",
    }
    more: Any = {"where": {"choice": "chosen"}, "height": 380, "order": list(strategies)}
    return finish(lines, "scaling", title, meaning, "points", columns, **more)


def _limit() -> Chart:
    """How far strategies scale, and what stops them."""
    columns = {
        "name": "configuration",
        "batch": "batch",
        "largest_pe": "feasible up to PEs",
        "stop": "then",
        "efficient_pe": "at least 50 % efficient up to",
    }
    title, meaning = "Where scaling ends", "Of each strategy's best batch and other choices."
    return Chart("limits", title, meaning, "ranking", columns, where={"feasible": True})


def _map(strategies: Sequence[str], choices: Sequence[str]) -> Chart:
    """The fastest configuration at each PE count and choice."""
    title = "What wins where"
    meaning = "The fastest configuration at each number of PEs, for each batch or other choice."
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
    both = (tiles + names).resolve_scale(color="independent")
    more: Any = {"where": {"choice": "each" if choices else "best"}, "order": list(strategies)}
    return finish(both, "map", title, meaning, "points", {}, height=26, bands="choice", **more)


def _break_down() -> Chart:
    """Shares of the terms in the time of each strategy."""
    return _stack(
        "time",
        "Where the time goes",
        "Share of each term in the time of an epoch, of each strategy at its best.",
        alt.X("amount:Q", title=None, stack="normalize", axis=SHARES),
        "s per epoch",
        {name: TERM_LOOKS[name] for name in sorted(TERM_LOOKS, key=_rank_term)},
    )


def _fill() -> Chart:
    """Parts of the memory of each strategy, against the capacity."""
    capacity = alt.Chart(ROWS).transform_aggregate(capacity="max(capacity)")
    line = capacity.mark_rule(strokeWidth=2, strokeDash=[5, 3], aria=False)
    name = capacity.transform_calculate(
        label="'capacity ' + format(datum.capacity / 1e9, ',.3~r') + ' GB'"
    ).mark_text(align="right", dx=-4, dy=-8, baseline="bottom", aria=False)
    return _stack(
        "memory",
        "What fills the memory",
        "Bytes per PE, of each strategy at its best; the line is the capacity.",
        alt.X("amount:Q", title="memory per PE", axis=BYTES),
        "bytes per PE",
        MEMORY_LOOKS,
        line.encode(x="capacity:Q") + name.encode(x="capacity:Q", y=alt.value(0), text="label:N"),
    )


def _stack(
    kind: str,
    title: str,
    meaning: str,
    x: alt.X,
    unit: str,
    looks: PartLooks,
    line: alt.LayerChart | None = None,
) -> Chart:
    """Stacked bars of parts, one for each strategy, in the colours and order of other pictures."""
    colours = {name_part(name): look["facecolor"] for name, look in looks.items()}
    names = list(colours)
    bars = (
        alt.Chart(ROWS)
        .transform_calculate(place=f"indexof({names!r}, datum.part)")
        .mark_bar(height=16, stroke="black", strokeWidth=0.3)
        .encode(
            x=x,
            y=alt.Y("strategy:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
            order="place:Q",
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=names, range=list(colours.values())),
                legend=LEGEND,
            ),
            tooltip=show_fields("name", "part", "written"),
        )
    )
    columns = {"name": "configuration", "part": "part", "amount": unit}
    more: Any = {"where": {"kind": kind}, "height": 26, "bands": "strategy", "order": names}
    chart = bars if line is None else bars + line
    return finish(chart, kind, title, meaning, "parts", columns, **more)


def _rank_term(name: str) -> tuple[bool, bool]:
    """Rank work before what limits it, and communication last."""
    return EVERY_TERM[name].part != "compute", EVERY_TERM[name].kind != "work"


def _upgrade() -> Chart:
    """Upgrades of the machine that would pay most, for the best strategy."""
    title = "What to buy"
    meaning = "Change of the best strategy's time if one parameter of the machine were better."
    bars = (
        alt.Chart(ROWS)
        .mark_bar(height=14, color=BLUE)
        .encode(
            x=alt.X("change:Q", title="change of the time of an epoch", axis=SHARES),
            y=alt.Y("what:N", title=None, sort=alt.EncodingSortField("change", op="min")),
            tooltip=["parameter:N", "upgrade:N", alt.Tooltip("change:Q", format=".1%")],
        )
        .transform_calculate(what="replace(datum.parameter, /_/g, ' ') + ', ' + datum.upgrade")
    )
    columns = {
        "parameter": "parameter",
        "value": "today [SI]",
        "upgrade": "upgrade",
        "elasticity": "elasticity",
        "change": "change of time",
    }
    more: Any = {"height": 22, "bands": "parameter"}
    return finish(bars, "upgrades", title, meaning, "upgrades", columns, **more)


def _trade(strategies: Sequence[str]) -> Chart:
    """Time against PE-hours; the front, and its knee."""
    title = "Time against cost"
    meaning = (
        "Configurations at each number of PEs; the line joins those that none beats in both, "
        "the ring is its knee."
    )
    scale = alt.Scale(type="log", nice=False)
    x = alt.X("pe_hours:Q", scale=scale, title="PE-hours of an epoch", axis=NUMBERS)
    y = alt.Y("time:Q", scale=scale, title=EPOCH, axis=TIMES)
    base = alt.Chart(ROWS).transform_filter("isValid(datum.time)")
    points = base.mark_point(filled=True, opacity=0.7, size=45).encode(
        x=x,
        y=y,
        color=colour_strategies(strategies),
        tooltip=show_fields("name", "pe", "batch", "written", "pe_hours"),
    )
    # At a cost between two points nothing is faster than the slower one. From the fastest point
    # on, the line first goes to the time of the next, then to its cost.
    front = (
        base.transform_filter("isValid(datum.front)")
        .mark_line(color="gray", interpolate="step-before", aria=False)
        .encode(x=x, y=y, order="time:Q")
    )
    knee = (
        base.transform_filter("datum.front == 'knee'")
        .mark_point(size=260, strokeWidth=2.5, color="black", aria=False)
        .encode(x=x, y=y)
    )
    columns = {
        "name": "configuration",
        "pe": "PEs",
        "time": "s per epoch",
        "pe_hours": "PE-hours",
        "front": "front",
    }
    more: Any = {"where": {"choice": "best"}, "height": 340, "order": list(strategies)}
    return finish(front + points + knee, "trade", title, meaning, "points", columns, **more)
