"""Details of a report's ranked strategies: how far they scale, their parts, and upgrades.

They take as long to compute as the ranking itself, so the explorer shows them after it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from grids.grid import LABELS
from sweep.cells.selection import Selection
from sweep.cells.space import Space
from sweep.plots.looks import name_part
from sweep.questions.bottleneck import list_bottlenecks
from sweep.questions.limits import END, list_limits
from sweep.questions.sensitivity import list_sensitivities
from sweep.report.names import write_reasons

if TYPE_CHECKING:
    from sweep.cells.reader import Reader

Row = dict[str, Any]

LEAST_CHANGE = 0.001  # of a time, for an upgrade to be listed


def find_limits(
    reader: "Reader", chosen: Selection, max_global_batch: int | None, space: Space
) -> dict[tuple[Any, ...], Row]:
    """Find how far the strategies scale, by the labels and axes of a line of PE counts."""
    if "pe" in chosen and len(space.axes["pe"]) < 2:
        return {}  # one PE count has no scaling
    rows = list_limits(reader, selection=chosen, max_global_batch=max_global_batch, intervals=False)
    return {
        locate_line(space, row): {
            "largest_pe": row["largest_pe"],
            "efficient_pe": row["efficient_pe"],
            "stop": END
            if row["forbidden_by"] == END
            else write_reasons(row["forbidden_by"].split(", ")),
        }
        for row in rows
    }


def locate_line(space: Space, row: Row) -> tuple[Any, ...]:
    """Labels and axes of a row without its PE count."""
    return tuple(row[name] for name in (*LABELS, *space.axes) if name != "pe")


def _select_cell(space: Space, row: Row) -> Selection:
    """Select the one cell of a ranked strategy."""
    names = (*LABELS, *space.axes)
    return {name: [row[name]] for name in names if row.get(name) is not None}


def list_parts(space: Space, rows: Iterable[Row]) -> Iterator[Row]:
    """List the terms [s per epoch] and the memory [bytes] of strategies at their best cells."""
    for row in rows:
        # The page's bars are in the order of the ranking, and need no other table.
        kept = _keep(space, row) | {name: row[name] for name in ("name", "rank", "capacity")}
        for answer in list_bottlenecks(space.grid, _select_cell(space, row)):
            terms = {term: share * row["epoch_time"] for term, share in answer["shares"].items()}
            for kind, parts in (("time", terms), ("memory", answer["memory_parts"])):
                for part, amount in parts.items():
                    if amount > 0:
                        yield kept | {"kind": kind, "part": name_part(part), "amount": amount}
            yield kept | {"kind": "sentence", "part": answer["sentence"]}


def list_upgrades(space: Space, winners: Iterable[Row]) -> Iterator[Row]:
    """List the upgrades of each place's winner, with the change of its time."""
    for row in winners:
        for answer in list_sensitivities(space.grid, _select_cell(space, row)):
            change = answer["change"]
            if change is not None and abs(change) >= LEAST_CHANGE:
                names = ("parameter", "value", "upgrade", "elasticity", "change")
                yield _keep(space, row) | {name: answer[name] for name in names}


def _keep(space: Space, row: Row) -> Row:
    """Keep the labels and axes of a row."""
    return {name: row[name] for name in (*LABELS, *space.axes) if name in row}
