"""Regrets as text: where a strategy loses most, and where it is not feasible, in a few words."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from grids.entries.parameters import PARAMETERS
from sweep.answers.system_settings import PLACES
from sweep.show.columns import format_value
from sweep.show.rows import show_rows
from sweep.show.tables import Format, Row

# Scenarios that a cell lists by themselves; of more the ends.
LISTED = 3


def show_regrets(rows: Sequence[Row], over: str, form: Format, every: bool) -> None:
    """Print what `regret` answers: values with their units, of many the ends."""
    show_rows(rows, form, every, partial(_describe, over))


def _describe(over: str, row: Row) -> Row:
    """A line: where a strategy loses most, of a system with its precision and software."""
    worst = None
    if row["worst_at"] is not None:
        settings = [row[key] for key in PLACES["worst_at"] if row.get(key) is not None]
        worst = _write(over, row["worst_at"]) + (f" ({', '.join(settings)})" if settings else "")
    heads = {"worst_loss": "worst slowdown", "mean_loss": "mean slowdown"}
    return {
        **{heads.get(key, key): each for key, each in row.items() if key not in PLACES["worst_at"]},
        "worst_at": worst,
        "infeasible_at": _write_several(over, row["infeasible_at"]) or None,
    }


def _write_several(over: str, values: Sequence[Any]) -> str:
    """Scenarios in a cell."""
    texts = [_write(over, each) for each in values]
    if len(texts) <= LISTED:
        return ", ".join(texts)
    if over in PARAMETERS:
        return f"{len(texts):,} values, {texts[0]} to {texts[-1]}"
    return f"{', '.join(texts[:LISTED])} and {len(texts) - LISTED:,} more"


def _write(over: str, value: Any) -> str:
    """A scenario, of a parameter with its unit."""
    is_value = over in PARAMETERS and isinstance(value, int | float)
    return format_value(over, value) if is_value else str(value)
