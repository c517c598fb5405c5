"""The sentences that answer for a place of a page: of what is best there, and of other questions.

These have rows and a first chart of their own, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, TypeVar

from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.grids.shorthands import read_tokens
from paradl.sweep.answers.objectives import Goal
from paradl.sweep.answers.types.questions import LimitsRow, ParetoRow, ProvisionRow
from paradl.sweep.configurations.degrees import read_layout_words
from paradl.sweep.questions.limits import END, pick_furthest, weigh_reach
from paradl.sweep.questions.pareto import find_knee
from paradl.sweep.text.columns import (
    CHANCE,
    format_cell,
    format_chance,
    format_digits,
    write_memory,
)
from paradl.sweep.text.names import write_stop
from paradl.sweep.text.tables import shorten_label

# A row of a page's tables: of an answer, with what the page adds.
Row = Mapping[str, Any]
R = TypeVar("R", bound=Row)

DIGITS = 2  # of numbers in sentences
FULL = 0.95  # of the memory: a little more than predicted, and the configuration does not run
# Samples: the largest batch for which Goyal et al. (2017) show that ImageNet loses no accuracy.
PROVEN_BATCH = 8192


def brief(value: float) -> str:
    """Write a number with two digits."""
    return f"{float(f'{value:.{DIGITS}g}'):,g}"


def write_time(time: float, low: float | None = None, high: float | None = None) -> str:
    """Write a time with two digits, and its 80 % interval."""
    if low is None or high is None:
        return format_quantity(time, "s", DIGITS)
    ends = [format_quantity(end, "s", DIGITS) for end in (low, high)]
    return f"{format_quantity(time, 's', DIGITS)} (80 % interval {ends[0]} to {ends[1]})"


def name_row(row: Row) -> str:
    """Write a configuration and its PEs."""
    base, name = str(row["strategy"]).partition(":")[0], str(row["name"])
    size = row.get("group_size") or 1
    is_group = "+" in base and name.startswith(base) and size > 1
    name = f"{base} in groups of {size:g}" if is_group else name
    return f"{name} on {format_count(row['pe'], 'PE')}"


GOALS: dict[Goal, Callable[[Row, str], str]] = {
    "epoch_time": lambda row, what: f"trains an epoch of {what} in {_write_value(row)}",
    "train_time": lambda row, what: f"trains {what} to its target in {_write_value(row)}",
    "pe_hours": lambda row, what: (
        f"trains {what} with {brief(row['value'])} PE-hours{_per_epoch(row)}"
    ),
    "cost": lambda row, what: f"trains {what} for {brief(row['value'])}{_per_epoch(row)}",
}


def _write_value(row: Row) -> str:
    return write_time(row["value"], row["value_p10"], row["value_p90"])


def _per_epoch(row: Row) -> str:
    return "" if row.get("epochs") else " per epoch"


def describe_best(ranking: Sequence[Row], goal: Goal, precision: str, bottleneck: str) -> str:
    """Describe the winner of a place, the caveats of choosing it, and why others are ruled out.

    ranking: the strategies of the place, the best first.
    """
    feasible = [row for row in ranking if row["feasible"]]
    losers: dict[str, list[str]] = {}
    for row in ranking:
        if not row["feasible"]:
            losers.setdefault(row["reason"], []).append(row["strategy"])
    parts = []
    if feasible:
        best = feasible[0]
        parts = [_describe_winner(best, goal, precision), bottleneck, *_warn(best)]
    else:
        row = ranking[0]
        parts = [f"Nothing is feasible for {row['model']} on {row['system']}."]
    parts += [f"Ruled out ({reason}): {', '.join(names)}." for reason, names in losers.items()]
    return " ".join(filter(None, parts))


def _describe_winner(best: Row, goal: Goal, precision: str) -> str:
    batch = f", batch {best['batch']:,.0f}," if best.get("batch") else ""
    memory = ""
    if best["capacity"]:
        memory = f", using {write_memory(best['memory'], best['capacity'])} per PE"
    what = GOALS[goal](best, f"{best['model']} on {best['dataset']}")
    return f"{name_row(best)} of {best['system']} ({precision}){batch} {what}{memory}."


def _warn(best: Row) -> list[str]:
    """List what speaks against the winner."""
    warnings = []
    if best["capacity"] and best["memory"] > FULL * best["capacity"]:
        filled = best["memory"] / best["capacity"]
        warnings.append(f"Caution: it fills {filled:.0%} of the memory.")
    if not best.get("epochs") and (best.get("global_batch") or 0) > PROVEN_BATCH:
        warnings.append(
            f"Caution: whether a global batch of {best['global_batch']:,.0f} converges is not "
            "modelled."
        )
    return warnings


HEADLINES = 5  # networks of an answer with a sentence each: of more, tables say enough


def describe_networks(rows: Sequence[R], describe: Callable[[Sequence[R]], str]) -> list[str]:
    """Describe the rows of each network and data set; several begin with their names."""
    networks: dict[str, list[R]] = {}
    for row in rows:
        networks.setdefault(f"{row['model']}, {row['dataset']}: ", []).append(row)
    if len(networks) == 1:
        return [describe(rows)]
    sentences = [f"{name}{describe(of_network)}" for name, of_network in networks.items()]
    return sentences if len(networks) <= HEADLINES else []


# What is minimised, in a sentence and on an axis.
TRADED = {
    "epoch_time": ("time", "s per epoch"),
    "train_time": ("time to the target", "s to the target"),
    "pe_hours": ("PE-hours", "PE-hours"),
}


@dataclass(frozen=True)
class Asked:
    """An answer that leads a page.

    rows: with the labels of their place. describe: the sentence of the rows of one place. x, y:
    fields of the chart, and their titles; without y, strategies. columns: fields of the table and
    their heads. replaces: a chart of the usual page that says the same. opening: a row of the place
    on which the page opens, if not on the fastest.
    """

    title: str
    meaning: str
    rows: Sequence[Row]
    describe: Callable[[Sequence[Any]], str]
    x: tuple[str, str]
    columns: Mapping[str, str]
    y: tuple[str, str] | None = None
    replaces: Literal["limits", "trade", ""] = ""
    opening: Row | None = None

    def keep(self, row: Row, place: Sequence[str]) -> dict[str, object]:
        """Keep the fields of a row that the page shows, or selects by."""
        names = {*place, "strategy", "pe", self.x[0], *self.columns}
        return {name: row[name] for name in sorted(names) if name in row}


def ask_limits(rows: Sequence[LimitsRow]) -> Asked:
    """Make the question how far strategies scale; rows: of `list_limits`, several per strategy."""
    kept = [{**row, "stop": write_stop(row["forbidden_by"])} for row in pick_furthest(rows)]

    def describe(rows: Sequence[LimitsRow]) -> str:
        row = max(rows, key=weigh_reach)
        if not row["largest_pe"]:
            return "No strategy is feasible at any number of PEs here."
        where = f" of {row['system']}" if len({other["system"] for other in rows}) > 1 else ""
        most, stop = f"{row['largest_pe']:,.0f} PEs{where}", row["forbidden_by"]
        reach = f"to {most}, and stops there: {write_stop(stop)}"
        if stop == END:
            reach = f"to at least {most}, the largest number tried"
        efficient = row["efficient_pe"]
        within = f"It is efficient on up to {efficient:,.0f}." if efficient else ""
        name = shorten_label(row["strategy"])
        return (
            f"{name} {'scale' if name == 'layouts' else 'scales'} furthest, {reach}. "
            f"{within or 'No number of PEs is efficient.'}"
        )

    return Asked(
        title="How far each strategy scales before it stops",
        meaning="The largest feasible number of PEs, at the batch that scales furthest.",
        rows=kept,
        describe=describe,
        x=("largest_pe", "largest number of PEs"),
        columns={
            "strategy": "strategy",
            "batch": "batch",
            "largest_pe": "largest PEs",
            "stop": "stopped by",
            "efficient_pe": "efficient up to",
            "fastest_pe": "fastest on",
        },
        replaces="limits",
    )


def ask_pareto(rows: Sequence[ParetoRow], objective: str, against: str) -> Asked:
    """Make the question which configurations none beats; rows: of `pareto`."""
    x = against.replace("-", "_")
    title = {"pe": "PEs", "pe_hours": "PE-hours"}.get(x, x)
    traded, axis = TRADED[objective]

    def describe(rows: Sequence[ParetoRow]) -> str:
        front: list[Row] = [
            {**row, "name": read_layout_words(row) or row["strategy"]} for row in rows
        ]
        front.sort(key=itemgetter(objective, x))

        def write(row: Row) -> str:
            numbers = f"{_write_number(objective, row)} and {_write_number(x, row)}"
            if x == "memory" and row["fits"] is not None:
                numbers += f", fits with {format_chance(row['fits'])}"
            return f"{name_row(row)} of {row['system']}, {numbers}"

        if len(front) == 1:
            return f"One configuration beats all others in {traded} and {title}: {write(front[0])}."
        knee = find_knee(*([row[name] for row in front] for name in (objective, x)))
        inside = f" Knee: {write(front[knee])}." if 0 < knee < len(front) - 1 else ""
        return (
            f"{len(front):,} configurations that no other beats in {traded} and {title}. "
            f"Fastest: {write(front[0])}.{inside} Least {title}: {write(front[-1])}."
        )

    return Asked(
        title=f"Time against {title}",
        meaning="Configurations that no other beats in both; the line joins them.",
        rows=rows,
        describe=describe,
        x=(x, title),
        y=(objective, axis),
        columns={
            "strategy": "configuration",
            "pe": "PEs",
            "batch": "batch",
            objective: axis,
            x: "bytes per PE" if x == "memory" else title,
        },
        replaces="trade",
    )


def _write_number(name: str, row: Row) -> str:
    value = row[name]
    per_epoch = " per epoch" if name == "epoch_time" else ""
    if name.endswith("_time") or name == "memory":
        return f"{format_quantity(value, 'B' if name == 'memory' else 's', 3)}{per_epoch}"
    if name == "cost":
        return f"cost {format_digits(value, 3)}"
    return f"{value:,.0f} PEs" if name == "pe" else f"{format_digits(value, 3)} PE-hours"


def ask_provision(rows: Sequence[ProvisionRow], seconds: float, epochs: float | None) -> Asked:
    """Make the question how few PEs meet a deadline [s]; rows: of `list_provisions`."""
    stated = {epochs} if epochs else {row["epochs"] for row in rows if row["epochs"]}
    task = "train to the target"
    if epochs or stated == {1.0}:  # a stated number of tokens is one epoch
        tokens = {read_tokens(row["dataset"]) for row in rows}
        once = f"train on {tokens.pop()} tokens" if len(tokens) == 1 and all(tokens) else ""
        once = once or "train one epoch"
        task = once if stated == {1.0} else f"train {epochs:g} epochs"
    deadline = write_time(seconds)

    def describe(rows: Sequence[ProvisionRow]) -> str:
        met = [row for row in rows if row["pe"] is not None]
        if not met:
            reasons = "; ".join(f"{row['strategy']}: {row['reason']}" for row in rows)
            return f"Nothing here can {task} within {deadline}: {reasons}."
        row = min(met, key=itemgetter("pe"))
        hours, time = format_cell(row["pe_hours"]), write_time(row["train_time"] or 0.0)
        cost = f", costing {format_cell(row['cost'])}" if row.get("cost") else ""
        strategy = row.get("layout") or shorten_label(row["strategy"])
        odds = "" if row["holds"] is None else f"; P(deadline met) {format_chance(row['holds'])}"
        return (
            f"To {task} within {deadline} takes {format_count(row['pe'] or 0, 'PE')} of "
            f"{row['system']}, with {strategy}, global batch {row['global_batch']:,.0f}: "
            f"{time}, {hours} PE-hours{cost}{odds}."
        )

    return Asked(
        title=f"Fewest PEs that {task} within {deadline}",
        meaning="Strategies that are not in the chart do not meet the deadline.",
        rows=rows,
        describe=describe,
        x=("pe", "PEs"),
        columns={
            "strategy": "strategy",
            "pe": "PEs",
            "batch": "batch",
            "train_time": "time [s]",
            "pe_hours": "PE-hours",
            "cost": "cost",
            "holds": CHANCE,
            "reason": "why not",
        },
        opening=rows[0],  # the fewest PEs come first
    )
