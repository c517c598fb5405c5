"""Answers about what binds and what to buy, as text."""

from collections.abc import Sequence
from typing import Any

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from grids.reading.units import format_quantity
from sweep.cells.source import CHOSEN
from sweep.show.answers import show_rows, tell_constants
from sweep.show.ranking import shorten_label
from sweep.show.tables import Format, Row, show

# Parameters of a cell that are shown unless all are asked for: those of the largest effect.
FIRST = 10


def show_bottlenecks(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a cell, then of each strategy what binds its last one, in a sentence."""
    if form != "table" or not rows:
        show(rows, form)
        return
    lines = [
        {
            **_take_place(row),
            **_tell_choice(row),
            "epoch_time": row["epoch_time"],
            "computing": f"{row['computing']:.0%}",
            "binds": row["binds"],
            "share": f"{row['share']:.0%}",
            **_tell_share(row),
            "memory": row["memory"],
            "feasible": row["feasible"],
        }
        for row in rows
    ]
    _show_lines(lines, every)
    for row in {row["strategy"]: row for row in rows if row["feasible"]}.values():
        kind = "" if row["kind"] == "work" else f" It is a {row['kind']}."
        print(f"{settle_label(row)} on {row['pe']:,}: {row['sentence']}{kind}")
        print(f"    memory: {_list_parts(row['memory_parts'])}")


def show_sensitivities(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a parameter, the largest gain first; ten a cell unless all are asked for."""
    if form != "table" or not rows:
        show(rows, form)
        return
    shown: dict[str, list[Row]] = {}
    for row in rows:
        shown.setdefault(str(_take_place(row)), []).append(row)
    kept = [row for cell in shown.values() for row in (cell if every else cell[:FIRST])]
    lines = [
        {
            **_take_place(row),
            "parameter": row["parameter"],
            "value": _write(row["parameter"], row["value"]),
            "elasticity": row["elasticity"],
            "upgrade": row["upgrade"],
            "time": None if row["change"] is None else f"{row['change']:+.1%}",
        }
        for row in kept
    ]
    _show_lines(lines, every, len(rows) - len(kept))


def show_provisions(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a strategy, that of the fewest PEs first."""
    if form != "table" or not rows:
        show(rows, form)
        return
    lines = [
        {
            **row,
            "strategy": shorten_label(row["strategy"]),
            "train_time": _write_time(row["train_time"]),
            "holds": None if row["holds"] is None else f"{row['holds']:.0%}",
        }
        for row in rows
    ]
    told = [key for key in lines[0] if any(line[key] is not None for line in lines)]
    # The unit stands behind each time, and not in the head.
    heads = {key: "time" if key == "train_time" else key for key in told}
    kept = [key for key in told if key not in ("replicas", "segment_count")]
    _show_lines([{heads[key]: line[key] for key in kept} for line in lines], every)


def show_needs(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a cell: what the machine has, and what it takes."""
    if form != "table" or not rows:
        show(rows, form)
        return
    lines = [
        {
            **_take_place(row),
            "this system": _write(row["parameter"], row["own"]),
            "needed": row["reason"] or _write(row["parameter"], row["needed"]),
            **_tell_need(row),
        }
        for row in rows
    ]
    _show_lines(lines, every)


def _take_place(row: Row) -> Row:
    """Labels and axes of a row."""
    kept = {
        key: row[key]
        for key in row
        if key in (*LABELS, "precision", "software") or key in PARAMETERS
    }
    return kept | {"strategy": shorten_label(row["strategy"])}


def _tell_choice(row: Row) -> Row:
    """The group and the segments that were left to a row's cell."""
    return {
        name: row[CHOSEN[name]] if f"{name}=best" in row["strategy"] else None for name in CHOSEN
    }


def settle_label(row: Row) -> str:
    """A row's strategy with what was chosen: the label that `predict` takes."""
    label = str(row["strategy"])
    for name, column in CHOSEN.items():
        label = label.replace(f"{name}=best", f"{name}={row[column]}")
    return label


def _show_lines(lines: Sequence[Row], every: bool, left_out: int = 0) -> None:
    """Print lines below what all of them share."""
    axes = [key for key in lines[0] if key in PARAMETERS]
    line, short = tell_constants(lines, [*LABELS, *axes])
    empty = [key for key in CHOSEN if all(each.get(key) is None for each in short)]
    short = [{key: each for key, each in one.items() if key not in empty} for one in short]
    show_rows(short, "table", every, line, left_out)


def _tell_need(row: Row) -> Row:
    """The 80 % interval of a need, or of what is reached at best; whether it can be met at all."""
    if row.get("met_probability") is None:
        return {}
    ends = [row[f"needed_p{percent}"] for percent in (10, 90)]
    if row["needed"] is None and row["reason"] != "any value will do":
        ends = [row[f"efficiency_p{percent}"] for percent in (10, 90)]
        interval = " to ".join(f"{each:.0%}" for each in ends)
    else:
        interval = " to ".join(
            "never" if each is None else _write(row["parameter"], each) for each in ends
        )
    return {"80 % interval": interval, "can be met": write_odds(row["met_probability"])}


def _tell_share(row: Row) -> Row:
    """The 80 % interval of what binds, and how probable it is that it does."""
    if row.get("share_p10") is None:
        return {}
    interval = f"{100 * row['share_p10']:.0f} to {100 * row['share_p90']:.0f}%"
    return {"80 % interval": interval, "probability": write_odds(row["binds_probability"])}


def write_odds(share: float) -> str:
    """A share of the draws; of thirty-two none and all are no certainty."""
    if 0 < share < 1:
        return f"{share:.0%}"
    return "over 97%" if share else "under 3%"


def _list_parts(parts: dict[str, float]) -> str:
    """Parts of the memory, the largest first."""
    sizes = sorted(parts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {format_quantity(size, 'B')}" for name, size in sizes if size)


def _write(name: str, value: Any) -> str:
    """A value with its unit."""
    if value is None:
        return "-"
    parameter = PARAMETERS[name]
    if parameter.unit == "1":
        return f"{value:,}" if parameter.whole else f"{value:.4g}"
    return format_quantity(value, parameter.unit)


def _write_time(seconds: float | None) -> str | None:
    """A time as planners say it."""
    if seconds is None:
        return None
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
