"""The answer of `explain`, and why a configuration is infeasible, for people."""

from collections.abc import Sequence
from functools import partial

from paradl.grids.entries.layout_words import is_layout
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.entries.strategy_words import LIMIT
from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import format_count
from paradl.kernels.divisors import list_divisors
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.reasons import keep_reasons
from paradl.sweep.answers.types.prediction import (
    Explanation,
    Launch,
    MemoryRow,
    Prediction,
    SymbolRow,
    TermRow,
)
from paradl.sweep.launching.processes import note_last_node
from paradl.sweep.text.columns import Ranged, format_cell, write_summary
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.tables import print_record, print_table, print_text, show, show_sections
from paradl.sweep.text.visible import tell

RECORD = (
    *("model", "dataset", "system", "strategy", "pe", "replicas", "group", "segments"),
    *("batch", "global_batch"),
    *("epoch_time", "comp_time", "comm_time", "epochs", "train_time"),
    *("samples_per_second", "tokens_per_pe_second", "mfu", "hfu", "bubble_share"),
    *("input", "stage", "largest_batch", "remarks", "runs_with"),
    *("smallest_group", "iterations", "feasible", "limit", "oracle", "precision", "software"),
    *("times", "profile", "convergence", "calibration"),
)

# Columns of the table of layers; a narrow terminal drops them from the end.
LAYER = (
    *("layer", "kind", "output", "stage", "device", "split", "weights", "memory"),
    *("forward", "backward", "macs", "gathered_items", "halo_items"),
)


# Columns of terms and parts of the memory together.
FORMULA = (
    *("of", "name", "formula", "numbers", "seconds_per_iteration", "seconds_per_epoch"),
    *("bytes", "share"),
)

# Fields of a prediction that its sentence and tables show.
SHOWN = (
    *("terms", "memory_parts", "exchanges", "comp_time", "comm_time", "iteration_time"),
    *("memory", "memory_capacity", "fits", "samples", "feasible", "degrees"),
)


def show_prediction(answer: Prediction, form: Format, every: bool) -> None:
    """Print the answer of `predict`; every: with what is zero or unknown, and all parameters."""
    show_sections(answer, [answer], form, partial(_print_prediction, answer, every))


def _print_prediction(answer: Prediction, every: bool) -> None:
    _print_summary(answer)
    # People have read the notes on stderr already.
    row = {key: value for key, value in answer.items() if key != "notes"}
    if every:
        print_record(row)
        return
    if answer["iteration_time"] is not None:
        print_table(_list_term_lines(answer), "Time of an iteration")
    parts = {part: size for part, size in answer["memory_parts"].items() if size}
    whole = sum(parts.values())
    lines = [{"part": part, "memory": n, "share": f"{n / whole:.1%}"} for part, n in parts.items()]
    if lines:  # what cannot exist has no memory
        print_table(lines, "Memory of the fullest PE")
    print_record({key: value for key, value in _drop_nothing(row).items() if key not in SHOWN})


def _list_term_lines(answer: Prediction) -> list[Row]:
    """List the terms of an iteration's time [s], each with its share and what it is."""
    epoch, iteration = answer["epoch_time"] or 1.0, answer["iteration_time"] or 0.0
    return [
        {
            "term": name,
            "iteration_time": seconds / epoch * iteration,
            # Hidden communication is listed among the terms, and is no part of the sum.
            "share": "hidden" if EVERY_TERM[name].part == "hidden" else f"{seconds / epoch:.1%}",
            "meaning": EVERY_TERM[name].meaning,
        }
        for name, seconds in answer["terms"].items()
        if seconds
    ]


def _print_summary(answer: Prediction) -> None:
    time, comp, epoch = answer["iteration_time"], answer["comp_time"], answer["epoch_time"]
    if time is not None and comp is not None and epoch:
        ends = (answer["intervals"] or {}).get("iteration_time")
        ranged = Ranged(time, ends and ends["p10"], ends and ends["p90"])
        reasons = ", ".join(keep_reasons(answer["limit"]))
        head = "" if answer["feasible"] else f"Not feasible ({reasons}): "
        share = f"{comp / epoch:.0%} of the time is compute"
        print_text(f"{head}{write_summary(answer, ranged)}; {share}")


def _drop_nothing(row: Row) -> Row:
    """Drop what is zero, unknown or empty, and parameters."""
    kept = {
        key: _drop_nothing(value) if isinstance(value, dict) else value
        for key, value in row.items()
        if key not in ("parameters", "intervals")
    }
    return {key: value for key, value in kept.items() if value not in (None, 0, {}, [])}


