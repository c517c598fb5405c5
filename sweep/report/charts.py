"""Charts of a report, as Vega-Lite specifications that the page gives their rows.

A chart names the table of its rows and the fields by which the page selects from it; strategies
have the colours of all other pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from sweep.plots.looks import choose_ink, choose_looks

SECONDS = "time of an epoch [s]"
AMOUNTS = alt.Axis(format="~s")


@dataclass(frozen=True)
class Chart:
    """A chart, and the table behind it.

    table: of the report. where: the value that a field of the table must have. columns: fields of
    the table's rows that are listed below the chart, with their heads.
    """

    name: str
    title: str
    meaning: str
    table: str
    columns: dict[str, str]
    spec: dict[str, Any]
    where: dict[str, str]


def make_charts(strategies: Sequence[str], choices: Sequence[str]) -> list[Chart]:
    """Make the charts of a report, in the order of the page.

    choices: axes along which a strategy may choose, such as batch.
    """
    return [
        _rank(strategies),
        _scale(strategies),
        _map(strategies, choices),
        _break_down(),
        _fill(),
        _upgrade(),
        _trade(strategies),
    ]


def _colour(strategies: Sequence[str]) -> alt.Color:
    """Colour strategies as everywhere."""
    looks = choose_looks(strategies)
    scale = alt.Scale(domain=list(looks), range=[look.colour for look in looks.values()])
    return alt.Color("strategy:N", scale=scale, legend=alt.Legend(title=None, orient="bottom"))


def _finish(chart: Any, height: int | alt.Step) -> dict[str, Any]:
    """Complete a chart: as wide as the page, without data of its own."""
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    sized = chart.properties(width="container", height=height, autosize=fit)
    spec: dict[str, Any] = sized.to_dict()
    return spec


ROWS = alt.NamedData("rows")


def _rank(strategies: Sequence[str]) -> Chart:
    """Time of each strategy at its best, with its interval."""
    base = alt.Chart(ROWS).transform_filter("isValid(datum.epoch_time)")
    y = alt.Y("strategy:N", sort=alt.EncodingSortField("rank", op="min"), title=None)
    hover = ["strategy:N", "pe:Q", "batch:Q", alt.Tooltip("epoch_time:Q", format=".4s")]
    scale = alt.Scale(type="log", nice=False, padding=12)
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("epoch_time:Q", title=SECONDS, scale=scale, axis=AMOUNTS),
        y=y,
        color=_colour(strategies).legend(None),
        tooltip=hover,
    )
    whiskers = base.mark_rule(color="gray", strokeWidth=3).encode(
        x=alt.X("epoch_time_p10:Q", scale=scale), x2="epoch_time_p90:Q", y=y
    )
    columns = {
        "rank": "rank",
        "strategy": "strategy",
        "layout": "layout",
        "pe": "PEs",
        "batch": "batch",
        "group_size": "group",
        "segment_count": "segments",
        "epoch_time": "s per epoch",
        "epoch_time_p10": "p10",
        "epoch_time_p90": "p90",
        "memory": "bytes per PE",
        "reason": "infeasible because of",
        "remedy": "feasible with",
    }
    return Chart(
        "ranking",
        "Strategies, each at its best",
        "Time of an epoch; lines: the 80 % interval.",
        "ranking",
        columns,
        _finish(whiskers + dots, alt.Step(24)),
        {},
    )


def _scale(strategies: Sequence[str]) -> Chart:
    """Time over PE counts."""
    hover = ["strategy:N", "pe:Q", "choice:N", alt.Tooltip("time:Q", format=".4s")]
    base = alt.Chart(ROWS).transform_filter("isValid(datum.time)")
    lines = base.mark_line(point={"size": 40}, strokeWidth=2).encode(
        x=alt.X("pe:Q", scale=alt.Scale(type="log", base=2, nice=False), title="PEs"),
        y=alt.Y("time:Q", scale=alt.Scale(type="log", nice=False), title=SECONDS, axis=AMOUNTS),
        color=_colour(strategies),
        strokeDash=alt.condition(
            "indexof(datum.strategy, '+') > 0 || datum.strategy == 'data'",
            alt.value([1, 0]),
            alt.value([6, 3]),
        ),
        detail="strategy:N",
        tooltip=hover,
    )
    return Chart(
        "scaling",
        "How far each strategy scales",
        "Time of an epoch over the number of PEs; dashed: a single replica.",
        "points",
        {
            "strategy": "strategy",
            "pe": "PEs",
            "choice": "choice",
            "time": "s per epoch",
            "memory": "bytes per PE",
            "pe_hours": "PE-hours",
            "reason": "infeasible because of",
        },
        _finish(lines, 380),
        {},
    )


def _map(strategies: Sequence[str], choices: Sequence[str]) -> Chart:
    """The fastest strategy at each PE count and choice."""
    order = alt.EncodingSortField(choices[0], op="min") if choices else None
    winners = (
        alt.Chart(ROWS)
        .transform_filter("isValid(datum.time) && datum.choice != 'best'")
        .transform_window(
            place="row_number()", sort=[alt.SortField("time")], groupby=["pe", "choice"]
        )
        .transform_filter("datum.place == 1")
        .encode(
            x=alt.X("pe:O", title="PEs", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("choice:N", title=None, sort=order),
            tooltip=["strategy:N", "pe:Q", "choice:N", alt.Tooltip("time:Q", format=".4s")],
        )
    )
    inks = {name: choose_ink(look.colour) for name, look in choose_looks(strategies).items()}
    ink = alt.Scale(domain=list(inks), range=list(inks.values()))
    names = winners.mark_text(fontSize=9, limit=48).encode(
        text="strategy:N", color=alt.Color("strategy:N", scale=ink, legend=None)
    )
    tiles = winners.mark_rect(stroke="white").encode(color=_colour(strategies))
    return Chart(
        "map",
        "Which strategy wins where",
        "The fastest strategy at each number of PEs, for each batch or other choice.",
        "points",
        {},
        _finish((tiles + names).resolve_scale(color="independent"), alt.Step(26)),
        {"choice": "*"},
    )


def _break_down() -> Chart:
    """Shares of the terms in the time of each strategy."""
    return _stack(
        "time",
        "Where the time goes",
        "Share of each term in the time of an epoch, of each strategy at its best.",
        alt.X("amount:Q", title=None, stack="normalize", axis=alt.Axis(format="%")),
        "s per epoch",
    )


def _fill() -> Chart:
    """Parts of the memory of each strategy, against the capacity."""
    return _stack(
        "memory",
        "What fills the memory",
        "Bytes per PE, of each strategy at its best; the line is the capacity.",
        alt.X("amount:Q", title="bytes per PE", axis=AMOUNTS),
        "bytes per PE",
        alt.Chart(ROWS).mark_rule(strokeWidth=2, strokeDash=[5, 3]).encode(x="max(capacity):Q"),
    )


def _stack(
    kind: str, title: str, meaning: str, x: alt.X, unit: str, line: alt.Chart | None = None
) -> Chart:
    """Stacked bars of parts, one for each strategy."""
    bars = (
        alt.Chart(ROWS)
        .mark_bar(height=16)
        .encode(
            x=x,
            y=alt.Y("strategy:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
            color=alt.Color(
                "part:N",
                sort=None,
                scale=alt.Scale(scheme="tableau20"),
                legend=alt.Legend(title=None, orient="bottom"),
            ),
            tooltip=["strategy:N", "part:N", alt.Tooltip("amount:Q", format=".4s")],
        )
    )
    return Chart(
        kind,
        title,
        meaning,
        "parts",
        {"strategy": "strategy", "part": "part", "amount": unit},
        _finish(bars if line is None else bars + line, alt.Step(26)),
        {"kind": kind},
    )


def _upgrade() -> Chart:
    """Upgrades of the machine that would pay most, for the best strategy."""
    bars = (
        alt.Chart(ROWS)
        .mark_bar(height=14, color="#0072B2")
        .encode(
            x=alt.X("change:Q", title="change of the time of an epoch", axis=alt.Axis(format="%")),
            y=alt.Y("what:N", title=None, sort=alt.EncodingSortField("change", op="min")),
            tooltip=["parameter:N", "upgrade:N", alt.Tooltip("change:Q", format=".1%")],
        )
        .transform_calculate(what="replace(datum.parameter, /_/g, ' ') + ', ' + datum.upgrade")
    )
    return Chart(
        "upgrades",
        "What to buy",
        "Change of the best strategy's time if one parameter of the machine were better.",
        "upgrades",
        {
            "parameter": "parameter",
            "value": "today [SI]",
            "upgrade": "upgrade",
            "elasticity": "elasticity",
            "change": "change of time",
        },
        _finish(bars, alt.Step(22)),
        {},
    )


def _trade(strategies: Sequence[str]) -> Chart:
    """Time against PE-hours; the front, and its knee."""
    x = alt.X("pe_hours:Q", scale=alt.Scale(type="log", nice=False), title="PE-hours of an epoch")
    y = alt.Y("time:Q", scale=alt.Scale(type="log", nice=False), title=SECONDS, axis=AMOUNTS)
    base = alt.Chart(ROWS).transform_filter("isValid(datum.time)")
    points = base.mark_point(filled=True, opacity=0.7, size=45).encode(
        x=x,
        y=y,
        color=_colour(strategies),
        tooltip=["strategy:N", "pe:Q", "batch:Q", "time:Q", "pe_hours:Q"],
    )
    front = (
        base.transform_filter("isValid(datum.front)")
        .mark_line(color="gray", interpolate="step-after")
        .encode(x=x, y=y, order="time:Q")
    )
    knee = (
        base.transform_filter("datum.front == 'knee'")
        .transform_calculate(label="'knee: ' + datum.strategy + ', ' + datum.pe + ' PEs'")
        .mark_text(align="left", dx=9, dy=-9, fontWeight="bold")
        .encode(x=x, y=y, text="label:N")
    )
    return Chart(
        "trade",
        "Time against cost",
        "Configurations at each number of PEs; the line joins those that none beats in both.",
        "points",
        {
            "strategy": "strategy",
            "pe": "PEs",
            "time": "s per epoch",
            "pe_hours": "PE-hours",
            "front": "",
        },
        _finish(front + points + knee, 340),
        {"choice": "best"},
    )
