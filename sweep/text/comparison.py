"""Text about measured runs: the accuracy of predictions, and the parameters of a calibration."""

import math
from collections.abc import Sequence
from functools import partial

from paradl.grids.entries.calibration import DETERMINED, CalibrationFile, LayoutTime, list_priors
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import UNKNOWN, find_factor_spread, find_prior_spread
from paradl.grids.inputs.machine import Machine
from paradl.grids.inputs.uncertainty import list_spreads
from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.answers.reasons import keep_reasons
from paradl.sweep.answers.types.runs import (
    AccuracySummary,
    Average,
    Comparison,
    RunAverages,
    RunRow,
)
from paradl.sweep.measured.runs import PARTS
from paradl.sweep.text.columns import Ranged, format_percent
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.tables import print_table, print_text, show_sections

# Of the logarithm of a parameter: smaller moves of layouts' parameters are not shown.
NOTICED = 0.01
PART_NAMES = {"total": "total", "comp": "compute", "comm": "communication"}


# What schemes of a calibration leave out; the others are named for it.
LEFT_OUT = {
    "fit": "nothing (fit)",
    "layouts, uncalibrated": "all layouts",
    "layouts, fit": "no layout (fit)",
    "layouts, run": "one layout",
    "layouts, model": "one network's layouts",
}


def show_comparison(comparison: Comparison, form: Format) -> None:
    """Print the answer of `compare`; CSV lists its runs."""
    # All rows need the same CSV columns, anomalous or not.
    anomalies = [row["anomaly"] for row in comparison["rows"]]
    rows: list[Row] = [
        {**row, "anomaly": found and found["what"], "cause": found and found["cause"]}
        for row, found in zip(comparison["rows"], anomalies, strict=True)
    ]
    show_sections(comparison, rows, form, partial(_print_comparison, comparison))


def _print_comparison(comparison: Comparison) -> None:
    rows = comparison["rows"]
    print_text(_write_accuracy(rows, comparison["summary"]["overall"]))
    lines = list(map(_describe_run, rows))
    title = "Time of an iteration, and accuracy of its parts"
    print_table(lines, title, asked=("measured", "predicted", "total"))
    if volumes := [line for row in rows for line in _list_volumes(row)]:
        print_table(volumes, "Bytes of a PE's collectives per iteration")
    print_table(list_averages(comparison["summary"]), "Accuracy, mean / median")
    anomalies = [
        {
            "model": row["model"],
            "strategy": row["strategy"],
            "p": row["p"],
            "what": (anomaly["what"], anomaly["cause"]),
        }
        for row in rows
        if (anomaly := row["anomaly"])
    ]
    if anomalies:
        print_table(anomalies, "Anomalies, and their likely cause")


def _write_accuracy(rows: Sequence[RunRow], overall: RunAverages) -> str:
    """State how well the runs are met."""
    counted, mean = format_count(len(rows), "run"), overall["total"]["mean"]
    if mean is None:
        return f"{counted}, none with a time that is both measured and predicted."
    held = overall["coverage"]["total"]
    inside = "" if held is None else f"; {held:.0%} of the times lie in their 80 % intervals"
    apart = sum(row["anomaly"] is not None for row in rows)
    stand = f"; {format_count(apart, 'outlier')}" if apart else ""
    accuracy = f"predicted times are {format_percent(mean)} accurate on average"
    return f"{counted}: {accuracy}{inside}{stand}."


def _describe_run(row: RunRow) -> Row:
    """Make the table line of a run: measured, predicted, accuracy, remarks."""
    # The words alone: anomalies have a table of their own.
    marks = {name: row[name] for name in ("fitted", "anomaly", "extrapolation")}
    remarks = [name for name, mark in marks.items() if mark]
    if row["reason"]:
        remarks.append(row["reason"])
    elif not row["feasible"]:
        remarks.append(f"not feasible: {', '.join(keep_reasons(row['limit']))}")
    return {
        "model": row["model"],
        "strategy": row["strategy"],
        "p": row["p"],
        "b": row["samples_per_replica"],
        "measured": row["measured_total"],
        "predicted": Ranged(row["predicted_total"], row["p10"], row["p90"]),
        "total": format_percent(row["accuracy_total"]),
        "MFU (predicted)": _format_mfu(row),
        PART_NAMES["comp"]: format_percent(row["accuracy_comp"]),
        PART_NAMES["comm"]: format_percent(row["accuracy_comm"]),
        "memory": _format_memory(row["measured_memory"], row["predicted_memory"]),
        "authors": format_percent(row["authors_accuracy_total"]),
        "remarks": "; ".join(remarks),
        "data set": row["dataset"],
    }


def _format_mfu(row: RunRow) -> str | None:
    measured, predicted = row["measured_mfu"], row["predicted_mfu"]
    return None if measured is None or predicted is None else f"{measured:.1%} ({predicted:.1%})"


def _format_memory(measured: float | None, predicted: float | None) -> str | None:
    if measured is None:
        return None
    expected = "-" if predicted is None else format_quantity(predicted, "B")
    return f"{format_quantity(measured, 'B')}, predicted {expected}"


