"""Tables of rankings, fronts and regrets: how strategies compare, and why others fail."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import cast

from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.entries.parameters import GIVEN, PARAMETERS
from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import format_count
from paradl.kernels.names.flags import TIGHT, TOO_SLOW
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS
from paradl.sweep.answers.objectives import Goal
from paradl.sweep.answers.system_settings import PLACES
from paradl.sweep.answers.types.questions import (
    ParetoRow,
    RankingRow,
    RegretRow,
)
from paradl.sweep.cells.selection import read_axis, write_value
from paradl.sweep.configurations.degrees import read_layout_words
from paradl.sweep.text.columns import (
    CHANCE,
    Time,
    find_range,
    format_cell,
    format_chance,
    format_coordinate,
    format_percent,
    format_ranged,
    write_memory,
    write_summary,
)
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.sentences import describe_networks
from paradl.sweep.text.tables import (
    SCREENFUL,
    print_table,
    print_text,
    shorten_label,
    show,
    tell_more,
)

# Columns behind those that say what was asked; JSON and CSV have all there are.
SHOWN = ("global_batch", "epochs", "precision", "software")
HEADS = {
    "tokens_per_pe_second": "tokens/s/PE",
    "samples_per_pe_second": "samples/s/PE",
}
# What the first row of a ranking is, by objective.
WORDS = {
    "epoch_time": "Fastest",
    "train_time": "Fastest to finish",
    "pe_hours": "Fewest PE-hours",
    "cost": "Cheapest",
    "memory": "Least memory",
}
REGRETS = {"worst_loss": "worst slowdown", "mean_loss": "mean slowdown"}
ADVICE = {TIGHT: "tight (--holds 90% leaves such layouts out)"}
LOSER = ("reason", "layouts", "remedy")
FRONT = 12  # rows of a long front
LISTED = 3  # scenarios in a cell of a regret; of more values only the ends


def show_ranking(rows: Sequence[RankingRow], form: Format, goal: Goal, every: bool = True) -> None:
    """Print the answer of `best`: the feasible strategies, then the losers.

    every: print all rankings in full. Otherwise layouts of the same degrees are one line, and of a
    sweep over a parameter of the machine that makes more than a screenful only the winners.
    """
    if form != "table" or not rows:
        show(rows, form)
        return
    allowed = [row for row in rows if row["feasible"]]
    plain: Sequence[Row] = rows
    given = [
        name for name in _list_given(_list_axes(rows[0])) if len({row[name] for row in plain}) > 1
    ]
    whole = every or not given or len(allowed) <= SCREENFUL
    # A sweep over a bandwidth has a ranking for each value: the winners are what to compare.
    kept = allowed if whole else [row for row in allowed if row["rank"] == 1][:SCREENFUL]
    if kept:
        winners = [row for row in allowed if row["rank"] == 1]
        for sentence in describe_networks(winners, partial(_write_headline, goal)):
            print_text(sentence)
        families = [[row] for row in kept] if every else _gather_alike(kept)
        _print_families(families, goal)
        # One sentence for each ranking; among winners of many the table says enough.
        if whole and (chances := [*_list_chances(rows, families, given)]):
            print_text(*chances)
        is_layouts = all(read_layout_words(cast(Row, row)) for row in allowed)
        tell_more(len(allowed) - len(families), "layout" if is_layouts else "row")
    _show_losers([row for row in rows if not row["feasible"]], whole)
    if reasons := _gather_reasons(rows):
        title = "Why others do not fit, and what would let them"
        print_table(reasons, title, asked=("layouts", "remedy"))


def _print_families(families: Sequence[Sequence[RankingRow]], goal: Goal) -> None:
    """Print a line for the first row of each family."""
    time = _choose_time([row for family in families for row in family])
    lines = [_describe_winner(first, goal, time, len(others)) for first, *others in families]
    if all(line["batch"] == line["global_batch"] for line in lines):  # --global-batch
        lines = [{name: n for name, n in line.items() if name != "batch"} for line in lines]
    print_table(lines, asked=(time, goal, CHANCE))


def _list_chances(
    rows: Sequence[RankingRow], families: Sequence[Sequence[RankingRow]], given: Sequence[str]
) -> Iterator[str]:
    """Yield the probability that the first of each ranking beats the second, of another line."""
    several = [name for name in ("model", "dataset") if len({cast(Row, r)[name] for r in rows}) > 1]
    for number, row in enumerate(rows):
        if (chance := row.get("faster_than_next")) is None:
            continue
        second = next(other for other in rows[number:] if other["rank"] != row["rank"])
        if any(row in family and second in family for family in families):
            continue
        values = (f"{name} {write_value(name, read_axis(row, name))}" for name in given)
        where = ", ".join([*(str(cast(Row, row)[name]) for name in (*several, "system")), *values])
        yield (
            f"{_name_choice(row)} is faster than {_name_choice(second)} with a probability of "
            f"{format_chance(chance)} ({where})."
        )


def _show_losers(rows: Sequence[RankingRow], whole: bool) -> None:
    if not rows:
        return
    shown = rows if whole else rows[:SCREENFUL]
    explained = any(row["rejection"] for row in rows)
    title = "Not feasible, at the nearest cell" if explained else "Not feasible"
    print_table([_describe_loser(row) for row in shown], title, asked=("why", "feasible with"))
    if not explained and any(TOO_SLOW not in row["limit"] for row in rows):
        print("--why says by how much, and what would make them feasible")
    tell_more(len(rows) - len(shown))


def _gather_reasons(rows: Sequence[RankingRow]) -> list[Row]:
    """List why other layouts do not fit; a line for all systems where it is the same.

    Memory, which other machines change, comes before what does not divide.
    """
    systems: dict[tuple[object, ...], dict[str, None]] = {}
    for row in rows:
        for loser in row.get("losers", ()):
            at = systems.setdefault((row["model"], *(cast(Row, loser)[name] for name in LOSER)), {})
            at[row["system"]] = None  # once, though it may have several rankings
    lines = [
        {"model": model, **dict(zip(LOSER, loser, strict=True)), "system": [*names]}
        for (model, *loser), names in systems.items()
    ]
    return sorted(lines, key=lambda line: line["reason"] != "memory")


def _gather_alike(rows: Sequence[RankingRow]) -> list[list[RankingRow]]:
    """Gather layouts that differ in settings alone, since degrees decide and settings mostly tie,
    and strategies on one PE, which are the same.
    """
    families: dict[object, list[RankingRow]] = {}
    for number, row in enumerate(rows):
        degrees, fields = row.get("degrees"), cast(Row, row)
        place = [fields[key] for key in (*LABELS[:3], *_list_axes(row))]
        key = (*place, *degrees.items()) if "hfu" in row and degrees else number
        if row["pe"] == 1 and "hfu" not in row:
            key = (*place, row["iteration_time"])
        families.setdefault(key, []).append(row)
    return [*families.values()]


def _describe_winner(row: RankingRow, goal: Goal, time: Time, alike: int) -> Row:
    """Make the table line of a feasible row: what was asked comes first, since tables are cut at
    the right. time: that with an interval. alike: rows like it that are not shown.
    """
    # Axes of the machine come before the strategy, those chosen for it behind it.
    axes, is_layout, fields = _list_axes(row), "hfu" in row, cast(Row, row)
    given = _list_given(axes)
    money = [key for key in ("cost", "pe_hours") if key == goal or (key == "cost" and key in row)]
    rate = "tokens_per_pe_second" if is_layout else "samples_per_pe_second"
    # A layout's words say its degrees.
    name, inside = ("layout", {}) if is_layout else ("strategy", _describe_inside(row))
    return {
        **{key: fields[key] for key in ("rank", *LABELS[:3], *given)},
        name: _name_choice(row),
        "alike": f"+{alike}" if alike else None,
        **{key: fields[key] for key in axes if key not in given},
        **{key: fields[key] for key in money if key == goal},
        time: find_range(row, time),
        CHANCE: None if (chance := row.get("holds")) is None else format_chance(chance),
        **{key: fields[key] for key in money},
        "MFU": format_percent(row["mfu"]),
        "memory": row["memory"],
        "fits": row["fits"],
        HEADS[rate]: fields[rate],
        "remarks": _list_remarks(row) or None,
        **inside,
        **{key: fields.get(key) for key in SHOWN},
        "iteration_time": row["iteration_time"] if time != "iteration_time" else find_range(row),
        "runs with": ", ".join(row.get("runs_with", ())) or None,
    }


def _describe_inside(row: RankingRow) -> Row:
    """Describe how a replica divides."""
    degrees = " x ".join(f"{name} {n}" for name, n in (row.get("degrees") or {}).items())
    return {
        "group": row["group_size"],
        "segments": row["segment_count"],
        "degrees": degrees or None,
    }


def _name_choice(row: RankingRow) -> str:
    return read_layout_words(row) or shorten_label(row["strategy"])


def _list_remarks(row: RankingRow) -> list[str]:
    return [*row["limit"], *row.get("remarks", ())]


def _choose_time(rows: Sequence[RankingRow]) -> Time:
    """Choose the time of the lines that has an interval: iterations compare of equal batches."""
    if rows[0].get("train_time") is not None:
        return "train_time"
    alike = "hfu" in rows[0] and len({row["global_batch"] for row in rows}) == 1
    return "iteration_time" if alike else "epoch_time"


def _write_headline(goal: Goal, rows: Sequence[RankingRow]) -> str:
    """State the best of some rankings, and what it reaches."""
    row = min(rows, key=lambda row: row.get(goal) or 0.0)
    words, odds = read_layout_words(row), ""
    said = ("pe", "batch", *((LAYOUT, *LAYOUT_COLUMNS) if words else ()))
    axes = (write_value(name, read_axis(row, name)) for name in _list_axes(row) if name not in said)
    where = ", ".join([row["system"], *axes])
    spent = {"cost": "cost {}, ", "pe_hours": "{} PE-hours, "}.get(goal, "")
    if (chance := row.get("holds")) is not None:
        odds = f", {CHANCE} {format_chance(chance)}"
    odds += "".join(f", {ADVICE.get(remark, remark)}" for remark in _list_remarks(row))
    if row.get("runs_with") == []:
        odds += ", no known software runs it"
    return (
        f"{WORDS[goal]}: {_name_choice(row)} on {format_count(row['pe'] or 0, 'PE')} of {where}: "
        f"{spent.format(format_cell(row.get(goal)))}"
        f"{write_summary(row, find_range(row))}{odds}"
    )


def show_front(
    rows: Sequence[ParetoRow],
    form: Format,
    every: bool,
    describe: Callable[[Sequence[ParetoRow]], str],
) -> None:
    """Print a front of `pareto`, thinned unless `every`. describe: its sentence."""
    if form != "table":
        show(rows, form)
        return
    kept: list[ParetoRow] = []
    for sentence in describe_networks(rows, describe):
        print_text(sentence)
    for _, of_network in itertools.groupby(rows, itemgetter("model", "dataset")):
        front = [*of_network]
        kept += front if every else [front[at] for at in _thin(len(front), FRONT)]
    lines = [{**row, "strategy": shorten_label(row["strategy"])} for row in kept]
    traded = [name for name in rows[0] if name != "fits"][-2:]  # it comes last
    print_table(lines, asked=traded)
    tell_more(len(rows) - len(kept), "configuration")


def _thin(count: int, most: int) -> list[int]:
    """List positions of at most so many rows of a front: both ends, and what lies between them by
    equal factors, since PE counts double.
    """
    if count <= SCREENFUL:
        return [*range(count)]
    steps = (count ** (n / (most - 1)) for n in range(most))
    return sorted({min(count - round(step), count - 1) for step in steps})


def describe_losers(rows: Sequence[RankingRow]) -> str:
    """List the limits that forbid the losers, for the end of a message."""
    reasons = dict.fromkeys(reason for row in rows for reason in row["limit"])
    return f": {', '.join(reasons)}" if reasons else ""


def describe_fastest(rows: Sequence[RankingRow]) -> str:
    """State what finishes first, for the end of a message; empty if nothing trains."""
    times = [(row["train_time"], row) for row in rows if row.get("train_time")]
    if not times:
        return ""
    _, row = min(times, key=itemgetter(0))
    return (
        f"; at best {format_ranged(find_range(row, 'train_time'), 's')}, by "
        f"{shorten_label(row['strategy'])} on {format_count(row['pe'] or 0, 'PE')} of "
        f"{row['system']}"
    )


def _describe_loser(row: RankingRow) -> Row:
    """Make the table line of a loser: its most nearly feasible cell, and what would help."""
    fields: Row = row
    labels = {name: fields[name] for name in LABELS} | {"strategy": shorten_label(row["strategy"])}
    axes, rejection = _list_axes(row), row["rejection"]
    # Without --why of a store, nothing was computed about losers.
    if rejection is None:
        return labels | {name: fields[name] for name in _list_given(axes)} | {"why": row["limit"]}
    needed, capacity = rejection["memory"], rejection["memory_capacity"]
    # What formulas allow is refused by a required probability.
    fits = rejection["fits"] if needed is not None and needed <= capacity else None
    reasons = [
        f"memory {write_memory(needed, capacity, fits)}" if reason == "memory" else reason
        for reason in rejection["limit"]
    ]
    changes = (
        f"{name}={format_cell(value, 'B') if name == 'memory_capacity' else value}"
        for name, value in rejection["changes"].items()
    )
    nearest = {name: value for name, value in rejection.items() if name in axes}
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


def describe_regret(over: str, row: RegretRow) -> Row:
    """Make a table line for a strategy: its slowdowns. over: the uncertain input."""
    known = (row.get("worst_precision"), row.get("worst_software"))
    settings = [setting for setting in known if setting is not None]
    worst = None if row["worst_at"] is None else format_coordinate(over, row["worst_at"])
    return {
        **{REGRETS.get(key, key): n for key, n in row.items() if key not in PLACES["worst_at"]},
        REGRETS["worst_loss"]: _write_slowdown(row["worst_loss"]),
        REGRETS["mean_loss"]: _write_slowdown(row["mean_loss"]),
        "strategy": shorten_label(row["strategy"]),
        "worst_at": f"{worst} ({', '.join(settings)})" if settings and worst else worst,
        "infeasible_at": _write_scenarios(over, row["infeasible_at"]) or None,
    }


def _write_slowdown(loss: float | None) -> str | None:
    """Write a slowdown: 0.6 % slower, or 65.6 times as slow."""
    if loss is None:
        return None
    return f"{loss:.1%}" if loss < 1 else f"{format_cell(1 + loss)} x"


def _write_scenarios(over: str, values: Sequence[object]) -> str:
    texts = [format_coordinate(over, value) for value in values]
    if len(texts) <= LISTED:
        return ", ".join(texts)
    if over in PARAMETERS:
        return f"{len(texts):,} values, {texts[0]} to {texts[-1]}"
    return f"{', '.join(texts[:LISTED])} and {len(texts) - LISTED:,} more"
