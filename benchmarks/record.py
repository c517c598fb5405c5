"""The record: one table of what was measured last."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.machine import Machine
from benchmarks.report import HEAD, Report, list_texts, tabulate

HEADS = ("measurement", *HEAD[:-1], "load", "on", HEAD[-1])
TEXT = """# Results

Written by `python -m benchmarks NAME ... --record`, which replaces the rows of what it measures.
Read the ratios: both sides of each were measured in turn in the same run. The rates are the
machine's at that hour, and say little elsewhere. Load: processes that wanted a core before the
start; above 0 others shared the cores.

Last on: {machine}.

"""


def record_reports(
    path: Path, machine: Machine, reports: Iterable[Report], order: Sequence[str]
) -> None:
    """Replace the rows of these reports in the table at `path`, ordered by measurement."""
    new = [_list_row(report, machine, texts) for report in reports for texts in _list_rows(report)]
    measured = {report.name for report in reports}
    old = [row for row in _read_rows(path) if row[0] in order and row[0] not in measured]
    rows = sorted([*old, *new], key=lambda row: order.index(row[0]))
    path.write_text(TEXT.format(machine=machine.describe()) + tabulate([HEADS, *rows]) + "\n")


def _list_rows(report: Report) -> list[tuple[str, ...]]:
    return [list_texts(row) for row in report.rows]


def _list_row(report: Report, machine: Machine, texts: tuple[str, ...]) -> tuple[str, ...]:
    *measured, note = texts
    return report.name, *measured, f"{machine.load:.1f}", machine.date[:10], note


def _read_rows(path: Path) -> list[tuple[str, ...]]:
    """The rows of the table; none where the file has no such table."""
    lines = path.read_text().splitlines() if path.exists() else []
    table = [line[2:-2] for line in lines if line.startswith("| ")]
    rows = [tuple(text.strip() for text in line.split(" | ")) for line in table]
    # The head, and the rule below it, are made anew. Columns without content were left out.
    if not rows or rows[0][0] != HEADS[0]:
        return []
    named = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]
    return [tuple(row.get(head, "") for head in HEADS) for row in named]
