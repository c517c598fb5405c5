"""Tables of rankings, regrets, limits and crossovers: how strategies compare, what stops them."""

import itertools
from collections.abc import Sequence
from typing import Any

from paradl.grids.entries.parameters import GIVEN, PARAMETERS
from paradl.grids.grid import LABELS
from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.flags import TIGHT
from paradl.sweep.answers.system_settings import PLACES
from paradl.sweep.cases.degrees import read_layout_words
from paradl.sweep.cells.selection import write_value
from paradl.sweep.show.columns import (
    INTERVAL,
    format_coordinate,
    format_digits,
    format_duration,
    format_interval,
    format_odds,
    format_percent,
    format_value,
)
from paradl.sweep.show.data import Format, Row
from paradl.sweep.show.rows import SCREENFUL, shorten_label, show, show_rows, tell_more
from paradl.sweep.show.tables import print_table

# Columns after a row's labels and axes; JSON and CSV have all there are.
SHOWN = (
    *("degrees", "layout", "group_size", "segment_count", "precision", "software", "global_batch"),
    *("epochs", "train_time", "epoch_time", "cost", "memory"),
)
HEADS = {"group_size": "group", "segment_count": "segments"}
REGRETS = {"worst_loss": "worst slowdown", "mean_loss": "mean slowdown"}
LISTED = 3  # scenarios in a cell of a regret; of more values only the ends


def show_ranking(rows: Sequence[Row], form: Format, goal: str, every: bool = True) -> None:
    """Print the answer of `best`: the feasible strategies, then the losers.

    every: print all rankings in full. Otherwise only the winners, where a sweep over a parameter of
    the machine makes more than a screenful.
    """
    if form != "table" or not rows:
        show(rows, form)
        return
    allowed = [row for row in rows if row["feasible"]]
    given = [
        name for name in _list_given(_list_axes(rows[0])) if len({row[name] for row in rows}) > 1
    ]
    whole = every or not given or len(allowed) <= SCREENFUL
    # A sweep over a bandwidth has a ranking for each value: the winners are what to compare.
    kept = allowed if whole else [row for row in allowed if row["rank"] == 1][:SCREENFUL]
    if kept:
        print_table([_describe_winner(row, goal) for row in kept])
        # One sentence for each ranking; among winners of many the table says enough.
        for number, row in enumerate(rows if whole else ()):
            if row.get("faster_than_next") is not None:
                second = next(other for other in rows[number:] if other["rank"] != row["rank"])
                print(_describe_chance(row, second, given))
        tell_more(len(allowed) - len(kept))
    _show_losers([row for row in rows if not row["feasible"]], whole)
    for row in rows:
        if reasons := row.get("losers"):
            print_table(
                reasons, f"Why others do not fit on {row['system']}, and what would let them"
            )


def _show_losers(rows: Sequence[Row], whole: bool) -> None:
    if not rows:
        return
    shown = rows if whole else rows[:SCREENFUL]
    explained = any(row["rejection"] for row in rows)
    title = "Not feasible, at the nearest cell" if explained else "Not feasible"
    print_table([_describe_loser(row) for row in shown], title)
    if not explained:
        print("--why says by how much, and what would make them feasible")
    tell_more(len(rows) - len(shown))


def _describe_winner(row: Row, goal: str) -> Row:
    """Make the table line of a feasible row."""
    # Axes of the machine come before the strategy, those chosen for it behind it.
    axes = _list_axes(row)
    given = _list_given(axes)
    chosen = [axis for axis in axes if axis not in given]
    hours = ["pe_hours"] if goal in ("pe_hours", "cost") else []
    if "hfu" in row:
        return _describe_layout(row, [*LABELS[:3], *given, *chosen], hours, goal)
    order = ["rank", *LABELS[:3], *given, LABELS[3], *chosen, *SHOWN, *hours]
    ends = (
        format_interval(row.get(f"{time}_p10"), row.get(f"{time}_p90"))
        for time in ("train_time", "epoch_time")
    )
    return {
        **{HEADS.get(key, key): row.get(key) for key in order},
        "strategy": shorten_label(row["strategy"]),
        # A layout's words say its degrees, too.
        "degrees": None
        if read_layout_words(row) is not None
        else " x ".join(f"{name} {n}" for name, n in row.get("degrees", {}).items()) or None,
        INTERVAL: next(filter(None, ends), None),
        "marks": row["limit"] or None,
    }


def _describe_layout(row: Row, places: Sequence[str], hours: Sequence[str], goal: str) -> Row:
    """Make the table line of a layout; the interval is that of its iteration."""
    trained = row.get("train_time")
    time = "train_time" if trained else "epoch_time"
    share = row["iteration_time"] / row[time]
    low, high = (row.get(f"{time}_{end}") for end in ("p10", "p90"))
    is_known = low is not None and high is not None
    marks = [*row["limit"], *(name for name in row["remarks"] if name == TIGHT)]
    return {
        **{key: row[key] for key in ("rank", *places)},
        "layout": row["layout"],
        **{key: row[key] for key in ("cost", *hours) if goal == key and key in row},
        "iteration s": format_digits(row["iteration_time"]),
        INTERVAL: format_interval(low * share, high * share) if is_known else None,
        **({"training": format_duration(trained)} if trained else {}),
        **{key: row[key] for key in ("cost", *hours) if key in row},
        "tokens/s/PE": format_digits(row["tokens_per_pe_second"]),
        "MFU": format_percent(row["mfu"]),
        "memory": row["memory"],
        "marks": marks or None,
        "runs with": ", ".join(row["runs_with"]) or None,
        **{key: row.get(key) for key in ("precision", "software", "global_batch")},
    }