def show_explanation(
    explanation: Explanation, form: Format, layers: bool = False, every: bool = False
) -> None:
    """Print the answer of `explain`, or its table of layers; every: with parameters and symbols."""
    if layers:
        show_layers(explanation, form)
    else:
        tell = partial(_print, explanation, every)
        show_sections(explanation, _list_formulas(explanation), form, tell)


def _list_formulas(explanation: Explanation) -> list[Row]:
    """List terms and parts of the memory as rows of one table, with their shares of either."""
    terms = explanation["formulas"], explanation["hidden"]
    rows: list[Row] = [
        {"of": of, "name": row["term"], **row, "share": None if of == "hidden" else row["part"]}
        for of, rows in zip(("time", "hidden"), terms, strict=True)
        for row in rows
    ]
    rows += [{"of": "memory", "name": row["part"], **row} for row in explanation["memory_formulas"]]
    return [{key: row.get(key) for key in FORMULA} for row in rows]


def _print(explanation: Explanation, every: bool) -> None:
    _print_summary(explanation)
    if explanation["sentence"]:
        print_text(explanation["sentence"])
    _print_formulas(explanation["formulas"], "Terms (the numbers: one iteration)")
    _print_formulas(explanation["hidden"], "Hidden: no part of the time", "part")
    _print_formulas(explanation["memory_formulas"], "Memory of the fullest PE")
    fields: Row = explanation
    print_record(_drop_nothing({key: fields[key] for key in RECORD if key in fields}))
    launch = explanation["launch"]
    if launch is None:  # no such configuration exists
        return
    if every:
        print_record(explanation["parameters"], "Parameters", "parameters")
        print_table(list(map(_lay_out_symbol, explanation["symbols"])), "Symbols")
    lines = list_launch_lines(launch)
    print_table([{"": key, "value": text} for key, text in lines], "Launch")
    if layers := explanation["layers"]:
        print(f"{format_count(len(layers), 'layer')}: --layers-table")
    if not every:
        print("Parameters and symbols: --all")
    if changes := explanation.get("changes"):
        title = "Larger micro-batches" if explanation["feasible"] else "What would let it fit"
        print()
        print_table(changes, title)
    for script in explanation.get("launch_files", ()):
        print(f"\n# {script['file']}\n{script['text']}")
    if "changes" in explanation and not explanation["launch_files"]:
        print("Launch lines: --launch megatron, torchtitan, deepspeed or torchrun")


def _print_formulas(
    rows: Sequence[TermRow] | Sequence[MemoryRow], title: str, left_out: str = ""
) -> None:
    """Print the formulas of terms, or of parts of the memory, if there are any."""
    lines = [_lay_out_formula(row) for row in rows]
    if lines:
        print_table([{n: of for n, of in line.items() if n != left_out} for line in lines], title)


def _lay_out_formula(row: TermRow | MemoryRow) -> Row:
    """Make a line for a formula, in symbols and below in numbers, with its share in percent."""
    line: dict[str, object] = {key: value for key, value in row.items() if key != "numbers"}
    line["formula"] = (row["formula"], f"= {row['numbers']}")
    share = "share" if "share" in row else "part"
    line[share] = f"{line[share]:.1%}"
    return line


def show_layers(explanation: Explanation, form: Format) -> None:
    """Print one row per layer."""
    rows: Sequence[Row] = explanation["layers"]
    if not rows and explanation["feasible"]:  # else the command says why
        what = "a layout divides blocks, and has no rows of layers"
        tell(f"paradl: {what}; leave out --layers-table: terms and memory have formulas of blocks")
    if form != "table":
        show(rows, form)
        return
    if not rows:
        return
    fields: Row = explanation
    labels = [str(fields[key]) for key in LABELS]
    batch = format_cell(explanation["batch"])
    title = f"{', '.join(labels)}, pe {explanation['pe']:,}, batch {batch}"
    # Networks of images have no gathered items, chains no stages: such columns are empty.
    kept = [key for key in LAYER if any(row.get(key) not in (0, False, None) for row in rows)]
    outputs = ("x".join(map(str, layer["output"])) for layer in explanation["layers"])
    lines = [
        {key: row[key] for key in kept if key in row} | {"output": output}
        for row, output in zip(rows, outputs, strict=True)
    ]
    print_table(lines, title)


