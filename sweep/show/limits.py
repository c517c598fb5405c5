"""Tables of limits and crossovers: how far strategies scale, and where one overtakes another."""

from collections.abc import Sequence
from typing import Any

from sweep.show.columns import INTERVAL, format_interval, format_odds, format_value
from sweep.show.data import Format, Row
from sweep.show.rows import SCREENFUL, shorten_label, show_rows

TIMES = ("fastest_time", "soonest_time")
COUNTS = ("fastest_pe", "soonest_pe", "efficient_pe")
# Crossovers listed per pair: a hybrid may overtake at every multiple of its group size.
SHOWN = 4
# Keys of a crossover that the table merges into other columns.
FOLDED = (
    *("along", "first", "at", "reason", "over_system"),
    *("first_p10", "first_p90", "crosses_probability"),
)


def show_limits(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print the answer of `limits`; of more than a screenful first those that are feasible."""
    if form == "table" and not every and len(rows) > SCREENFUL:
        rows = sorted(rows, key=lambda row: row["largest_pe"] is None)
    show_rows(rows, form, every, _describe_limit)


def _describe_limit(row: Row) -> Row:
    """Make a table line: a time is followed by its interval, a PE count by its range."""
    line: dict[str, Any] = {}
    for key, value in row.items():
        if key.endswith(("_p10", "_p90")):
            continue
        low, high = row.get(f"{key}_p10"), row.get(f"{key}_p90")
        line[key] = value or None if key == "marks" else value
        # A range of a single value adds nothing.
        if key in COUNTS and (low, high) != (None, None) and not low == value == high:
            texts = ("none" if count is None else f"{count:,}" for count in (value, low, high))
            line[key] = "{} ({} to {})".format(*texts)
        if key in TIMES:
            line[INTERVAL] = format_interval(low, high)
    return line


def describe_crossover(row: Row, goal: str = "epoch_time") -> Row:
    """Make a table line for a pair: where one becomes faster, or why it never does."""
    # Several: strategies overtake each other back and forth, since groups have to divide p.
    at = [format_value(row["along"], value) for value in row["at"]]
    rest = f" and {len(at) - SHOWN} more" if len(at) > SHOWN else ""
    line = {key: value for key, value in row.items() if key not in FOLDED}
    line |= {name: shorten_label(row[name]) for name in ("strategy", "over")}
    if "over_system" in row:
        line["over"] += f" on {row['over_system']}"
    word = "cheaper" if goal == "cost" else "faster"
    line[f"{word} from {row['along']}"] = f"{', '.join(at[:SHOWN])}{rest}" if at else row["reason"]
    odds = row.get("crosses_probability")
    ends = (row.get(f"first_p{percent}") for percent in (10, 90))
    # In some draws one never overtakes the other, whatever the parameter.
    texts = ("never" if end is None else format_value(row["along"], end) for end in ends)
    line[INTERVAL] = " to ".join(dict.fromkeys(texts)) if odds else None
    line["crosses"] = format_odds(odds)
    return line
