"""A report as one HTML file: its rows, Vega-Lite's library, a template, a style and a script.

The file needs no network: its content security policy lets a browser load nothing.
"""

import json
import math
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment
from platformdirs import user_cache_path

from grids.grid import LABELS
from grids.reading.errors import InputError
from grids.reading.textfile import expect_folder, write_text
from sweep.answers.objectives import Goal, Price
from sweep.cells.selection import Selection, write_value
from sweep.cells.source import Source
from sweep.report.charts import make_charts
from sweep.report.contents import Report, Row, collect_report


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
    columns: dict[str, dict[str, list[Any]]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if any(isinstance(value, str) for value in values):
            texts = list(dict.fromkeys(values))
            positions = {text: position for position, text in enumerate(texts)}
            columns[name] = {"values": [positions[value] for value in values], "texts": texts}
        else:
            columns[name] = {"values": [_round(value) for value in values]}
    return {"length": len(rows), "columns": columns}


def _round(value: Any) -> Any:
    """Round a number; None where it is not finite, which JSON cannot say."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def read_library() -> str:
    """Return Vega-Lite's library, to stand inside a script element.

    It is kept on disk: bundling it takes 1.4 s of CPU time.
    """
    folder: Path = user_cache_path("paradl") / "pages"
    # The package brings Vega-Lite with it, so its version names what is in the bundle.
    path = folder / f"vega-{version('vl-convert-python')}.js"
    if path.exists():
        return path.read_text(encoding="utf-8")
    from vl_convert import javascript_bundle  # 30 MB, which nothing but a page needs

    library = javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(library, path)
    except (OSError, InputError):
        pass  # no place to keep it: the next page bundles it anew
    return library


def write_report(
    source: Source,
    path: str | Path,
    selection: Selection | None = None,
    *,
    objective: Goal = "epoch_time",
    price: Price = None,
    max_global_batch: int | None = None,
) -> None:
    """Write a report on a cube, or on a slice of one, as one HTML file that needs no network.

    source: a store, a Dataset of one, or a grid. objective, price, max_global_batch: as for `best`.
    InputError: an unknown axis or value, or a path that cannot be written. NothingFeasibleError:
    no configuration is feasible, and nothing is written.
    """
    expect_folder(Path(path))
    report = collect_report(source, selection, max_global_batch, objective, price)
    settings = {"objective": objective, "price": price, "max_global_batch": max_global_batch}
    given = {"selection": selection, **settings}
    usual = (None, "epoch_time")
    words = [f"{name}={value!r}" for name, value in given.items() if value not in usual]
    name = repr(str(source)) if isinstance(source, str | Path) else "cube"
    call = ", ".join([name, repr(str(path)), *words])
    write_page(report, Path(path), f"sweep.write_report({call})")
