"""Layouts that fit as text: a table of them, and why others do not."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.answers.types.fitting import TIGHT, UNSUPPORTED, FitAnswer, LayoutRow, TimeParts
from paradl.sweep.show.columns import format_digits, format_duration, format_percent
from paradl.sweep.show.data import Format, Row
from paradl.sweep.show.rows import SCREENFUL, show_sections, tell_more
from paradl.sweep.show.tables import print_table
from paradl.sweep.show.visible import escape_lines

URGENT = (TIGHT, UNSUPPORTED)


def show_fit(answer: FitAnswer, form: Format, every: bool = False) -> None:
    """Print the answer of `fit`; CSV has one line per layout, JSON all of it."""
    show_sections(answer, answer["layouts"], form, partial(_print, answer, every))


def _print(answer: FitAnswer, every: bool) -> None:
    """Print the question, what fits and why others do not; then what to type."""
    print(escape_lines("\n".join(_describe(answer))))
    rows = answer["layouts"] if every else answer["layouts"][:SCREENFUL]
    if answer["parts"]:  # one layout, and others near it
        parts = [{**row, "memory": format_quantity(row["memory"], "B")} for row in answer["parts"]]
        print_table(parts, "Memory by part", complete="json")
        if answer["changes"]:
            title = "Larger micro-batches" if answer["feasible"] else "What would let it fit"
            print_table(list(map(_describe_layout, answer["changes"])), title, complete="json")
    elif rows:
        print_table(list(map(_describe_layout, rows)), "Layouts that fit", complete="csv")
        tell_more(answer["ranked"] - sum(1 + len(row["same"]) for row in rows))
    # Of a single layout, the changes above say what would let it fit.
    if answer["losers"] and not answer["parts"]:
        print_table(answer["losers"], "Why others do not, and what would let them fit")
    for script in answer["launch"]:
        print(f"\n# {script['file']}\n{script['text']}")


def _describe(answer: FitAnswer) -> Iterator[str]:
    """Yield lines about the question, and about what fits."""
    yield (
        f"{answer['model']}, {answer['parameters'] / 1e9:,.4g} billion parameters, on "
        f"{format_count(answer['pe'], 'PE')} of {answer['system']}, "
        f"{format_quantity(answer['capacity'], 'B')} each"
        + (f", {format_percent(answer['headroom'])} of it kept free" if answer["headroom"] else "")
    )
    yield (
        f"{format_count(answer['global_batch'], 'sequence')} of "
        f"{format_count(answer['length'], 'token')} per iteration, "
        f"{answer['precision']}, {answer['attention']} attention, {answer['loss']} loss, Adam, "
        f"pipelines by {answer['schedule']}, context by {answer['context_by']}"
    )
    smallest = answer["smallest"]
    if answer["times"]:
        yield f"times: {answer['times']}"
    if answer["parts"] and smallest:
        fits = "fits" if answer["feasible"] else "does not fit"
        used = f"{format_quantity(smallest['memory'], 'B')} on stage {smallest['stage']}"
        remarks = "".join(f", {remark}" for remark in smallest["remarks"])
        yield f"{smallest['layout']} {fits}: {used}{remarks}"
        yield f"runs with: {', '.join(smallest['runs_with']) or 'no stack of --launch'}"
        if smallest["time"]:
            yield _describe_time(smallest["time"])
            yield _describe_exchanges(smallest["time"])
        return
    yield f"candidates that fit: {answer['fitting']:,} of {answer['candidates']:,}"
    if answer["faster_than_next"] is not None:
        chance = format_percent(answer["faster_than_next"])
        yield f"the first is faster than the second with a probability of {chance}"
    if answer["layouts"] and (time := answer["layouts"][0]["time"]):
        yield f"first layout: {_describe_exchanges(time)}"
    if smallest:
        least = f"{format_quantity(smallest['memory'], 'B')}, {smallest['layout']}"
        yield f"least memory: {least}{'' if smallest['fits'] else ', which does not fit'}"
        if smallest["time"] and not smallest["fits"]:
            yield _describe_time(smallest["time"])


def _write_interval(time: TimeParts) -> str:
    return " to ".join(
        format_digits(time[end]) for end in ("iteration_time_p10", "iteration_time_p90")
    )


def _describe_time(time: TimeParts) -> str:
    """Describe the time of a layout, with its largest terms."""
    terms = sorted(time["terms"].items(), key=lambda term: -term[1])[:4]
    shares = ", ".join(
        f"{name} {format_percent(seconds / time['iteration_time'])}" for name, seconds in terms
    )
    return (
        f"{format_digits(time['iteration_time'])} s per iteration (80 %: {_write_interval(time)}), "
        f"MFU {format_percent(time['mfu'])}, HFU {format_percent(time['hfu'])}: {shares}"
    )


def _describe_exchanges(time: TimeParts) -> str:
    """Describe communication, exposed and in total, and the pipeline's bubble."""
    exchanges = ", ".join(
        f"{name} {time['terms'][name]:.4g} of {total:.4g} s"
        for name, total in time["exchanges"].items()
        if total
    )
    bubble = format_percent(time["bubble_share"])
    return f"exposed communication: {exchanges or 'none'}; bubble {bubble} of the time"


