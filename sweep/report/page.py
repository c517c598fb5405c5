"""A report as one HTML file: its rows, Vega-Lite's library, a template, a style and a script.

The file needs no network: its content security policy lets a browser load nothing.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment

from grids.grid import LABELS
from grids.reading.textfile import write_text
from sweep.cells.selection import write_value
from sweep.report.charts import make_charts
from sweep.report.library import read_library
from sweep.report.tables import Report, Row


@dataclass(frozen=True)
class Live:
    """What a page needs of the server that it came from.

    token: of its requests. sliders: parameters of the machine with the value of each system.
    """

    token: str
    sliders: dict[str, dict[str, float]]


DIGITS = 5  # significant ones of a number on the page: a fifth of the bytes of all 17
HERE = Path(__file__).parent


def write_page(report: Report, path: Path, command: str) -> None:
    """Write the page of a report. InputError: the file cannot be written."""
    write_text(render_page(report, command), path)


def render_page(report: Report, command: str, live: Live | None = None) -> str:
    """Render the page of a report; command: what makes it again; live: where a server answers."""
    charts = make_charts(report)
    data = {
        "goal": report.goal,
        "selectors": report.selectors,
        "choices": report.choices,
        "settings": report.settings,
        "axes": report.axes,
        "texts": {
            name: [write_value(name, value) for value in values]
            for name, values in report.selectors.items()
            if name not in LABELS
        },
        "charts": [asdict(chart) for chart in charts],
        "live": live and asdict(live),
        **pack_tables(report),
    }
    # Names of users are text: the template escapes it, and in JSON no `<` ends the script.
    template = Environment(autoescape=True).from_string(_read("page.html"))
    return template.render(
        report=report,
        charts=charts,
        command=command,
        live=live,
        spec=yaml.safe_dump(report.spec, sort_keys=False, allow_unicode=True),
        style=_read("page.css"),
        script=_read("page.js"),
        library=read_library(),
        data=write_json(data).replace("<", "\\u003c"),
    )


def write_json(data: Any) -> str:
    """Write JSON without spaces."""
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def pack_tables(report: Report) -> dict[str, Any]:
    """Pack the rows of a report's tables as columns."""
    names = ("ranking", "parts", "upgrades", "points")
    return {"tables": {name: _pack(getattr(report, name)) for name in names}}


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _pack(rows: list[Row]) -> dict[str, Any]:
    """Pack rows as columns; texts as positions in a list of the distinct ones."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _pack_column([row.get(name) for row in rows]) for name in names}
    return {"length": len(rows), "columns": columns}


def _pack_column(values: list[Any]) -> dict[str, Any]:
    if any(isinstance(value, str) for value in values):
        texts = list(dict.fromkeys(values))
        positions = {text: position for position, text in enumerate(texts)}
        return {"values": [positions[value] for value in values], "texts": texts}
    return {"values": [_round(value) for value in values]}


def _round(value: Any) -> Any:
    """Round a number; None where it is not finite, which JSON cannot say."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
