"""Tables of a report, which its page and its charts show.

Every row has the labels of its place (model, data set, system, and each parameter of the machine
that was swept), by which the page selects. Times are in seconds per epoch, memory in bytes per PE.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.objectives import Goal
from paradl.sweep.report.asked import Asked

DIGITS = 5  # significant ones of a number on the page: a fifth of the bytes of all 17


@dataclass(frozen=True)
class Report:
    """Rows of each table of the page.

    goal: what the ranking minimises. axes: labels and axes that name a cell. selectors: the values
    of each label of a place, by which the page selects. opening: the place of the winner, on which
    the page opens. choices: axes along which a strategy may choose, and a curve may be fixed.
    settings: values of the columns in which the layouts of curves differ, in words, by which curves
    and the map select. answers: the sentence of each place. asked: rows of the question that leads
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
    settings: dict[str, list[str]]
    opening: Row
    answers: list[Row]
    asked: list[Row]
    ranking: list[Row]
    parts: list[Row]
    upgrades: list[Row]
    points: list[Row]
    basis: dict[str, str]
    spec: Row
    strategies: list[str]
    precisions: dict[str, str]
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
