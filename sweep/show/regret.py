"""Regrets as text: where a strategy loses most, and where it is not feasible, in a few words."""

from collections.abc import Sequence
from typing import Any

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from grids.reading.units import format_quantity
from sweep.answers.system_settings import PLACES
from sweep.show.answers import show_rows, tell_constants
from sweep.show.tables import Format, Row

# Scenarios that a cell lists by themselves; of more the ends.
LISTED = 3


def show_regrets(rows: Sequence[Row], over: str, form: Format, every: bool) -> None:
    """Print what `regret` answers: values with their units, of many the ends."""
    if form != "table" or not rows:
        show_rows(rows, form, every)
        return
    lines = [
        {
            **{key: each for key, each in row.items() if key not in PLACES["worst_at"]},
            "worst_at": _write_worst(over, row),
            "infeasible_at": _write_several(over, row["infeasible_at"]) or None,
        }
        for row in rows
    ]
    empty = [key for key in lines[0] if all(line[key] is None for line in lines)]
    shown = [{key: each for key, each in line.items() if key not in empty} for line in lines]
    places = [key for key in shown[0] if key in LABELS[:3] or key in PARAMETERS]
    line, short = tell_constants(shown, places)
    show_rows(short, form, every, line)


def _write_worst(over: str, row: Row) -> str | None:
    """Where a strategy loses most; of a system with its precision and software."""
    if row["worst_at"] is None:
        return None
    settings = [row[key] for key in PLACES["worst_at"] if row.get(key) is not None]
    return _write(over, row["worst_at"]) + (f" ({', '.join(settings)})" if settings else "")


def _write_several(over: str, values: Sequence[Any]) -> str:
    """Scenarios in a cell."""
    texts = [_write(over, each) for each in values]
    if len(texts) <= LISTED:
        return ", ".join(texts)
    if over in PARAMETERS:
        return f"{len(texts):,} values, {texts[0]} to {texts[-1]}"
    return f"{', '.join(texts[:LISTED])} and {len(texts) - LISTED:,} more"


def _write(over: str, value: Any) -> str:
    """A scenario with its unit."""
    if over not in PARAMETERS or not isinstance(value, int | float):
        return str(value)
    parameter = PARAMETERS[over]
    if parameter.unit == "1":
        return f"{value:,.0f}" if parameter.whole else f"{value:.4g}"
    return format_quantity(value, parameter.unit)
