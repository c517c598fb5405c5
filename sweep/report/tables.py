"""Tables of a report, which charts and the page show."""

from dataclasses import dataclass, field
from typing import Any

from sweep.answers.objectives import Goal

Row = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """Rows of each table of the page.

    goal: what the ranking minimises. axes: labels and axes that name a cell. selectors: the values
    of each label of a place, by which the page selects. choices: axes along which a strategy may
    choose, and a curve may be fixed. settings: values of the columns in which the layouts of curves
    differ, in words, by which curves and the map select. ranking: strategies of each place, the
    best first, with how far they scale, and with the reason and the remedy of those that are
    infeasible. parts: terms of time and parts of memory of each ranked strategy. upgrades:
    elasticities of each place's winner. points: cells of curves, whose `choice` is "best" or names
    the values of `choices`. spec: as it was swept. notes: what the page leaves out.
    """

    title: str
    goal: Goal
    axes: list[str]
    selectors: dict[str, list[Any]]
    choices: list[str]
    settings: dict[str, list[str]]
    ranking: list[Row]
    parts: list[Row]
    upgrades: list[Row]
    points: list[Row]
    basis: dict[str, str]
    spec: dict[str, Any]
    strategies: list[str]
    notes: list[str] = field(default_factory=list)
