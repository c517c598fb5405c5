"""Crossovers as text: a line for each, in the order of where they are."""

from collections.abc import Sequence

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from grids.reading.units import format_quantity
from sweep.show.answers import show_rows, tell_constants
from sweep.show.planning import write_odds
from sweep.show.ranking import shorten_label
from sweep.show.tables import Format, Row, show

# Crossovers of one pair that a line shows: hybrids may overtake wherever a group divides.
SHOWN = 4
RANGES = ("first_p10", "first_p90", "crosses_probability")


def show_crossovers(
    rows: Sequence[Row], form: Format, every: bool, goal: str = "epoch_time"
) -> None:
    """Print what `crossovers` answers."""
    if form != "table" or not rows:
        show(rows, form)
        return
    axes = [key for key in rows[0] if key in PARAMETERS]
    word = "cheaper" if goal == "cost" else "faster"
    line, short = tell_constants([_describe(row, word) for row in rows], [*LABELS[:3], *axes])
    show_rows(short, form, every, line)


def _describe(row: Row, word: str) -> Row:
    """A line of a pair: from where on, or why not."""
    at = [_write(row["along"], each) for each in row["at"]]
    more = f" and {len(at) - SHOWN} more" if len(at) > SHOWN else ""
    from_on = f"{', '.join(at[:SHOWN])}{more}" if at else row["reason"]
    kept = {
        key: value
        for key, value in row.items()
        if key not in ("along", "first", "at", "reason", "strategy", "over", "over_system", *RANGES)
    }
    strategies = {name: shorten_label(row[name]) for name in ("strategy", "over")}
    if "over_system" in row:
        strategies["over"] = f"{strategies['over']} on {row['over_system']}"
    return {**kept, **strategies, f"{word} from {row['along']}": from_on, **_tell_range(row)}


def _tell_range(row: Row) -> Row:
    """Where the first crossover lies in four of five draws, and in how many of all there is one."""
    if row.get("crosses_probability") is None:
        return {}
    if not row["crosses_probability"]:
        return {"80 % interval": None, "crosses": write_odds(0.0)}
    ends = (row[f"first_p{percent}"] for percent in (10, 90))
    told = ("never" if each is None else _write(row["along"], each) for each in ends)
    return {
        "80 % interval": " to ".join(dict.fromkeys(told)),
        "crosses": write_odds(row["crosses_probability"]),
    }


def _write(along: str, value: float) -> str:
    parameter = PARAMETERS[along]
    return f"{value:,}" if parameter.whole else format_quantity(value, parameter.unit)
