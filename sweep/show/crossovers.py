"""Crossovers as text: a line for each, in the order of where they are."""

from collections.abc import Sequence
from functools import partial

from sweep.show.columns import format_value
from sweep.show.planning import format_odds
from sweep.show.ranking import shorten_label
from sweep.show.rows import show_rows
from sweep.show.tables import Format, Row

# Crossovers of one pair that a line shows: hybrids may overtake wherever a group divides.
SHOWN = 4
HIDDEN = (
    *("along", "first", "at", "reason", "over_system"),
    *("first_p10", "first_p90", "crosses_probability"),
)


def show_crossovers(
    rows: Sequence[Row], form: Format, every: bool, goal: str = "epoch_time"
) -> None:
    """Print what `crossovers` answers."""
    word = "cheaper" if goal == "cost" else "faster"
    show_rows(rows, form, every, partial(_describe, word=word))


def _describe(row: Row, word: str) -> Row:
    """A line of a pair: from where on, or why not."""
    at = [format_value(row["along"], each) for each in row["at"]]
    more = f" and {len(at) - SHOWN} more" if len(at) > SHOWN else ""
    from_on = f"{', '.join(at[:SHOWN])}{more}" if at else row["reason"]
    line = {key: value for key, value in row.items() if key not in HIDDEN}
    line |= {name: shorten_label(row[name]) for name in ("strategy", "over")}
    if "over_system" in row:
        line["over"] += f" on {row['over_system']}"
    return {**line, f"{word} from {row['along']}": from_on, **_describe_range(row)}


def _describe_range(row: Row) -> Row:
    """Where the first crossover lies in four of five draws, and in how many of all there is one."""
    if row.get("crosses_probability") is None:
        return {}
    odds = {"crosses": format_odds(row["crosses_probability"])}
    if not row["crosses_probability"]:
        return {"80 % interval": None, **odds}
    ends = (row[f"first_p{percent}"] for percent in (10, 90))
    texts = ("never" if each is None else format_value(row["along"], each) for each in ends)
    return {"80 % interval": " to ".join(dict.fromkeys(texts)), **odds}
