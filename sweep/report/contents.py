"""Contents of a report: the rows behind its sentence and its charts, from answers of questions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import InputError
from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.objectives import Goal, Price
from paradl.sweep.cells.selection import Selection, write_value
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.cells.space import Space, list_given
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.looks import name_part
from paradl.sweep.questions.best.question import rank_strategies
from paradl.sweep.questions.bottleneck import list_bottlenecks
from paradl.sweep.questions.limits import list_limits
from paradl.sweep.questions.sensitivity import list_sensitivities
from paradl.sweep.report.points import list_points
from paradl.sweep.report.report import Report
from paradl.sweep.text.names import name_cell, write_reasons, write_stop
from paradl.sweep.text.sentences import GOALS, Asked, describe_best

if TYPE_CHECKING:
    from paradl.sweep.cells.reader import Reader

LEAST_CHANGE = 0.001  # of a time, for an upgrade to be listed
MOST_PLACES = 24  # models x data sets x systems x given parameters that a page has

# What a place consists of, beside the parameters of the machine that are swept.
PLACE = ("model", "dataset", "system")


def rank_places(
    source: Source,
    selection: Selection | None,
    max_global_batch: int | None,
    objective: Goal = "epoch_time",
    price: Price = None,
    asked: Asked | None = None,
) -> Report:
    """Collect the ranking and the curves of a report; arguments and errors as `collect_report`."""
    if objective not in GOALS:  # the memory of a PE, which has a chart of its own
        raise InputError.unknown("objective", objective, GOALS, where="objective")
    reader, notes = open_source(source), list[str]()
    places = list_places(reader, selection or {})
    if (count := prod(map(len, places.values()))) > MOST_PLACES:
        raise InputError(
            f"a page has room for {MOST_PLACES} places (models x data sets x systems x parameters "
            f"of the machine), got {count}",
            where="selection",
            advice=f"choose some values of {', '.join(places)}, or serve the page",
        )
    chosen = {**(selection or {}), **places}
    ranked = rank_strategies(
        reader, chosen, objective, price=price, max_global_batch=max_global_batch, why=True
    )
    ranking: list[Row] = [{**row} for row in ranked]
    opening = find_opening(ranking, objective, asked)
    # A place without a winner is kept: its losers have their reasons.
    winners = [row for row in ranking if row.get("rank") == 1]
    models = dict.fromkeys(str(row["model"]) for row in winners)
    space = open_space(reader, chosen, max_global_batch).ask_intervals()
    choices = [name for name in space.axes if name not in (*places, "pe", LAYOUT)]
    spec = space.grid.spec
    points = list_points(reader, chosen, max_global_batch, list(places), choices, notes, winners)
    report = Report(
        title=f"{', '.join(models)}: how to train at scale",
        goal=objective,
        axes=[*LABELS, *space.axes],
        selectors=places,
        choices=choices,
        opening={name: opening[name] for name in places},
        ranking=[_complete_rank(space, row, objective) for row in ranking],
        points=points,
        basis=_describe_basis(reader, space),
        spec=spec.model_dump(mode="json", exclude_defaults=True),
        strategies=list(space.grid.labels["strategy"]),
        precisions={system.name: system.precision for system in space.systems},
        notes=notes,
        question=asked,
    )
    return _write_answers(report)


def _write_answers(report: Report) -> Report:
    """Add the sentence of each place, and the rows of the question that leads the page."""
    names, asked = list(report.selectors), report.question

    def locate(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    places: dict[tuple[Any, ...], list[Row]] = {}
    for row in report.ranking:
        places.setdefault(locate(row), []).append(row)
    sentences = [row for row in report.parts if row["kind"] == "sentence"]
    bottlenecks = {(locate(row), row["strategy"]): row["part"] for row in sentences}
    rows, answers = list[Row](), list[Row]()
    for place, ranking in places.items():
        best = ranking[0]
        bottleneck = bottlenecks.get((place, best["strategy"]), "")
        text = describe_best(ranking, report.goal, report.precisions[best["system"]], bottleneck)
        if given := [f"{name} {write_value(name, best[name])}" for name in names[len(PLACE) :]]:
            text = f"With {', '.join(given)}: {text}"
        if asked and (mine := [row for row in asked.rows if locate(row) == place]):
            text = f"{asked.describe(mine)} Fastest of all: {text}"
            rows += [asked.keep(row, names) for row in mine]
        answers.append({**dict(zip(names, place, strict=True)), "text": text})
    return replace(report, answers=answers, asked=rows)


def add_details(
    report: Report, reader: "Reader", selection: Selection | None, max_global_batch: int | None
) -> Report:
    """Add how far strategies scale, the parts of their time and memory, and upgrades.

    They take as long to compute as the ranking itself, so the explorer shows them after it.
    """
    chosen = {**(selection or {}), **report.selectors}
    space = open_space(reader, chosen, max_global_batch).ask_intervals()
    allowed = [row for row in report.ranking if row["feasible"]]
    limits = find_limits(reader, chosen, max_global_batch, space)
    winners = [row for row in allowed if row["rank"] == 1]
    ranking = [row | limits.get(locate_line(space, row), {}) for row in report.ranking]
    parts, upgrades = [*list_parts(space, allowed)], [*list_upgrades(space, winners)]
    return _write_answers(replace(report, ranking=ranking, parts=parts, upgrades=upgrades))


def list_places(reader: "Reader", selection: Selection) -> dict[str, list[Any]]:
    """List the values of models, data sets, systems and swept parameters of the machine."""
    values = reader.list_values(selection)
    names = [*PLACE, *list_given(reader.grid, [name for name in values if name not in LABELS])]
    # Plain values, which JSON and a selection take.
    return {
        name: [value if isinstance(value, str) else float(value) for value in values[name]]
        for name in names
    }


def find_opening(
    ranking: Sequence[Mapping[str, Any]], objective: Goal, asked: Asked | None = None
) -> Mapping[str, Any]:
    """Find the row of the winner: of the first model and data set that anything trains.

    asked: a question that may have another winner. NothingFeasibleError: nothing is feasible.
    """
    winners = [row for row in ranking if row.get("rank") == 1]
    if not winners:
        raise NothingFeasibleError("nothing in this slice is feasible; why: paradl best")
    if asked and asked.opening:
        return asked.opening
    # Models and data sets are other questions, and no rivals.
    question = itemgetter("model", "dataset")
    rivals = [row for row in winners if question(row) == question(winners[0])]
    return min(rivals, key=lambda row: float(row[objective]))


def _complete_rank(space: Space, row: Row, objective: Goal) -> Row:
    """Complete a ranked strategy: its name, the capacity of its PEs, and reasons in words.

    `value` is what the ranking minimises, with its 10th and 90th percentiles.
    """
    # What would make it feasible.
    changes = (row.get("rejection") or {}).get("changes") or {}
    remedies = (f"{name}={write_value(name, value)}" for name, value in changes.items())
    return {
        # A page's tables have numbers and texts alone.
        **{key: value for key, value in row.items() if not isinstance(value, dict | list)},
        **{f"value{end}": row.get(f"{objective}{end}") for end in ("", "_p10", "_p90")},
        "capacity": row["memory_capacity"] if row["feasible"] else None,
        "name": name_cell(space.grid, row, row) if row["feasible"] else row["strategy"],
        "reason": write_reasons(row["limit"]),
        "remedy": ", ".join(remedies),
    }


def _describe_basis(reader: "Reader", space: Space) -> dict[str, str]:
    """Describe what the numbers rest on."""
    grid, spec = space.grid, space.grid.spec
    versions = ", ".join(f"{name} {version}" for name, version in reader.versions.items())
    systems = "; ".join(
        f"{system.name}: {system.precision}, software {system.software}" for system in space.systems
    )
    batch = {"weak": "samples per replica", "strong": "samples of a whole mini-batch"}
    # Layouts of transformers have Adam's states, whatever the spec says (docs/transformers.md).
    training = [f"optimizer {spec.optimizer}"] if None in grid.blocks else []
    training += ["the forward pass is run again"] if spec.recompute == "full" else []
    fixed = (f"{name} = {write_value(name, value)}" for name, value in spec.parameters.items())
    fits = {system.name: grid.calibrations.get(system.name) for system in space.systems}
    oracle, calibration = "ParaDL's Table III, without intervals", ""
    if spec.oracle == "machine":
        oracle = "machine (docs/machine.md); intervals hold 80 % of its draws"
        calibration = ", ".join(
            f"{name}: '{fit.name}', fitted to {len(fit.series)} series of runs"
            if fit
            else f"{name}: none, so intervals are those of any machine"
            for name, fit in fits.items()
        )
    basis = {
        "oracle": oracle,
        "calibration": calibration,
        "machines": systems,
        "batch": batch[spec.scaling],
        "training": ", ".join(training),
        "parameters": ", ".join(fixed),
        "versions": versions,
    }
    return {name: text for name, text in basis.items() if text}


def find_limits(
    reader: "Reader", chosen: Selection, max_global_batch: int | None, space: Space
) -> dict[tuple[Any, ...], Row]:
    """Find how far the strategies scale, by the labels and axes of a line of PE counts."""
    if "pe" in chosen and len(space.axes["pe"]) < 2:
        return {}  # one PE count has no scaling
    rows = list_limits(reader, selection=chosen, max_global_batch=max_global_batch, intervals=False)
    return {
        locate_line(space, row): {
            "largest_pe": row["largest_pe"],
            "efficient_pe": row["efficient_pe"],
            "stop": write_stop(row["forbidden_by"]),
        }
        for row in rows
    }


def locate_line(space: Space, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the labels and axes of a row without its PE count, and the layout that suits it."""
    return tuple(row[name] for name in (*LABELS, *space.axes) if name not in ("pe", LAYOUT))


