"""Crossovers as text: a line for each, in the order of where they are."""

from collections.abc import Sequence

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from grids.reading.units import format_quantity
from sweep.show.answers import show_rows, tell_constants
from sweep.show.ranking import shorten_label
from sweep.show.tables import Format, Row, show

# Crossovers of one pair that a line shows: hybrids may overtake wherever a group divides.
SHOWN = 4


def show_crossovers(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print what `crossovers` answers."""
    if form != "table" or not rows:
        show(rows, form)
        return
    axes = [key for key in rows[0] if key in PARAMETERS]
    line, short = tell_constants([_describe(row) for row in rows], [*LABELS[:3], *axes])
    show_rows(short, form, every, line)


def _describe(row: Row) -> Row:
    """A line of a pair: from where on, or why not."""
    at = [_write(row["along"], each) for each in row["at"]]
    more = f" and {len(at) - SHOWN} more" if len(at) > SHOWN else ""
    from_on = f"{', '.join(at[:SHOWN])}{more}" if at else row["reason"]
    kept = {
        key: value
        for key, value in row.items()
        if key not in ("along", "first", "at", "reason", "strategy", "over")
    }
    strategies = {name: shorten_label(row[name]) for name in ("strategy", "over")}
    return kept | strategies | {f"faster from {row['along']}": from_on}


def _write(along: str, value: float) -> str:
    parameter = PARAMETERS[along]
    return f"{value:,}" if parameter.whole else format_quantity(value, parameter.unit)
