"""The answer of `place`: speed-up, devices, and which operators run where."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.show.columns import format_percent
from paradl.sweep.show.data import Format, Row
from paradl.sweep.show.rows import show_sections
from paradl.sweep.show.tables import print_table
from paradl.sweep.show.visible import escape_lines


def show_placement(answer: Mapping[str, Any], form: Format) -> None:
    """Print the answer of `place`; CSV has one line per operator."""
    show_sections(answer, answer.get("operators", []), form, partial(_print, answer))


def _print(answer: Mapping[str, Any]) -> None:
    print(escape_lines("\n".join(_describe(answer))))
    if answer["feasible"]:
        print_table([_lay_out_device(answer, device) for device in range(answer["devices"])])
        # All micro-batches run on the same devices.
        first = [row for row in answer["operators"] if not row["micro_batch"]]
        of_first = "" if answer["micro_batches"] == 1 else " of the first micro-batch"
        print_table(_list_runs(first), f"Operators{of_first}, in the order of the graph")


def _describe(answer: Mapping[str, Any]) -> list[str]:
    """List lines about the question, the time of a step, and how near it is to the best."""
    pes = ", ".join(map(str, answer["pes"]))
    batch = "" if answer["batch"] is None else f", {format_count(answer['batch'], 'sample')}"
    batch += _describe_division(answer)
    head = f"{answer['graph']} on {answer['system']}, PEs {pes}{batch}; times: {answer['times']}"
    if not answer["feasible"]:
        return [head]
    bounds = answer["bounds"]
    proof = (
        "proven to be optimal"
        if answer["proven"]
        else f"at most {format_percent(answer['gap'])} of it could be saved"
    )
    alone = "" if answer["fits_one"] else ", which it would not fit on"
    filled = " and fill" if answer["micro_batches"] > 1 else ""
    lines = [
        head,
        f"step: {_time(answer['step_time'])}, forward {_time(answer['forward_time'])} and backward "
        f"{_time(answer['backward_time'])}: {proof}",
        f"SU^{answer['devices']}: {answer['speedup']:.4g} over "
        f"{_time(answer['serial_time'])} on one device{alone}",
        f"no step is shorter than {_time(bounds['proven'])} (critical path{filled} "
        f"{_time(bounds['critical_path'])}, work over devices {_time(bounds['work'])})",
        f"sent: {format_quantity(answer['sent_bytes'], 'B')}; the busiest link is busy "
        f"{format_percent(answer['busiest_link'])} of the step",
    ]
    if answer["micro_batches"] > 1 and answer["times"] == "measured":
        lines.append(
            "a micro-batch takes its share of the measured times; further launches are not counted"
        )
    if answer["micro_batches"] > 1:
        lines.append(
            "this is a schedule; for a prediction, give predict or hybrid the strategy "
            f"'placement:segments={answer['micro_batches']}'"
        )
    if answer["busiest_link"] > 1:
        lines.append("messages would queue, so the step takes longer than this")
    return lines


def _describe_division(answer: Mapping[str, Any]) -> str:
    count, samples = answer["micro_batches"], answer["samples"]
    if count == 1:
        return ""
    if samples is None or len({*samples}) == 1:
        size = "" if samples is None else f" of {samples[0]:,}"
        return f" in {format_count(count, 'micro-batch')}{size}"
    return f" in micro-batches of {', '.join(map(str, samples))}"


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def _lay_out_device(answer: Mapping[str, Any], device: int) -> dict[str, Any]:
    rows = [row for row in answer["operators"] if row["device"] == device]
    busy = {
        name: sum(row[f"{name}_end"] - row[f"{name}_start"] for row in rows)
        for name in ("forward", "backward")
    }
    return {
        "PE": answer["pes"][device],
        "operators": sum(not row["micro_batch"] for row in rows),
        **{
            # Graphs may have no backward pass, whose time is then 0.
            f"{name} busy": format_percent(seconds / (answer[f"{name}_time"] or 1.0))
            for name, seconds in busy.items()
        },
        "memory": answer["memory"][device],
        "room": format_quantity(answer["room"], "B"),
    }


def _list_runs(operators: Sequence[Row]) -> list[Row]:
    """Merge consecutive operators on the same device into one line."""
    runs: list[Row] = []
    for pe, group in groupby(operators, key=lambda row: row["pe"]):
        rows = list(group)
        runs.append(
            {
                "from": rows[0]["operator"],
                "to": rows[-1]["operator"],
                "operators": len(rows),
                "PE": pe,
                "forward from": _time(min(row["forward_start"] for row in rows)),
                "until": _time(max(row["forward_end"] for row in rows)),
            }
        )
    return runs
