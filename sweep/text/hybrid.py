"""The answers of `hybrid` and `place`: tables for people, rows as CSV, all of it as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.answers.types.hybrid import (
    EpochsRecord,
    Gain,
    HybridAnswer,
    HybridCrossover,
    HybridRow,
    OperatorRow,
    PlacementRecord,
)
from paradl.sweep.text.columns import INTERVAL, Ranged, format_cell, format_percent
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.tables import (
    SCREENFUL,
    print_table,
    print_text,
    shorten_label,
    show_sections,
)

AGAINST = {"same": "data on as many PEs", "best": "data at its best PE count so far"}
BASIS = {"oracle": "predicted", "given": "given"}


def show_hybrid(answer: HybridAnswer, form: Format) -> None:
    """Print the answer of `hybrid`."""
    show_sections(answer, answer["rows"], form, partial(_print, answer))


def _print(answer: HybridAnswer) -> None:
    print_text(describe_gain(answer["gain"]))
    rows = answer["rows"]
    shown = rows if len(rows) <= SCREENFUL else _keep_rivals(rows)
    lines = list(map(_describe_row, shown))
    print_table(lines, "Speed-up to the target over one PE", asked=("speed-up", "wins"))
    if len(shown) < len(rows):
        print_text(f"{len(rows) - len(shown):,} slower hybrids are left out; --format csv has all")
    crossovers = list(map(_describe_crossover, answer["crossovers"]))
    asked = ("against", "from p on", INTERVAL)
    print_table(crossovers, "From how many PEs on the hybrid wins", asked=asked)
    print_text(*_describe(answer))


def _keep_rivals(rows: Sequence[HybridRow]) -> list[HybridRow]:
    """Keep data parallelism and the fastest hybrid of each PE count."""
    kept: list[HybridRow] = []
    for _, of_count in groupby(rows, itemgetter("pe")):
        data, *hybrids = sorted(of_count, key=lambda row: row["replicas"] < row["pe"])
        kept += [data, *sorted(hybrids, key=lambda row: -(row["speedup"] or 0.0))[:1]]
    return kept


def _describe(answer: HybridAnswer) -> Iterator[str]:
    """Yield lines about the question, and the epochs and splits that its answer rests on."""
    where = f" on {answer['system']}" if answer["system"] else ""
    yield (
        f"{answer['model']}, {answer['dataset']}{where}, "
        f"{format_count(answer['batch'], 'sample')} per replica, until {answer['target']}"
    )
    source = "; ".join(answer["epochs"]["source"])
    yield f"epochs: {_describe_law(answer['epochs'])}" + (f" ({source})" if source else "")
    # `fastest` says something only where a group size has several splits.
    sizes = Counter(split["group"] for split in answer["splits"])
    for split in answer["splits"]:
        is_fastest = sizes[split["group"]] > 1 and split["fastest"]
        yield (
            f"{split['strategy']}: an iteration {format_cell(split['speedup'])} times as fast in a "
            f"group of {split['group']} ({BASIS[split['basis']]}); "
            f"scaling efficiency {BASIS[split['scaling_efficiency']]}"
            f"{'; the fastest split' if is_fastest else ''}"
        )


def _describe_law(epochs: EpochsRecord) -> str:
    """State the law of epochs, and the batches between which epochs were measured."""
    low, high = epochs["measured"]
    critical, wall = epochs["critical_batch"], epochs["converges_to"]
    growth = "" if critical is None else f" (1 + B / {critical:,.0f})"
    law = f"{format_cell(epochs['epochs_min'])}{growth}"
    limit = "" if wall is None else f", none beyond {wall:,}"
    if low is None:
        return f"{law}{limit}"
    return f"measured from B = {low:,} to {high:,}{limit}; outside {law}"


def _describe_row(row: HybridRow) -> Row:
    unmeasured = row["extrapolated"] and row["converges"]
    return {
        "p": row["pe"],
        "strategy": shorten_label(row["strategy"]),
        "replicas": row["replicas"],
        "B": row["global_batch"],
        "SE": row["scaling_efficiency"],
        "epochs": row["epochs"] if row["converges"] else "never",
        "speed-up": Ranged(row["speedup"], row["p10"], row["p90"]),
        "wins": "wins" if row["wins"] else "",
        "remarks": ", ".join([*row["limit"], *(["extrapolated"] if unmeasured else [])]),
    }


def _describe_crossover(crossover: HybridCrossover) -> Row:
    """Make a line for a hybrid and its opponent."""

    def write(count: int | None) -> str:
        if count is None:
            return "never"
        # The first count that its groups divide: it wins wherever it can run.
        return "all counts" if count == crossover["group"] else f"{count:,}"

    ends = dict.fromkeys([write(crossover["p10"]), write(crossover["p90"])])
    remarks = {
        "the last of several": crossover["several"] and crossover["pe"] is not None,
        "extrapolated": crossover["extrapolated"],
    }
    return {
        "strategy": shorten_label(crossover["strategy"]),
        "against": AGAINST[crossover["against"]],
        "from p on": write(crossover["pe"]),
        INTERVAL: " to ".join(ends),
        "chance": format_percent(crossover["chance"]),
        "remarks": ", ".join(remark for remark, holds in remarks.items() if holds),
    }


def describe_gain(gain: Gain) -> str:
    """State who wins by how much, and at which PE counts."""
    if gain["gain"] is None:
        return f"The gain up to {gain['pe']:,} PEs is unknown."
    ends = [format_percent(end) for end in (gain["p10"], gain["p90"]) if end is not None]
    interval = " to ".join(ends) or "no interval: all draws give the same"
    chance = gain["chance"]
    return (
        f"{'Gain' if gain['gain'] > 0 else 'No hybrid wins: gain'} up to {gain['pe']:,} PEs: "
        f"{format_percent(gain['gain'])} ({interval}), {shorten_label(gain['strategy'] or '')} on "
        f"{gain['hybrid_pe']:,} over data on {gain['data_pe']:,}"
        f"{' (extrapolated)' if gain['extrapolated'] else ''}"
        f"{'' if chance is None else f'; chance of a gain {format_percent(chance)}'}"
    )


def show_placement(answer: PlacementRecord, form: Format) -> None:
    """Print the answer of `place`; CSV has one line per operator."""
    show_sections(answer, answer.get("operators", []), form, partial(_print_placement, answer))


def _print_placement(answer: PlacementRecord) -> None:
    print_text(*_describe_placement(answer))
    if answer["feasible"]:
        print_table([_lay_out_device(answer, device) for device in range(answer["devices"])])
        # All micro-batches run on the same devices.
        first = [row for row in answer["operators"] if not row["micro_batch"]]
        of_first = "" if answer["micro_batches"] == 1 else " of the first micro-batch"
        runs, title = _list_runs(first), f"Operators{of_first}, in the order of the graph"
        rest = f": the first {SCREENFUL} of {len(runs):,} lines; --format json has all"
        print_table(runs[:SCREENFUL], f"{title}{rest if len(runs) > SCREENFUL else ''}")


def _describe_placement(answer: PlacementRecord) -> list[str]:
    """List lines about the question, the time of a step, and how near it is to the best."""
    pes = ", ".join(map(str, answer["pes"]))
    batch = "" if answer["batch"] is None else f", {format_count(answer['batch'], 'sample')}"
    if answer["micro_batches"] > 1:
        size = "" if answer["samples"] is None else f" of {answer['samples'][0]:,}"
        batch += f" in {format_count(answer['micro_batches'], 'micro-batch')}{size}"
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
    count = format_count(answer["devices"], "device")
    lines = [
        f"{answer['speedup']:.4g} times as fast on {count} as on one: a step takes "
        f"{_time(answer['step_time'])}; {proof}",
        head,
        f"a step: forward {_time(answer['forward_time'])} and backward "
        f"{_time(answer['backward_time'])}; {_time(answer['serial_time'])} on one device{alone}",
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


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def _lay_out_device(answer: PlacementRecord, device: int) -> Row:
    rows = [row for row in answer["operators"] if row["device"] == device]
    forward = sum(row["forward_end"] - row["forward_start"] for row in rows)
    backward = sum(row["backward_end"] - row["backward_start"] for row in rows)
    return {
        "PE": answer["pes"][device],
        "operators": sum(not row["micro_batch"] for row in rows),
        # Graphs may have no backward pass, whose time is then 0.
        "forward busy": format_percent(forward / (answer["forward_time"] or 1.0)),
        "backward busy": format_percent(backward / (answer["backward_time"] or 1.0)),
        "memory": answer["memory"][device],
        "room": format_quantity(answer["room"], "B"),
    }


def _list_runs(operators: Sequence[OperatorRow]) -> list[Row]:
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