def describe_losers(rows: Sequence[Row]) -> str:
    """List the limits that forbid the losers, for the end of a message."""
    reasons = dict.fromkeys(reason for row in rows for reason in row["limit"])
    return f": {', '.join(reasons)}" if reasons else ""


def _describe_chance(row: Row, second: Row, given: Sequence[str]) -> str:
    """State the probability that a row beats the next one."""
    first, other = shorten_label(row["strategy"]), shorten_label(second["strategy"])
    chance = row["faster_than_next"]
    # Draws are a sample: neither 0 % nor 100 % is certain.
    odds = f"{chance:.0%}" if 0.01 <= chance < 0.995 else "over 99%" if chance > 0.5 else "under 1%"
    values = (f"{name} {write_value(name, row[name])}" for name in given)
    where = ", ".join([row["system"], *values])
    return f"{first} is faster than {other} with a probability of {odds} ({where})."


def _describe_loser(row: Row) -> Row:
    """Make the table line of a loser: its most nearly feasible cell, and what would help."""
    labels = {name: row[name] for name in LABELS} | {"strategy": shorten_label(row["strategy"])}
    axes, rejection = _list_axes(row), row["rejection"]
    # Without --why of a store, nothing was computed about losers.
    if rejection is None:
        return labels | {name: row[name] for name in _list_given(axes)} | {"why": row["limit"]}
    needed, capacity = (
        None if rejection.get(key) is None else format_quantity(rejection[key], "B")
        for key in ("memory", "memory_capacity")
    )
    reasons = [
        f"memory {needed} of {capacity}" if reason == "memory" else reason
        for reason in rejection["limit"]
    ]
    changes = (
        f"{name}={format_quantity(value, 'B') if name == 'memory_capacity' else value}"
        for name, value in rejection["changes"].items()
    )
    nearest = {name: rejection[name] for name in axes if name in rejection}
    return {**labels, **nearest, "why": reasons, "feasible with": " or ".join(changes) or None}


def _list_given(axes: Sequence[str]) -> list[str]:
    """List the axes that the machine fixes, and the names of zipped axes with such parameters."""
    # The name of a zipped axis comes right before its parameters.
    pairs = itertools.pairwise([*axes, ""])
    return [
        axis
        for axis, following in pairs
        if axis in GIVEN or (axis not in PARAMETERS and following in GIVEN)
    ]


def _list_axes(row: Row) -> list[str]:
    """List a row's axes: the keys between its labels and `replicas`."""
    keys = list(row)
    return keys[keys.index("strategy") + 1 : keys.index("replicas")]


def describe_regret(over: str, row: Row) -> Row:
    """Make a table line for a strategy: its slowdowns. over: the uncertain input."""
    settings = [row[key] for key in PLACES["worst_at"] if row.get(key) is not None]
    worst = None if row["worst_at"] is None else format_coordinate(over, row["worst_at"])
    return {
        **{REGRETS.get(key, key): row[key] for key in row if key not in PLACES["worst_at"]},
        "worst_at": f"{worst} ({', '.join(settings)})" if settings and worst else worst,
        "infeasible_at": _write_scenarios(over, row["infeasible_at"]) or None,
    }


def _write_scenarios(over: str, values: Sequence[Any]) -> str:
    texts = [format_coordinate(over, value) for value in values]
    if len(texts) <= LISTED:
        return ", ".join(texts)
    if over in PARAMETERS:
        return f"{len(texts):,} values, {texts[0]} to {texts[-1]}"
    return f"{', '.join(texts[:LISTED])} and {len(texts) - LISTED:,} more"


TIMES = ("fastest_time", "soonest_time")
COUNTS = ("fastest_pe", "soonest_pe", "efficient_pe")
# Crossovers listed per pair: a hybrid may overtake at every multiple of its group size.
CROSSOVERS = 4
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
    rest = f" and {len(at) - CROSSOVERS} more" if len(at) > CROSSOVERS else ""
    line = {key: value for key, value in row.items() if key not in FOLDED}
    line |= {name: shorten_label(row[name]) for name in ("strategy", "over")}
    if "over_system" in row:
        line["over"] += f" on {row['over_system']}"
    word = "cheaper" if goal == "cost" else "faster"
    line[f"{word} from {row['along']}"] = (
        f"{', '.join(at[:CROSSOVERS])}{rest}" if at else row["reason"]
    )
    odds = row.get("crosses_probability")
    ends = (row.get(f"first_p{percent}") for percent in (10, 90))
    # In some draws one never overtakes the other, whatever the parameter.
    texts = ("never" if end is None else format_value(row["along"], end) for end in ends)
    line[INTERVAL] = " to ".join(dict.fromkeys(texts)) if odds else None
    line["crosses"] = format_odds(odds)
    return line