def list_launch_lines(launch: Launch) -> list[tuple[str, str | tuple[str, ...]]]:
    """List what to launch: the command, device mesh and data loader."""
    # The arguments of PyTorch's `init_device_mesh`.
    sizes, names = tuple(launch["mesh"].values()), tuple(launch["mesh"])
    mesh = f"{sizes}, mesh_dim_names={names}".replace("'", '"')
    return [
        ("command", (launch["command"], *note_last_node(launch))),
        ("world_size", format_cell(launch["world_size"])),
        *([("device_mesh", mesh)] if launch["mesh"] else []),
        ("sampler", _describe_sampler(launch)),
        ("global_batch", format_cell(launch["global_batch"])),
    ]


def _describe_sampler(launch: Launch) -> tuple[str, ...]:
    """Write the arguments of a rank's data loader."""
    sampler = launch["sampler"]
    batch, micro = format_cell(launch["local_batch"]), format_cell(launch["micro_batch"])
    count = launch["micro_batches"]
    return (
        f"DistributedSampler(num_replicas={sampler['num_replicas']}, rank={sampler['rank']})",
        f"batch_size={batch}" + (f", in {count} passes of {micro}" if count > 1 else ""),
    )


def _lay_out_symbol(row: SymbolRow) -> Row:
    """Make a line for a symbol, its value with its unit."""
    unit, value = row["unit"], row["value"]
    # Of seconds per byte no prefix is usual, so they have an exponent.
    known = f"{value:.4g} {unit}" if unit == "s/B" and value is not None else None
    return {
        "symbol": row["symbol"],
        "value": known or format_cell(value, None if unit == "1" else unit),
        "meaning": row["meaning"] + ("" if value is not None or unit == "1" else f" [{unit}]"),
    }


MOST_GROUPS = 12  # group sizes that fit on a line


def describe_obstacle(answer: Prediction) -> str:
    """Name the limits that forbid a configuration, and ways out."""
    forbidding = keep_reasons(answer["limit"])
    advice = [text for name in forbidding if name in ADVICE for text in ADVICE[name](answer)]
    # Two limits may have the same reasons.
    lines = dict.fromkeys(advice)
    return "; ".join([f"this configuration is not feasible: {', '.join(forbidding)}", *lines])


def _fit_memory(answer: Prediction) -> list[str]:
    batch, group = answer["largest_batch"], answer["smallest_group"]
    advice = []
    micro = answer.get("layout", "").partition(" mb")[2].partition(" ")[0]
    if micro not in ("", "1") and "micro" not in answer["strategy"]:
        change = "'mb1'" if is_layout(answer["strategy"]) else "'micro=1' behind the strategy"
        advice.append(f"{micro} sequences pass at once; write {change}")
    if batch is not None:
        most = f"a replica holds at most {format_count(batch, 'sample')}"
        advice.append(most if batch else "not one sample fits")
    if group is not None:
        advice.append(
            f"the smallest group that fits has {format_count(group, 'PE')}"
            if group
            else "no group fits"
        )
    return advice


def _list_group_sizes(answer: Prediction) -> list[str]:
    pe, group = answer["pe"], answer["group"]
    # Without 1: a group of one PE is plain data parallelism.
    sizes = list_divisors(pe)[1:]
    listed = ", ".join(map(str, sizes[:MOST_GROUPS])) + " ..." * (len(sizes) > MOST_GROUPS)
    return [f"{group} does not divide {pe:,} PEs; sizes that do: {listed or 'none'}"]


def _state_limits(answer: Prediction) -> list[str]:
    strategy = parse_strategy(answer["strategy"])
    if strategy.serial:
        return ["serial runs on one PE"]
    if "obstacles" in answer:  # of layouts
        return list(answer["obstacles"])
    names = strategy.parts if strategy.several else [strategy.base]
    return [f"the limit of {name}: {LIMIT[name]}" for name in names]


def _list_divisors(answer: Prediction) -> list[str]:
    if "obstacles" in answer:  # of layouts
        return list(answer["obstacles"])
    strategy = parse_strategy(answer["strategy"]).undo_layout()
    replicas = answer["replicas"] or 1
    found = []
    if strategy.shard > 0 and replicas % strategy.shard:
        found.append(f"shard={strategy.shard} does not divide {format_count(replicas, 'replica')}")
    if strategy.chunks > 1:
        found.append(
            f"{strategy.chunks} chunks of a stage need several stages, schedule 1f1b, and "
            f"micro-batches that the stages divide; here are {answer['segments']:,}"
        )
    return found


ADVICE = {
    "memory": _fit_memory,
    "group_does_not_divide": _list_group_sizes,
    "does_not_divide": _list_divisors,
    "too_many_pes": _state_limits,
}
