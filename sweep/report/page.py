"""A report as one HTML file: its rows, Vega-Lite's library, a template, a style and a script.

The file needs no network: its content security policy lets a browser load nothing.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment
from platformdirs import user_cache_path

from paradl.grids.grid import LABELS
from paradl.grids.reading.textfile import write_text
from paradl.grids.reading.yamlfile import write_plain
from paradl.kernels.cache_files import read_file, write_file
from paradl.sweep.answers.mapping import Row
from paradl.sweep.cells.selection import write_value
from paradl.sweep.report.charts import make_charts
from paradl.sweep.report.report import Report, pack_tables


@dataclass(frozen=True)
class Live:
    """What a page needs of the server that it came from.

    token: of its requests. sliders: parameters of the machine that can be multiplied.
    """

    token: str
    sliders: list[str]


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
        "opening": report.opening,
        "choices": report.choices,
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
    ranking = next(chart for chart in charts if chart.name == "ranking")
    return template.render(
        report=report,
        answer=next(row["text"] for row in report.answers if _is_at(row, report.opening)),
        ranking=[
            [_write_cell(row.get(name)) for name in ranking.columns]
            for row in report.ranking
            if row["feasible"] and _is_at(row, report.opening)
        ],
        charts=charts,
        command=command,
        live=live,
        spec=write_plain(report.spec, allow_unicode=True),
        style=_read("page.css"),
        script=_read("page.js"),
        library=read_library(),
        data=write_json(data).replace("<", "\\u003c"),
    )


def _is_at(row: Row, place: Row) -> bool:
    """Return whether a row is of a place."""
    return all(row[name] == value for name, value in place.items())


def _write_cell(value: Any) -> str:
    """Write a cell of the table that is there without scripts, too."""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return "" if value is None else str(value)


def write_json(data: Any) -> str:
    """Write JSON without spaces."""
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def read_library() -> str:
    """Return Vega-Lite's library, to stand inside a script element.

    It is kept on disk: bundling it takes 1.4 s of CPU time.
    """
    folder: Path = user_cache_path("paradl") / "pages"
    # The package brings Vega-Lite with it, so its version names what is in the bundle.
    path = folder / f"vega-{version('vl-convert-python')}"
    if kept := read_file(path):
        return kept.decode()
    from vl_convert import javascript_bundle  # 30 MB, which nothing but a page needs

    library = javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    with suppress(OSError):  # no place to keep it: the next page bundles it anew
        write_file(path, library.encode())
    return library
