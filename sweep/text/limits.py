"""Tables of limits and crossovers: how far strategies scale, and where they overtake each other."""

from collections.abc import Sequence
from typing import cast

from paradl.grids.entries.layout_words import LAYOUT
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS
from paradl.sweep.answers.numbers import read_range
from paradl.sweep.answers.types.questions import CrossoverRow, LimitsRow
from paradl.sweep.text.columns import (
    INTERVAL,
    Ranged,
    format_odds,
    format_percent,
    format_value,
)
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.ranking import HEADS
from paradl.sweep.text.tables import print_table, print_text, shorten_label, show, tell_more

TIMES = ("fastest_time", "soonest_time")
COUNTS = ("fastest_pe", "soonest_pe", "efficient_pe")
# Crossovers listed per pair: a hybrid may overtake at every multiple of its group size.
CROSSOVERS = 4
# Keys of a crossover that the table merges into other columns.
FOLDED = (
    *("along", "first", "at", "reason"),
    *("first_p10", "first_p90", "crosses_probability"),
)


def show_limits(rows: Sequence[LimitsRow], form: Format, sentence: str, left_out: int = 0) -> None:
    """Print the answer of `limits`, feasible rows first. left_out: rows that are not given."""
    if form != "table" or not rows:
        show(rows, form)
        return
    print_text(sentence)
    lines = map(_describe_limit, sorted(rows, key=lambda row: row["largest_pe"] is None))
    print_table([*lines], asked=("largest_pe", "forbidden_by", "efficient_pe", *TIMES))
    tell_more(left_out)


def _describe_limit(row: LimitsRow) -> Row:
    """Make a table line: a time has its interval, a PE count its range."""
    line: dict[str, object] = {}
    rate = "tokens_per_pe_second" if "tokens_per_second" in row else "samples_per_pe_second"
    for key, value in row.items():
        if key.endswith(("_p10", "_p90", "_second", "mfu")):
            continue
        low, high = read_range(row, key)
        line[key] = value or None if key == "marks" else value
        # A range of a single value adds nothing.
        if key in COUNTS and (low, high) != (None, None) and not low == value == high:
            texts = ("none" if count is None else f"{count:,}" for count in (value, low, high))
            line[key] = "{} ({} to {})".format(*texts)
        if key in TIMES:
            line[key] = Ranged(cast(float | None, value), low, high)
    # Of a strategy that is no axis of layouts it is that of one PE count, and no name of the line.
    if LAYOUT in line and not LAYOUT_COLUMNS.keys() & line.keys():
        line["fastest layout"] = line.pop(LAYOUT)
    return {
        **line,
        "strategy": shorten_label(row["strategy"]),
        HEADS[rate]: row.get(rate),
        "MFU": format_percent(row["mfu"]),
    }


def describe_crossover(row: CrossoverRow) -> Row:
    """Make a table line for a pair: where one becomes faster, or why it never does."""
    # Several: strategies overtake each other back and forth, since groups have to divide p.
    at = [format_value(row["along"], value) for value in row["at"]]
    rest = f" and {len(at) - CROSSOVERS} more" if len(at) > CROSSOVERS else ""
    line: dict[str, object] = {key: n for key, n in row.items() if key not in FOLDED}
    line |= {"strategy": shorten_label(row["strategy"]), "over": shorten_label(row["over"])}
    line[f"faster from {row['along']}"] = (
        f"{', '.join(at[:CROSSOVERS])}{rest}" if at else row["reason"]
    )
    odds = row.get("crosses_probability")
    ends = read_range(row, "first")
    # In some draws one never overtakes the other, whatever the parameter.
    texts = ("never" if end is None else format_value(row["along"], end) for end in ends)
    line[INTERVAL] = " to ".join(dict.fromkeys(texts)) if odds else None
    line["crosses"] = format_odds(odds)
    return line
