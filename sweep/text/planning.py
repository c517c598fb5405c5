"""Tables for planners: bottlenecks, sensitivities, provisioning, and what a goal needs."""

from collections.abc import Sequence

from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import LABELS
from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS
from paradl.sweep.answers.numbers import read_range
from paradl.sweep.answers.types.questions import (
    BottleneckRow,
    NeedRow,
    ProvisionRow,
    SensitivityRow,
)
from paradl.sweep.cells.reader import CHOSEN
from paradl.sweep.text.columns import (
    CHANCE,
    INTERVAL,
    format_chance,
    format_odds,
    format_percent,
    format_value,
    write_memory,
)
from paradl.sweep.text.data import NAMES, Format, Row
from paradl.sweep.text.tables import print_text, shorten_label, show, show_rows

# Parameters listed per cell without --all: those of the largest effect.
FIRST = 10


def show_bottlenecks(rows: Sequence[BottleneckRow], form: Format, every: bool) -> None:
    """Print a sentence on each strategy, then a line per cell."""
    # Rows ascend in p, so this keeps each strategy's largest p, where its bottleneck shows most.
    largest = {row["strategy"]: row for row in rows if row["feasible"]}
    # Of several places the table says enough.
    places = {(row["model"], row["dataset"], row["system"]) for row in rows}
    for row in largest.values() if form == "table" and len(places) == 1 else ():
        kind = "" if row["kind"] == "work" else f" It is a {row['kind']}."
        parts = sorted(row["memory_parts"].items(), key=lambda part: -part[1])
        sizes = (f"{name} {format_quantity(size, 'B')}" for name, size in parts if size)
        memory = write_memory(row["memory"], row["memory_capacity"], row["fits"])
        print_text(
            f"{row.get('layout') or settle_label(row)} on {row['pe']:,}: {row['sentence']}{kind} "
            f"Memory {memory}: {', '.join(sizes)}."
        )
    asked = ("bottleneck", "share", INTERVAL, "iteration_time", "feasible")
    show_rows(rows, form, every, _describe_bottleneck, asked=asked)


def _describe_bottleneck(row: BottleneckRow) -> Row:
    """Make a table line: the largest term and its share of the time."""
    # Table III has no draws, and so no interval.
    low, high = read_range(row, "share")
    interval = None if low is None or high is None else f"{100 * low:.0f} to {100 * high:.0f}%"
    fields: Row = row
    chosen = {
        name: fields[column] if f"{name}=best" in row["strategy"] else None
        for name, column in CHOSEN.items()
    }
    return {
        **_take_place(row),
        **chosen,
        "bottleneck": row["bottleneck"],
        "share": f"{row['share']:.0%}",
        INTERVAL: interval,
        "iteration_time": row["iteration_time"],
        "MFU": format_percent(row["mfu"]),
        "memory": row["memory"],
        "computing": f"{row['computing']:.0%}",
        "probability": format_odds(row.get("bottleneck_probability")),
        "feasible": row["feasible"],
        "fits": row["fits"],
    }


def show_sensitivities(rows: Sequence[SensitivityRow], form: Format, every: bool) -> None:
    """Print a line per parameter, the largest gain first; ten per cell without --all."""
    if form != "table":
        show(rows, form)
        return
    cells: dict[str, list[SensitivityRow]] = {}
    # Grouped by cell: ten parameters of the first cell would hide those of all others.
    for row in rows:
        cells.setdefault(str(_take_place(row)), []).append(row)
    if len(cells) == 1:
        print_text(_write_gain(rows[0]))
    kept = [row for cell in cells.values() for row in (cell if every else cell[:FIRST])]
    show_rows(kept, form, every, _describe_sensitivity, left_out=len(rows) - len(kept))


def _write_gain(row: SensitivityRow) -> str:
    """State the upgrade that gains most."""
    words = row["parameter"].replace("_", " ")
    if not row["change"]:
        return "No upgrade of a single parameter changes the time."
    return f"The largest gain: {words} {row['upgrade']} takes {-row['change']:.1%} off the time."


def _describe_sensitivity(row: SensitivityRow) -> Row:
    return {
        **_take_place(row),
        "parameter": row["parameter"],
        "value": format_value(row["parameter"], row["value"]),
        "elasticity": row["elasticity"],
        "upgrade": row["upgrade"],
        "time": None if row["change"] is None else f"{row['change']:+.1%}".replace("-0.0%", "0.0%"),
        "fits": row["fits"],
    }


def describe_provision(row: ProvisionRow) -> Row:
    """Make a table line for a strategy: the fewest PEs that it needs."""
    time, odds, layout = row["train_time"], row["holds"], row.get("layout")
    chosen = {} if layout else {"group": row["group_size"]}
    fields: Row = row
    asked = ("pe", "train_time", "holds", "pe_hours", "cost", "reason")
    said = LAYOUT_COLUMNS if layout else ()
    left = ("layout", "degrees", "replicas", "segment_count", "group_size", *said, *asked)
    return {
        **{key: fields[key] for key in LABELS},
        "strategy": layout or shorten_label(row["strategy"]),
        "pe": row["pe"],
        "reason": row["reason"],
        "time": None if time is None else format_quantity(time, "s", 3),
        CHANCE: None if odds is None else format_chance(odds),
        **{key: fields[key] for key in ("pe_hours", "cost") if key in row},
        **chosen,
        **{key: value for key, value in row.items() if key not in (*LABELS, *left)},
    }


def describe_need(row: NeedRow) -> Row:
    """Make a table line for a cell: the system's value of a parameter, and the one it needs."""
    return {
        **_take_place(row),
        "this system": None if row["own"] is None else format_value(row["parameter"], row["own"]),
        "needed": row["reason"] or format_value(row["parameter"], row["needed"]),
        INTERVAL: _describe_ends(row),
        "can be met": format_odds(row.get("met_probability")),
    }


def _describe_ends(row: NeedRow) -> str | None:
    """Describe the 80 % interval of the needed value, or of the best efficiency reached."""
    met = row.get("met_probability")
    if met is None:
        return None
    # No value reaches the goal: the interval is that of the best efficiency.
    if str(row["reason"]).startswith("never"):
        return " to ".join(f"{end or 0.0:.0%}" for end in read_range(row, "efficiency"))
    ends = read_range(row, "needed")
    # An end is missing if no value is enough in a tenth of the draws, or if any value is.
    if ends == (None, None) and met >= 0.1:
        return None if met >= 0.9 else "any to never"
    missing = "any" if met >= 0.9 else "never"
    return " to ".join(
        missing if end is None else format_value(row["parameter"], end) for end in ends
    )


def _take_place(row: Row) -> Row:
    """Return a row's labels and axes, which say which cell it is about."""
    kept = (*LABELS, LAYOUT, "precision", "software", *PARAMETERS)
    labels = {key: value for key, value in row.items() if key in kept}
    return labels | {"strategy": shorten_label(str(row["strategy"]))}


def settle_label(row: Row) -> str:
    """Return a row's strategy with its chosen settings, a label that `predict` accepts."""
    label = str(row["strategy"])
    for name, column in CHOSEN.items():
        label = label.replace(f"{name}=best", f"{name}={row[column]}")
    return NAMES.get(label, label)
