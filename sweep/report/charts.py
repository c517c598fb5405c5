"""Charts of a report: the Vega-Lite of charts.yaml, with the report's strategies, goal and ticks.

A chart names the table of its rows and the fields by which the page selects from it; strategies
have the colours of all other pictures.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

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

# What each objective is called on an axis.
GOALS: dict[Goal, str] = {
    "epoch_time": "time of an epoch",
    "train_time": "time to the target",
    "pe_hours": "PE-hours",
    "cost": "cost",
}
# Without data of its own, as wide as the page, with signals that the page sets.
PICTURE = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "data": {"name": "rows"},
    "width": "container",
    "autosize": {"type": "fit-x", "contains": "padding"},
    "params": [{"name": name, "value": []} for name in ("times", "numbers", "shown")],
}


@dataclass(frozen=True)
class Chart:
    """A chart, and the table behind it; without a specification a table alone (charts.yaml)."""

    name: str
    title: str
    meaning: str
    table: str
    columns: dict[str, str] = field(default_factory=dict)
    spec: Row | None = None
    where: Row = field(default_factory=dict)
    height: int = 0
    bands: str = ""
    order: list[str] = field(default_factory=list)


def make_charts(report: Report) -> list[Chart]:
    """Make the charts and tables of a report, in the order of the page."""
    template = yaml.safe_load((Path(__file__).parent / "charts.yaml").read_text(encoding="utf-8"))
    values, goal = _list_values(report), report.goal
    values |= {"goal": GOALS[goal], "goal_axis": template["axes"][goal]}
    charts: list[Row] = template["charts"]
    ranking = next(chart for chart in charts if chart["name"] == "ranking")
    if all(row["value_p10"] is None for row in report.ranking):
        # Without the values of intervals, Vega would warn of a scale without an extent.
        layers = ranking["spec"]["layer"]
        ranking["spec"]["layer"] = [layer for layer in layers if "x2" not in layer["encoding"]]
        ranking["meaning"] = ""
    columns = ranking["columns"]
    if goal in columns:
        columns.pop("value")
    # Not all rankings have intervals, and a price.
    for name in ("value_p10", "value_p90", "cost"):
        if all(row.get(name) is None for row in report.ranking):
            columns.pop(name)
    filled = [_fill(chart, values) for chart in charts]
    if asked := report.question:
        form = template["asked"]["front" if asked.y else "dots"]
        filled = [chart for chart in filled if chart["name"] != asked.replaces]
        filled.insert(0, _ask(asked, form, values))
    return [
        Chart(**{**chart, "spec": PICTURE | chart["spec"]} if "spec" in chart else chart)
        for chart in filled
    ]


def _ask(asked: Asked, form: Row, values: Row) -> Row:
    """Make the chart of the question that leads the page: dots of strategies, or a front."""
    columns, (x, x_title), (y, y_title) = dict(asked.columns), asked.x, asked.y or ("", "")
    tooltip = [{"field": name, "type": "nominal", "title": head} for name, head in columns.items()]
    own = {"x": x, "x_title": x_title, "y": y, "y_title": y_title, "tooltip": tooltip}
    own["valid"] = f"isValid(datum.{x})"
    texts = {"name": "asked", "title": asked.title, "meaning": asked.meaning, "table": "asked"}
    order = values["order"]
    return {**texts, "columns": columns, "order": order, **_fill(form, values | own)}


def _list_values(report: Report) -> Row:
    """List what is filled in: colours, entries of legends, ticks and choices."""
    looks, choices = choose_looks(report.strategies), report.choices
    # Work comes before what limits it, and communication last.
    terms = sorted(
        TERM_LOOKS,
        key=lambda name: (EVERY_TERM[name].part != "compute", EVERY_TERM[name].kind != "work"),
    )
    return {
        "strategies": _scale(report.strategies, (look.colour for look in looks.values())),
        "inks": _scale(looks, (choose_ink(look.colour) for look in looks.values())),
        "order": report.strategies,
        "counts": sorted({row["pe"] for row in report.points}),
        "choice": "each" if choices else "best",
        "by_choice": {"field": choices[0], "op": "min"} if choices else None,
        "blue": BLUE,
        **_place_parts("term", terms, TERM_LOOKS),
        **_place_parts("memory", MEMORY_LOOKS, MEMORY_LOOKS),
    }


def _scale(names: Iterable[str], colours: Iterable[str]) -> dict[str, list[str]]:
    return {"domain": list(names), "range": list(colours)}


def _place_parts(kind: str, parts: Iterable[str], looks: PartLooks) -> Row:
    """Return the names of parts, their colours, and the expression of their places in a stack."""
    names = [name_part(part) for part in parts]
    return {
        f"{kind}_names": names,
        f"{kind}_colours": _scale(names, (looks[part]["facecolor"] for part in parts)),
        f"{kind}_place": f"indexof({names!r}, datum.part)",
    }


def _fill(part: Any, values: Row) -> Any:
    """Return a part of charts.yaml with values in place of what begins with $."""
    if isinstance(part, dict):
        return {name: _fill(inner, values) for name, inner in part.items()}
    if isinstance(part, list):
        return [_fill(inner, values) for inner in part]
    is_name = isinstance(part, str) and part.startswith("$")
    return values[part[1:]] if is_name else part
