"""Commands that ask about a design space: how strategies compare, and what to plan for."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Context, Option, Typer

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.statistics import BEST, EFFICIENCY, Objective
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import NOTHING_FEASIBLE, end, take_options
from paradl.sweep.cli.report import PageOption, write_page_of
from paradl.sweep.cli.spaces import SpaceOptions, Subject
from paradl.sweep.cli.values import parse_price, take_number, take_share

if TYPE_CHECKING:
    from paradl.sweep.answers.types.questions import LimitsRow

app = Typer()

TRAINS_TOKENS = "--tokens are those of the whole training"
FEW_LAYOUTS, MOST_LAYOUTS = 10, 1000  # listed, and with --all: each takes some 20 ms


@dataclass(frozen=True)
class QuestionOptions(SpaceOptions):
    """Options of a question: what it is about, and how its answer is printed."""

    every: options.All = False
    form: options.Form = "table"


@dataclass(frozen=True)
class PagedOptions(QuestionOptions):
    """Options of a question whose answer may lead a page."""

    page: PageOption = None


AChance = Annotated[
    float | None, take_share("Required probability: of fitting in memory, of a deadline met.")
]
Epochs = Annotated[
    float | None, Option(help="Epochs to train; default: those to the target of --convergence.")
]

QuestionCommand, PagedCommand = take_options(QuestionOptions), take_options(PagedOptions)


@app.command(cls=PagedCommand)
def limits(
    context: Context,
    efficiency: Annotated[float, take_share("Least parallel efficiency to accept.")] = EFFICIENCY,
    objective: options.ATime = "epoch-time",
    along: Annotated[
        str | None,
        Option("--crossovers", metavar="ALONG", help="Where strategies cross along pe ..."),
    ] = None,
    intervals: Annotated[bool, Option("--intervals", help="Intervals even for many rows.")] = False,
) -> None:
    """How far strategies scale, what stops them, where they cross."""
    if along is not None:
        options.refuse_given({"intervals": intervals}, "crossovers have theirs")
        # The default is not refused, stated or not.
        other = efficiency if efficiency != EFFICIENCY else None
        options.refuse_given({"efficiency": other}, "cannot be combined with --crossovers")
    given: PagedOptions = context.obj
    subject, by = given.read(objective), options.TIMES[objective]
    if along is None:
        subject.end_if_empty(_show_limits(given, subject, efficiency, by, intervals))
        return
    from paradl.sweep.questions.crossovers import list_crossovers
    from paradl.sweep.text.limits import describe_crossover
    from paradl.sweep.text.tables import show_rows

    rows = subject.ask(list_crossovers, given.form, along, objective=by)
    if rows:
        write_page_of(subject, given.page, objective)
    show_rows(rows, given.form, given.every, describe_crossover)
    subject.end_if_empty(rows)


def _show_limits(
    given: PagedOptions, subject: Subject, efficiency: float, by: Objective, intervals: bool
) -> "list[LimitsRow]":
    """Print how far each strategy scales; return the rows shown."""
    from paradl.sweep.cells.source import open_source
    from paradl.sweep.configurations.degrees import write_layouts
    from paradl.sweep.questions.limits import (
        add_ranges,
        expects_intervals,
        find_lines,
        pick_furthest,
    )
    from paradl.sweep.text.limits import show_limits
    from paradl.sweep.text.sentences import ask_limits
    from paradl.sweep.text.tables import SCREENFUL

    found: list[LimitsRow] = []

    def answer(source: Any, selection: Any, max_global_batch: int | None) -> "list[LimitsRow]":
        scope = (selection, by, max_global_batch)
        found.extend(find_lines(source, efficiency, *scope, every_layout=given.every))
        whole = given.every or given.form != "table"
        rows = found if whole else pick_furthest(found)[:SCREENFUL]
        # None: by default, if there are few rows.
        if expects_intervals(len(rows), intervals or None):
            rows = add_ranges(source, rows, efficiency, *scope)
        return write_layouts(open_source(source).grid, rows, BEST[by]["pe"])

    subject.tell_kept_groups()
    rows = subject.ask(answer, given.form)
    asked = ask_limits(found) if found else None
    if asked:
        write_page_of(subject, given.page, by.replace("_", "-"), asked=asked)
    sentence = asked.describe(asked.rows) if asked else ""
    show_limits(rows, given.form, sentence, len(found) - len(rows))
    return rows


@app.command(cls=PagedCommand)
def best(
    context: Context,
    objective: options.AnObjective = "epoch-time",
    price: options.Prices = None,
    across: Annotated[bool, Option("--across", help="Rank over all systems together.")] = False,
    why: Annotated[bool, Option("--why", help="Say what losers need, of a store, too.")] = False,
    over: Annotated[
        str | None,
        Option("--worst-case", metavar="OVER", help="Rank by the worst slowdown over it."),
    ] = None,
    deadline: Annotated[
        float | None,
        take_number("time", "Rank only what trains within it, such as 60d, 1h30m."),
    ] = None,
    holds: AChance = None,
    epochs: Epochs = None,
) -> None:
    """Rank strategies, or layouts of a transformer; why others fail."""
    given: PagedOptions = context.obj
    if over is not None:
        unused = {"price": price, "across": across, "why": why, "report": given.page}
        refused = unused | {"deadline": deadline, "holds": holds, "epochs": epochs}
        options.refuse_given(refused, "cannot be combined with --worst-case")
        _show_worst_cases(given, over, objective)
        return
    for with_page, name in ((deadline, "deadline"), (epochs, "epochs")):
        if with_page is not None:
            options.refuse_given({"report": given.page}, f"cannot be combined with --{name}")
    if given.tokens is not None:
        options.refuse_given({"epochs": epochs}, TRAINS_TOKENS)
    if (given.tokens or deadline or epochs) is not None and objective == "epoch-time":
        objective = "train-time"
    # No law of epochs is needed with their number. A script's layout is ranked beside all others.
    subject = given.read(objective if epochs is None else None, ",layouts")
    from paradl.sweep.configurations.degrees import list_layout_rows
    from paradl.sweep.questions.best.question import rank_strategies
    from paradl.sweep.text.ranking import describe_fastest, describe_losers, show_ranking

    goal = options.OBJECTIVES[objective]
    # A store has one layout per cell, unless it has an axis of them.
    has_one = subject.store and not list_layout_rows(subject.space.grid)
    layouts = None if has_one else MOST_LAYOUTS if given.every else FEW_LAYOUTS
    # None and not False: a design space explains its losers unasked.
    ask = partial(
        rank_strategies,
        across=across,
        why=why or None,
        layouts=layouts,
        deadline=deadline,
        holds=holds,
        epochs=epochs,
    )
    subject.tell_kept_groups()
    rows = subject.ask(ask, given.form, objective=goal, price=parse_price(price))
    if is_feasible := any(row["feasible"] for row in rows):
        is_searched = given.page and layouts and not subject.store
        shown = subject.list_layouts(layouts or 1) if is_searched else subject
        write_page_of(shown, given.page, objective, price)
    show_ranking(rows, given.form, goal, given.every)
    if not is_feasible:
        late = ""
        if deadline is not None:  # how far it is missed
            bound = subject.max_global_batch
            unhurried = partial(ask, objective="train_time", deadline=None, holds=None, why=False)
            late = describe_fastest(
                unhurried(subject.source, subject.selection, max_global_batch=bound)
            )
        end(f"nothing in this slice is feasible{describe_losers(rows)}{late}", NOTHING_FEASIBLE)


def _show_worst_cases(given: PagedOptions, over: str, objective: str) -> None:
    """Print strategies by their worst slowdown. InputError: an objective that is no time."""
    if objective not in options.TIMES:
        raise InputError(
            f"slowdowns are of a time, not {objective}",
            where="--objective",
            advice="write epoch-time or train-time",
        )
    subject = given.read(objective)
    from paradl.sweep.questions.regret import rank_regrets
    from paradl.sweep.text.ranking import describe_regret
    from paradl.sweep.text.tables import show_rows

    by = options.TIMES[objective]
    rows = subject.ask(rank_regrets, given.form, over=over, objective=by, bounded=False)
    show_rows(rows, given.form, given.every, partial(describe_regret, over))
    if not any(row["rank"] for row in rows):
        end("no strategy is feasible throughout", NOTHING_FEASIBLE)


def _end_without_cells(subject: Subject, form: options.Form) -> None:
    """Exit with the limits that forbid all cells of a slice; for programs with no rows, too."""
    from paradl.sweep.questions.best.question import rank_strategies
    from paradl.sweep.text.ranking import describe_losers
    from paradl.sweep.text.tables import show

    if form != "table":
        show([], form)
    rows = rank_strategies(
        subject.source,
        subject.selection,
        max_global_batch=subject.max_global_batch,
        why=False,
        intervals=False,
    )
    end(f"nothing in this slice is feasible{describe_losers(rows)}", NOTHING_FEASIBLE)


@app.command(cls=PagedCommand)
def pareto(
    context: Context,
    against: Annotated[
        Literal["pe-hours", "cost", "memory", "pe"], Option(help="Traded off with the objective.")
    ] = "pe-hours",
    price: options.Prices = None,
    objective: Annotated[
        Literal["epoch-time", "train-time", "pe-hours"],
        Option(help="What to minimise; pe-hours: the most samples a second of a PE."),
    ] = "epoch-time",
) -> None:
    """Configurations that none beats in time and another quantity."""
    given: PagedOptions = context.obj
    goal = options.OBJECTIVES[objective]
    subject = given.read(objective)
    from paradl.sweep.questions.pareto import list_front as question
    from paradl.sweep.text.ranking import show_front
    from paradl.sweep.text.sentences import ask_pareto

    # The cells of a store have their layouts already.
    layouts = subject.store is None
    goals = {"against": against, "objective": goal, "price": parse_price(price)}
    rows = subject.ask(question, given.form, bounded=False, layouts=layouts, **goals)
    if not rows:
        _end_without_cells(subject, given.form)
    asked = ask_pareto(rows, goal, against)
    write_page_of(subject, given.page, objective, price, asked)
    show_front(rows, given.form, given.every, asked.describe)


@app.command(cls=QuestionCommand)
def bottleneck(context: Context) -> None:
    """What takes most of the time and memory at each PE count."""
    given: QuestionOptions = context.obj
    subject = given.read()
    from paradl.sweep.questions.bottleneck import list_bottlenecks
    from paradl.sweep.text.planning import show_bottlenecks

    rows = subject.ask(list_bottlenecks, given.form)
    show_bottlenecks(rows, given.form, given.every)
    if not rows:
        end("no such configuration exists: more PEs than the strategy can use", NOTHING_FEASIBLE)


@app.command(cls=QuestionCommand)
def sensitivity(context: Context) -> None:
    """Which upgrades pay: elasticities in each parameter."""
    given: QuestionOptions = context.obj
    subject = given.read()
    from paradl.sweep.questions.sensitivity import list_sensitivities
    from paradl.sweep.text.planning import show_sensitivities

    rows = subject.ask(list_sensitivities, given.form)
    if not rows:
        _end_without_cells(subject, given.form)
    show_sensitivities(rows, given.form, given.every)


@app.command(cls=PagedCommand)
def provision(
    context: Context,
    deadline: Annotated[
        float | None, take_number("time", "Find the fewest PEs that train within 60d, 1h30m ...")
    ] = None,
    epochs: Epochs = None,
    holds: AChance = None,
    need: Annotated[
        str | None, Option(metavar="PARAMETER", help="Solve for batch, memory_capacity ...")
    ] = None,
    efficiency: Annotated[float | None, take_share("With --need: efficiency to reach.")] = None,
    price: options.Prices = None,
) -> None:
    """The fewest PEs for a deadline, or what a goal needs."""
    given: PagedOptions = context.obj
    if (deadline is None) == (need is None):
        raise InputError(
            "expected one of --deadline and --need",
            where="--deadline",
            advice="such as --deadline '2 h' --epochs 90, or --need inter_bandwidth "
            "--efficiency 0.8, or --need batch",
        )
    if need is None:
        options.refuse_given({"efficiency": efficiency}, "belongs to --need")
    else:
        unused = {"holds": holds, "epochs": epochs, "price": price, "report": given.page}
        options.refuse_given(unused, "belongs to --deadline")
    if given.tokens is not None:
        options.refuse_given({"epochs": epochs}, TRAINS_TOKENS)
    if need in ("batch", "memory_capacity"):
        options.refuse_given({"efficiency": efficiency}, f"--need {need} asks what fits")
    subject = given.read()
    from paradl.sweep.text.planning import describe_need, describe_provision
    from paradl.sweep.text.tables import print_text, show_rows

    if need is not None:
        from paradl.sweep.questions.needs import list_needs

        found = subject.ask(list_needs, given.form, need, efficiency=efficiency, bounded=False)
        show_rows(found, given.form, given.every, describe_need)
        # A reason may also say that any value will do.
        if all(str(row["reason"]).startswith("never") for row in found):
            end(f"no value of {need} will do", NOTHING_FEASIBLE)
        return
    from paradl.sweep.questions.provision import list_provisions
    from paradl.sweep.text.columns import CHANCE
    from paradl.sweep.text.sentences import ask_provision, describe_networks

    assert deadline is not None  # one of both is given
    ask = partial(list_provisions, epochs=epochs, holds=holds)
    rows = subject.ask(ask, given.form, deadline, price=parse_price(price))
    if is_met := any(row["pe"] is not None for row in rows):
        asked = ask_provision(rows, deadline, epochs)
        if given.form == "table":
            for sentence in describe_networks(rows, asked.describe):
                print_text(sentence)
        write_page_of(subject, given.page, price=price, asked=asked)
    shown = ("time", CHANCE, "reason")
    show_rows(rows, given.form, given.every, describe_provision, asked=shown)
    if not is_met:
        end("no strategy meets the deadline with these PE counts", NOTHING_FEASIBLE)