def _select_cell(space: Space, row: Row) -> dict[str, list[Any]]:
    """Select the one cell of a ranked strategy; a layout by its columns, not by its words."""
    columns = space.grid.rows[LAYOUT].columns if LAYOUT in space.grid.rows else ()
    fields = _keep(space, row) | {name: row[name] for name in columns}
    return {name: [value] for name, value in fields.items() if value is not None and name != LAYOUT}


def list_parts(space: Space, rows: Iterable[Row]) -> Iterator[Row]:
    """List the terms [s per epoch] and the memory [bytes] of strategies at their best cells."""
    for row in rows:
        # The page's bars are in the order of the ranking, and need no other table.
        kept = _keep(space, row) | {name: row[name] for name in ("name", "rank", "capacity")}
        for answer in list_bottlenecks(space.grid, _select_cell(space, row)):
            terms = {term: share * row["epoch_time"] for term, share in answer["shares"].items()}
            for kind, parts in (("time", terms), ("memory", answer["memory_parts"])):
                for part, amount in parts.items():
                    if amount > 0:
                        yield kept | {"kind": kind, "part": name_part(part), "amount": amount}
            yield kept | {"kind": "sentence", "part": answer["sentence"]}


def list_upgrades(space: Space, winners: Iterable[Row]) -> Iterator[Row]:
    """List the upgrades of each place's winner, with the change of its time."""
    names = ("parameter", "value", "upgrade", "elasticity", "change")
    for row in winners:
        for answer in list_sensitivities(space.grid, _select_cell(space, row)):
            if abs(answer["change"] or 0.0) >= LEAST_CHANGE:
                fields: Mapping[str, object] = answer
                yield _keep(space, row) | {name: fields[name] for name in names}


def _keep(space: Space, row: Row) -> Row:
    """Keep the labels and axes of a row."""
    return {name: row[name] for name in (*LABELS, *space.axes) if name in row}
