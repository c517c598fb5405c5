"""A chart of a report: its specification, and the table that it draws."""

from dataclasses import dataclass, field
from typing import Any

import altair as alt

from paradl.sweep.report.chart_axes import SIGNALS

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
    spec: dict[str, Any] | None = None
    where: dict[str, Any] = field(default_factory=dict)
    height: int = 0
    bands: str = ""
    order: list[str] = field(default_factory=list)


def finish(chart: Any, title: str, meaning: str) -> dict[str, Any]:
    """Complete a chart: as wide as the page, without data of its own; the page sets its height."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    # Not by methods of the chart, each of which would copy all of it.
    return spec | {
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "description": f"{title}. {meaning}",
        "params": [*spec.get("params", ()), *({"name": name, "value": []} for name in SIGNALS)],
    }
