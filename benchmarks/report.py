"""Reports of measurements: rows with rates, ratios and goals, as a Markdown table; their effort."""

from collections.abc import Sequence
from dataclasses import dataclass

from paradl.grids.reading.units import format_quantity

HEAD = ("", "measured", "ratio", "against", "goal", "note")


@dataclass(frozen=True)
class Effort:
    """Rounds and sizes of measurements; `--quick` takes minutes less and is noisier.

    strategies: number in stored cubes, one block each. searched: PE counts of the searched space.
    """

    rounds: int
    strategies: int
    searched: int


FULL = Effort(rounds=5, strategies=12, searched=8192)
QUICK = Effort(rounds=2, strategies=4, searched=1024)


@dataclass(frozen=True)
class Goal:
    """A bound that issue or README promise, and whether it was met in this run."""

    text: str
    met: bool


@dataclass(frozen=True)
class Row:
    """One measured value [unit], and its ratio to the row that `against` names."""

    what: str
    value: float
    unit: str
    ratio: float | None = None
    against: str = ""
    goals: tuple[Goal, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Report:
    """The rows of one measurement."""

    name: str
    title: str
    rows: tuple[Row, ...]
    note: str = ""


def at_least(measured: float, bound: float, unit: str = "") -> Goal:
    """Return a goal from below: a rate in `unit`, or a ratio."""
    return Goal(f">= {quantity(bound, unit)}", measured >= bound)


def at_most(measured: float, bound: float, unit: str) -> Goal:
    """Return a goal from above."""
    return Goal(f"<= {quantity(bound, unit)}", measured <= bound)


def quantity(value: float, unit: str) -> str:
    """Write 3.2e8, "cells/s" as "320 Mcells/s"; without a unit a count in full, or a ratio."""
    if isinstance(value, int) and not unit:
        return f"{value:,}"
    return format_quantity(value, unit, 3) if unit else f"{value:.3g}"


def markdown(report: Report) -> str:
    """A section with the report's table; columns without content are left out."""
    parts = [f"### {report.name}: {report.title}"]
    if report.rows:
        parts.append(tabulate([HEAD, *map(list_texts, report.rows)]))
    if report.note:
        parts.append(report.note)
    return "\n\n".join(parts) + "\n"


def list_texts(row: Row) -> tuple[str, ...]:
    """The cells of a row, in the order of `HEAD`."""
    goals = ", ".join(f"{goal.text}: {'met' if goal.met else 'missed'}" for goal in row.goals)
    ratio = "" if row.ratio is None else quantity(row.ratio, "")
    return (row.what, quantity(row.value, row.unit), ratio, row.against, goals, row.note)


def tabulate(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table of a head and rows, without columns that are empty."""
    columns = [column for column in zip(*lines, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    head, *body = (
        " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        for line in zip(*columns, strict=True)
    )
    rule = " | ".join("-" * max(width, 3) for width in widths)
    return "\n".join(f"| {line} |" for line in (head, rule, *body))
