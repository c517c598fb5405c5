"""Answers about what binds and what to buy, as text."""

from collections.abc import Sequence

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from grids.reading.units import format_quantity
from sweep.cells.source import CHOSEN
from sweep.show.columns import format_duration, format_value
from sweep.show.ranking import shorten_label
from sweep.show.rows import show_rows
from sweep.show.tables import Format, Row, show

# Parameters of a cell that are shown unless all are asked for: those of the largest effect.
FIRST = 10


def show_bottlenecks(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a cell, then of each strategy what binds its last one, in a sentence."""
    show_rows(rows, form, every, _describe_bottleneck, above=LABELS)
    if form != "table":
        return
    for row in {row["strategy"]: row for row in rows if row["feasible"]}.values():
        kind = "" if row["kind"] == "work" else f" It is a {row['kind']}."
        print(f"{settle_label(row)} on {row['pe']:,}: {row['sentence']}{kind}")
        print(f"    memory: {_list_parts(row['memory_parts'])}")


def _describe_bottleneck(row: Row) -> Row:
    """A line: what binds, with its interval where draws give one."""
    return {
        **_take_place(row),
        **_list_choices(row),
        "epoch_time": row["epoch_time"],
        "computing": f"{row['computing']:.0%}",
        "bottleneck": row["binds"],
        "share": f"{row['share']:.0%}",
        **_describe_share(row),
        "memory": row["memory"],
        "feasible": row["feasible"],
    }


def _describe_share(row: Row) -> Row:
    """The 80 % interval of what binds, and how probable it is that it does."""
    if row.get("share_p10") is None:
        return {}
    interval = f"{100 * row['share_p10']:.0f} to {100 * row['share_p90']:.0f}%"
    return {"80 % interval": interval, "probability": format_odds(row["binds_probability"])}


def show_sensitivities(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a parameter, the largest gain first; ten a cell unless all are asked for."""
    if form != "table":
        show(rows, form)
        return
    cells: dict[str, list[Row]] = {}
    for row in rows:
        cells.setdefault(str(_take_place(row)), []).append(row)
    kept = [row for cell in cells.values() for row in (cell if every else cell[:FIRST])]
    show_rows(
        kept, form, every, _describe_sensitivity, above=LABELS, left_out=len(rows) - len(kept)
    )


def _describe_sensitivity(row: Row) -> Row:
    """A line: a parameter, and what changing it does to the time."""
    return {
        **_take_place(row),
        "parameter": row["parameter"],
        "value": format_value(row["parameter"], row["value"]),
        "elasticity": row["elasticity"],
        "upgrade": row["upgrade"],
        "time": None if row["change"] is None else f"{row['change']:+.1%}",
    }


def show_provisions(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a strategy, that of the fewest PEs first."""
    show_rows(rows, form, every, _describe_provision, above=LABELS)


def _describe_provision(row: Row) -> Row:
    """A line: what to buy; the unit stands behind each time, and not in the head."""
    kept = {key: row[key] for key in row if key not in ("replicas", "segment_count")}
    time, holds = row["train_time"], row["holds"]
    kept |= {
        "strategy": shorten_label(row["strategy"]),
        "train_time": None if time is None else format_duration(time),
        "holds": None if holds is None else f"{holds:.0%}",
    }
    heads = {"train_time": "time", "holds": "P(deadline met)"}
    return {heads.get(key, key): value for key, value in kept.items()}


def show_needs(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print a line a cell: what the machine has, and what it takes."""
    show_rows(rows, form, every, _describe_need, above=LABELS)


def _describe_need(row: Row) -> Row:
    """A line: the value that a goal takes, beside the machine's."""
    return {
        **_take_place(row),
        "this system": format_value(row["parameter"], row["own"]),
        "needed": row["reason"] or format_value(row["parameter"], row["needed"]),
        **_describe_range(row),
    }


def _describe_range(row: Row) -> Row:
    """The 80 % interval of a need, or of what is reached at best; whether it can be met at all."""
    if row.get("met_probability") is None:
        return {}
    if row["needed"] is None and row["reason"] != "any value will do":
        ends = [f"{row[f'efficiency_p{percent}']:.0%}" for percent in (10, 90)]
    else:
        needs = [row[f"needed_p{percent}"] for percent in (10, 90)]
        ends = ["never" if each is None else format_value(row["parameter"], each) for each in needs]
    return {"80 % interval": " to ".join(ends), "can be met": format_odds(row["met_probability"])}


def _take_place(row: Row) -> Row:
    """Labels and axes of a row."""
    kept = (*LABELS, "precision", "software", *PARAMETERS)
    place = {key: value for key, value in row.items() if key in kept}
    return place | {"strategy": shorten_label(row["strategy"])}


def _list_choices(row: Row) -> Row:
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


def format_odds(share: float) -> str:
    """A share of the draws; of thirty-two none and all are no certainty."""
    if 0 < share < 1:
        return f"{share:.0%}"
    return "over 97%" if share else "under 3%"


def _list_parts(parts: dict[str, float]) -> str:
    """Parts of the memory, the largest first."""
    sizes = sorted(parts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {format_quantity(size, 'B')}" for name, size in sizes if size)
