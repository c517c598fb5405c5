"""Reports on cubes: the tables that a page and its charts show, collected and written as a page.

Every row has the labels of its place (model, data set, system, and each parameter of the machine
that was swept), by which the page selects. Times are in seconds per epoch, memory in bytes per PE.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paradl.grids.reading.textfile import PAGES, expect_ending, expect_folder
from paradl.sweep.answers.mapping import Row, name_arguments
from paradl.sweep.answers.objectives import Goal, Price
from paradl.sweep.cells.selection import Selection, join_selection
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.report import expect_report_libraries
from paradl.sweep.text.sentences import Asked

DIGITS = 5  # significant ones of a number on the page: a fifth of the bytes of all 17


@dataclass(frozen=True)
class Report:
    """Rows of each table of the page.

    goal: what the ranking minimises. axes: labels and axes that name a cell. selectors: the values
    of each label of a place, by which the page selects. opening: the place of the winner, on which
    the page opens. choices: axes along which a strategy may choose, and a curve may be fixed.
    answers: the sentence of each place. asked: rows of the question that leads
    the page, if another does. ranking: strategies of each place, the best first, with how far they
    scale, and with the reason and the remedy of those that are infeasible. parts: terms of time and
    parts of memory of each ranked strategy. upgrades: elasticities of each place's winner. points:
    cells of curves, whose `choice` is "best" or names the values of `choices`. spec: as it was
    swept. precisions: by system. notes: what the page leaves out.
    """

    title: str
    goal: Goal
    axes: list[str]
    selectors: dict[str, list[Any]]
    choices: list[str]
    opening: Row
    ranking: list[Row]
    points: list[Row]
    basis: dict[str, str]
    spec: Row
    strategies: list[str]
    precisions: dict[str, str]
    answers: list[Row] = field(default_factory=list)
    asked: list[Row] = field(default_factory=list)
    parts: list[Row] = field(default_factory=list)
    upgrades: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    question: Asked | None = None


def pack_tables(report: Report) -> Row:
    """Pack the rows of a report's tables as columns."""
    names = ("answers", "asked", "ranking", "parts", "upgrades", "points")
    return {"tables": {name: _pack(getattr(report, name)) for name in names}}


def _pack(rows: list[Row]) -> Row:
    """Pack rows as columns; texts as positions in a list of the distinct ones."""
    # Labels and names repeat in thousands of rows.
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


def collect_report(
    source: Source,
    selection: Selection | None = None,
    max_global_batch: int | None = None,
    objective: Goal = "epoch_time",
    price: Price = None,
    asked: Asked | None = None,
) -> Report:
    """Collect the rows of a report on a cube, or on a slice of one; of at most 24 places.

    objective, price: as for `best`. asked: another question, which then leads. InputError: an
    unknown axis or value. NothingFeasibleError: no configuration is feasible.
    """
    from paradl.sweep.report.contents import add_details, rank_places  # late: they need matplotlib

    reader = open_source(source)
    report = rank_places(reader, selection, max_global_batch, objective, price, asked)
    return add_details(report, reader, selection, max_global_batch)


@name_arguments
def write_report(
    source: Source,
    path: str | Path,
    selection: Selection | None = None,
    *,
    objective: Goal = "epoch_time",
    price: Price = None,
    max_global_batch: int | None = None,
    **axes: object,
) -> None:
    """Write a report on a cube, or on a slice of one, as one HTML file that needs no network.

    source: a store, a Dataset of one, or a grid. objective, price, max_global_batch: as for `best`.
    InputError: an unknown axis or value, or a path that cannot be written. NothingFeasibleError:
    no configuration is feasible, and nothing is written. RunError: the extra `report` is missing.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> from pathlib import Path
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> paradl.write_report(ds, "report.html")
    >>> "data on 64 PEs of abci" in Path("report.html").read_text()
    True
    """
    expect_report_libraries()
    from paradl.sweep.report.page import write_page  # late: it needs matplotlib

    selection = join_selection(selection, axes)
    expect_ending(Path(path), PAGES)
    expect_folder(Path(path))  # before the rows are collected
    report = collect_report(source, selection, max_global_batch, objective, price)
    settings = {"objective": objective, "price": price, "max_global_batch": max_global_batch}
    given = {"selection": selection, **settings}
    # The page states the call that writes it again, without defaults.
    usual = (None, "epoch_time")
    words = [f"{name}={value!r}" for name, value in given.items() if value not in usual]
    name = repr(str(source)) if isinstance(source, str | Path) else "cube"
    call = ", ".join([name, repr(str(path)), *words])
    write_page(report, Path(path), f"paradl.write_report({call})")