def _list_volumes(row: RunRow) -> list[Row]:
    """List a run's bytes by kind of collective, of those that are measured or predicted."""
    run = {"model": row["model"], "strategy": row["strategy"], "p": row["p"]}
    predicted = row["predicted_bytes"] or {}
    return [
        {**run, "collective": kind, "measured": _format_memory(size, predicted.get(kind))}
        for kind, size in (row["measured_bytes"] or {}).items()
        if size or predicted.get(kind)
    ]


def list_averages(summary: AccuracySummary) -> list[Row]:
    """List average accuracies: of all rows, of each strategy, and of each model."""
    means = {PART_NAMES[part]: format_percent(summary["strategies_mean"][part]) for part in PARTS}
    groups = {**summary["by_strategy"], **summary["by_model"]}
    return [
        _describe_averages("all", summary["overall"]),
        {"": "mean of strategies", **means},  # each strategy counts once
        *(_describe_averages(name, averages) for name, averages in groups.items()),
    ]


def _describe_averages(name: str, averages: RunAverages) -> Row:
    # The authors predicted some of the rows; ours are averaged over the same ones beside.
    theirs = averages["authors"]["total"]
    return {
        "": name,
        "rows": averages["n"],
        PART_NAMES["total"]: _format_average(averages["total"]),
        PART_NAMES["comp"]: _format_average(averages["comp"]),
        PART_NAMES["comm"]: _format_average(averages["comm"]),
        "authors' total": _format_average(theirs),
        "on the same rows": format_percent(theirs["ours"]),
        "in 80% interval": format_percent(averages["coverage"]["total"]),
    }


def _format_average(average: Average) -> str:
    if average["mean"] is None:
        return "-"
    return f"{format_percent(average['mean'])} / {format_percent(average['median'])}"


def show_calibration(calibration: CalibrationFile, system: System, form: Format) -> None:
    """Print the answer of `calibrate`; CSV lists its parameters. system: of the runs."""
    parameters = _list_parameters(calibration, system)
    sections = partial(_print_calibration, calibration, parameters)
    show_sections(calibration.definition(), parameters, form, sections)


def _print_calibration(calibration: CalibrationFile, parameters: list[Row]) -> None:
    accuracies = [
        {
            "left out": LEFT_OUT.get(scheme, scheme),
            "rows": int(accuracy["rows"]),
            **{
                name: f"{format_percent(accuracy.get(part))}, "
                f"{format_percent(accuracy.get(f'{part}_in_interval'))}"
                for part, name in PART_NAMES.items()
            },
        }
        for scheme, accuracy in calibration.accuracy.items()
    ]
    print_table(accuracies, "Accuracy, and share within 80% intervals, of runs left out")
    if parameters:
        print_table(parameters, "Parameters: value and spread of its logarithm", "csv")


# Columns of a calibration's parameters.
COLUMNS = ("parameter", "unit", "value", "spread", "prior", "prior_spread", "from", "meaning")
Line = tuple[str, str, float, float | None, float, float, str | None, str]


def _list_parameters(calibration: CalibrationFile, system: System) -> list[Row]:
    """Make a line per parameter: fitted value, prior, and which of the two determined it."""
    lines: list[Line] = []
    priors = list_priors(calibration.precision, calibration.software)
    for name, fit in calibration.parameters.items():
        prior, origin = priors[name], _name_origin(fit.determined)
        numbers = fit.value, fit.spread, prior.median, prior.spread
        lines.append((name, prior.row.unit, *numbers, origin, prior.row.meaning))
    if layouts := calibration.layouts:
        is_known = calibration.software != UNKNOWN
        expected, spread = find_prior_spread(is_known), find_factor_spread(layouts, is_known)
        origin = _name_origin(spread < DETERMINED * expected)
        meaning = "times of transformers' layouts over those by rates of any machine"
        lines.append(("layouts", "1", layouts.factor, spread, 1.0, expected, origin, meaning))
        lines += _list_moves(layouts, system)
    return [dict(zip(COLUMNS, line, strict=True)) for line in lines]


def _list_moves(layouts: LayoutTime, system: System) -> list[Line]:
    """Make a line per parameter of layouts that moved by NOTICED or more, the furthest first.

    It has no spread of its own: intervals of layouts are as wide as the runs scatter.
    """
    machine = Machine(system)
    prior, moved = machine.expected, machine.move_priors(layouts).expected
    moves = {name: abs(math.log(moved[name] / prior[name])) for name in layouts.parameters}
    spreads, lines = list_spreads(system, [*moves]), list[Line]()
    for name in sorted(moves, key=moves.__getitem__, reverse=True):
        if moves[name] >= NOTICED:
            numbers = moved[name], None, prior[name], spreads[name]
            row = PARAMETERS[name]
            lines.append((f"{name} of layouts", row.unit, *numbers, None, row.meaning))
    return lines


def _name_origin(determined: bool) -> str:
    return "the runs" if determined else "mostly the prior"
