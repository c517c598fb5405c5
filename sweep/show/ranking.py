"""A ranking as text: what each strategy takes, and of the losers what would have to change."""

from collections.abc import Sequence
from typing import Any

from grids.grid import LABELS
from grids.reading.units import format_quantity
from sweep.cells.selection import write_value
from sweep.cells.space import list_given
from sweep.show.rows import SCREENFUL, drop_empty_columns, factor_constants, print_headed
from sweep.show.tables import Format, Row, show
from sweep.show.visible import tell

# Columns behind a row's labels and axes; as JSON and CSV there is all of it.
SHOWN = (
    *("degrees", "group_size", "segment_count", "precision", "software", "global_batch"),
    *("epochs", "train_time", "epoch_time", "cost", "memory"),
)
HEADS = {"group_size": "group", "segment_count": "segments"}


def show_ranking(rows: Sequence[Row], form: Format, goal: str, every: bool = True) -> None:
    """Print what `best` answers: a table of the allowed strategies, then the losers.

    What all share stands in a line above. every: show all rankings in full; else, where machines
    with other values of a parameter make more than a screenful, only the first of each.
    """
    if form != "table" or not rows:
        show(rows, form)
        return
    allowed = [row for row in rows if row["feasible"]]
    given = [name for name in list_given(_axes(rows[0])) if len({row[name] for row in rows}) > 1]
    whole = every or not given or len(allowed) <= SCREENFUL
    if allowed:
        kept = allowed if whole else [row for row in allowed if row["rank"] == 1][:SCREENFUL]
        line, short = factor_constants(
            _describe_winners(kept, goal), [*LABELS[:3], *_axes(rows[0])]
        )
        print_headed(line, short)
        for n, row in enumerate(rows) if whole else ():
            if row.get("faster_than_next") is not None:
                print(_describe_chance(row, rows[n + 1], given))
        if len(kept) < len(allowed):
            tell(f"paradl: {len(allowed) - len(kept):,} more: --all")
    _show_losers([row for row in rows if not row["feasible"]], whole)


def _show_losers(rows: Sequence[Row], whole: bool) -> None:
    """Print the strategies that nothing allows; a screenful of them unless the whole is asked."""
    if not rows:
        return
    losers = [_describe_loser(row) for row in (rows if whole else rows[:SCREENFUL])]
    line, short = factor_constants(losers, [*LABELS[:3], *_axes(rows[0])])
    explained = any(row["rejection"] for row in rows)
    print_headed(f"Not feasible{', at the nearest cell' if explained else ''}: {line}", short)
    if not explained:
        print("By how much, and what would make them feasible: --why")
    if len(losers) < len(rows):
        tell(f"paradl: {len(rows) - len(losers):,} more: --all")


def _describe_winners(rows: Sequence[Row], goal: str) -> list[Row]:
    """Lines of allowed rows: axes behind the labels, no column that is empty throughout."""
    axes = _axes(rows[0])
    given = list_given(axes)
    chosen = [axis for axis in axes if axis not in given]
    hours = ["pe_hours"] if goal in ("pe_hours", "cost") else []
    order = ["rank", *LABELS[:3], *given, LABELS[3], *chosen, *SHOWN, *hours]
    return drop_empty_columns([_describe_winner(row, order) for row in rows])


def _describe_winner(row: Row, order: Sequence[str]) -> Row:
    """A line of an allowed row."""
    return {
        **{HEADS.get(key, key): row.get(key) for key in order},
        "strategy": shorten_label(row["strategy"]),
        "degrees": " x ".join(f"{name} {n}" for name, n in row.get("degrees", {}).items()) or None,
        **_describe_interval(row),
        **({"marks": ", ".join(row["limit"])} if row["limit"] else {}),
    }


def _describe_interval(row: Row) -> Row:
    """The 80 % interval of a row's time [s], where it is known."""
    for time in ("train_time", "epoch_time"):
        low, high = row.get(f"{time}_p10"), row.get(f"{time}_p90")
        if low is not None and high is not None:
            return {"80 % interval": f"{low:.4g} to {high:.4g}"}
    return {}


def describe_losers(rows: Sequence[Row]) -> str:
    """The limits that forbid the losers, the most frequent first."""
    reasons = dict.fromkeys(reason for row in rows for reason in row["limit"])
    return f": {', '.join(reasons)}" if reasons else ""


def shorten_label(label: str) -> str:
    """A strategy without what was searched: columns tell what was chosen."""
    base, _, settings = label.partition(":")
    kept = [each for each in settings.split(",") if each and not each.endswith("=best")]
    return f"{base}:{','.join(kept)}" if kept else base


def _describe_chance(row: Row, second: Row, given: Sequence[str]) -> str:
    """How sure the first place is, in a sentence."""
    first, other = (shorten_label(each["strategy"]) for each in (row, second))
    chance = row["faster_than_next"]
    odds = f"{chance:.0%}" if 0.01 <= chance < 0.995 else "over 99%" if chance > 0.5 else "under 1%"
    place = ", ".join(
        [row["system"], *(f"{name} {write_value(name, row[name])}" for name in given)]
    )
    return f"{first} is faster than {other} with a probability of {odds} ({place})."


def _describe_loser(row: Row) -> Row:
    """A loser in a line: where it is nearest to being allowed, by what it fails, what would do."""
    rejection = row["rejection"]
    if rejection is None:
        labels = {name: row[name] for name in (*LABELS, *list_given(_axes(row)))}
        return labels | {"strategy": shorten_label(row["strategy"]), "why": ", ".join(row["limit"])}
    changes = [f"{name}={_write(name, each)}" for name, each in rejection["changes"].items()]
    labels = {name: row[name] for name in LABELS} | {"strategy": shorten_label(row["strategy"])}
    axes = {name: each for name, each in rejection.items() if name in row and name in _axes(row)}
    return {**labels, **axes, "why": _describe_reasons(rejection), "feasible with": _join(changes)}


def _axes(row: Row) -> list[str]:
    """The names of a row's axes: what stands between its labels and how PEs divide."""
    keys = list(row)
    return keys[keys.index("strategy") + 1 : keys.index("replicas")]


def _write(name: str, value: Any) -> str:
    return format_quantity(value, "B") if name == "memory_capacity" else str(value)


def _join(changes: Sequence[str]) -> str:
    return " or ".join(changes) if changes else "-"


def _describe_reasons(rejection: dict[str, Any]) -> str:
    """The limits that forbid a cell, memory with its numbers."""
    return ", ".join(
        _describe_memory(rejection) if reason == "memory" else reason
        for reason in rejection["limit"]
    )


def _describe_memory(rejection: dict[str, Any]) -> str:
    needed, capacity = rejection["memory"], rejection["memory_capacity"]
    return f"memory {format_quantity(needed, 'B')} of {format_quantity(capacity, 'B')}"