def _describe_rates(time: TimeParts) -> dict[str, str]:
    """Return the columns that follow from a layout's time."""
    columns = {
        "tokens/s/PE": format_digits(time["tokens_per_pe_second"]),
        "MFU": format_percent(time["mfu"]),
    }
    if time["train_time"] is not None:
        columns["days"] = format_digits(time["train_time"] / 86400)
    if time["pe_hours"] is not None:
        columns["PE-hours"] = f"{time['pe_hours']:,.0f}"
    if time["cost"] is not None:
        columns["cost"] = f"{time['cost']:,.0f}"
    return columns


def _mark_layout(row: LayoutRow | Row) -> str | None:
    """Return a layout with the remarks that matter most: their column is left out for width."""
    urgent = [remark for remark in row["remarks"] if remark in URGENT]
    return ", ".join([row["layout"], *urgent]) if row["layout"] else None


def _describe_layout(row: LayoutRow) -> dict[str, Any]:
    """Make a line for a layout: its time if there is one, else its memory by part [GB]."""
    columns, time, ties = {"memory": row["memory"]}, row["time"], len(row["same"])
    remarks = [remark for remark in row["remarks"] if remark not in URGENT]
    if time is None:  # else a terminal has no room for both
        parts = dict(row["memory_parts"])
        # What ZeRO 3 gathers is a copy of weights.
        columns["weights"] = parts.pop("weights") + parts.pop("gathered")
        columns |= {name: parts.pop(name) for name in ("gradients", "states", "activations")}
        columns["others"] = sum(parts.values())
    return {
        "layout": _mark_layout(row),
        **({"iteration s": format_digits(time["iteration_time"])} if time else {}),
        **({"80 % interval": _write_interval(time)} if time else {}),
        **(_describe_rates(time) if time else {}),
        **{f"{name} GB": f"{size / 1e9:.1f}" for name, size in columns.items()},
        "used": format_percent(row["capacity_used"]),
        "remarks": ", ".join([*remarks, *([format_count(ties, "tie")] if ties else [])]),
        "runs with": ", ".join(row["runs_with"]),
    }


def describe_fastest(row: Row) -> dict[str, Any]:
    """Make a line for the fastest layout of a PE count, with times in units that planners use."""
    unseen = ("meets", "holds", "remarks")
    line = {name: value for name, value in row.items() if name not in unseen}
    line["layout"] = _mark_layout(row)
    for name in ("mfu", "efficiency", "share"):
        if row.get(name) is not None:
            line[name] = format_percent(row[name])
    if row.get("train_time") is not None:
        line["train_time"] = format_duration(row["train_time"])
    if row.get("holds") is not None:
        line["P(deadline met)"] = f"{row['holds']:.0%}"
    return line
