"""Commands that compare strategies."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Context, Option, Typer

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.statistics import EFFICIENCY
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import NOTHING_FEASIBLE, end
from paradl.sweep.cli.report import PageOption, expect_page, write_page_of
from paradl.sweep.cli.spaces import Rows, SpaceCommand, SpaceOptions, Subject
from paradl.sweep.cli.values import parse_price, take_share

app = Typer()

FEW_LAYOUTS, MOST_LAYOUTS = 10, 1000  # listed, and with --all: each takes some 20 ms


@app.command(cls=SpaceCommand)
def limits(
    context: Context,
    efficiency: Annotated[
        float, take_share("Least parallel efficiency that counts as efficient.")
    ] = EFFICIENCY,
    objective: Annotated[
        Literal["epoch-time", "train-time", "pe-hours", "cost"],
        Option(help="Time to minimise; with --crossovers also pe-hours or cost."),
    ] = "epoch-time",
    price: options.Prices = None,
    along: Annotated[
        str | None,
        Option(
            "--crossovers",
            metavar="ALONG",
            help="Find where strategies overtake each other along pe, batch, inter_bandwidth ...",
        ),
    ] = None,
    intervals: Annotated[
        bool, Option("--intervals", help="Compute intervals even for many rows.")
    ] = False,
    page: PageOption = None,
    every: options.All = False,
    form: options.Form = "table",
) -> None:
    """How far strategies scale, what stops them, where they cross."""
    if along is not None:
        options.refuse_given({"intervals": intervals or None}, "crossovers have theirs")
        # The default is not refused, stated or not.
        other = efficiency if efficiency != EFFICIENCY else None
        options.refuse_given({"efficiency": other}, "cannot be combined with --crossovers")
    if page is None and (along is None or objective != "cost"):
        options.refuse_given({"price": price}, "belongs to --crossovers by cost, and to --report")
    expect_page(page)
    subject: Subject = context.obj.read(objective)
    if along is not None:
        _show_crossovers(subject, along, objective, price, every, form, page)
    else:
        _show_limits(subject, efficiency, objective, price, intervals, every, form, page)


def _show_limits(
    subject: Subject,
    efficiency: float,
    objective: str,
    price: list[str] | None,
    intervals: bool,
    every: bool,
    form: options.Form,
    page: Path | None,
) -> None:
    """Print how far each strategy scales. InputError: an objective that is no time."""
    from paradl.sweep.questions.limits import (
        add_ranges,
        expects_intervals,
        list_limits,
        pick_furthest,
    )
    from paradl.sweep.report.asked import ask_limits
    from paradl.sweep.show.ranking import show_limits
    from paradl.sweep.show.rows import SCREENFUL

    if objective not in options.TIMES:
        raise InputError(
            f"limits minimise a time, not {objective}",
            where="--objective",
            advice="write epoch-time or train-time, or add --crossovers pe",
        )
    by = options.TIMES[objective]
    found: Rows = []

    def answer(source: Any, selection: Any, max_global_batch: int | None) -> Rows:
        scope = (selection, by, max_global_batch)
        found.extend(list_limits(source, efficiency, *scope, intervals=False))
        whole = every or form != "table"
        rows = found if whole else pick_furthest(found)[:SCREENFUL]
        # None: by default, if there are few rows.
        if not expects_intervals(len(rows), intervals or None):
            return rows
        return add_ranges(source, rows, efficiency, *scope)

    subject.tell_kept_groups()
    rows = subject.ask(answer, form)
    asked = ask_limits(found) if found else None
    if asked and page:
        write_page_of(subject, page, objective, price, asked)
    sentence = asked.describe(asked.rows) if asked else ""
    show_limits(rows, form, sentence, len(found) - len(rows))
    subject.end_if_empty(rows)


def _show_crossovers(
    subject: Subject,
    along: str,
    objective: str,
    price: list[str] | None,
    every: bool,
    form: options.Form,
    page: Path | None,
) -> None:
    """Print where strategies overtake each other."""
    from paradl.sweep.questions.crossovers import list_crossovers, tell_same
    from paradl.sweep.show.ranking import describe_crossover
    from paradl.sweep.show.rows import show_rows

    goal = options.OBJECTIVES[objective]

    def answer(*values: Any, **settings: Any) -> Rows:
        rows = list_crossovers(*values, **settings)
        # Strategies that are equally fast everywhere have no crossover, which looks like a mistake.
        if same := tell_same(subject.source, subject.selection, goal):
            subject.note(same)
        return rows

    prices = parse_price(price)
    rows = subject.ask(answer, form, along, objective=goal, price=prices)
    if rows:
        write_page_of(subject, page, objective, price)
    show_rows(rows, form, every, partial(describe_crossover, goal=goal))
    subject.end_if_empty(rows)


@app.command(cls=SpaceCommand)
def best(
    context: Context,
    objective: options.AnObjective = "epoch-time",
    price: options.Prices = None,
    across: Annotated[bool, Option("--across", help="Rank over all systems together.")] = False,
    why: Annotated[
        bool, Option("--why", help="Say what would make the losers feasible, for a store too.")
    ] = False,
    over: Annotated[
        str | None,
        Option(
            "--worst-case",
            metavar="OVER",
            help="Rank by the worst slowdown over system, draws, or any axis except pe.",
        ),
    ] = None,
    page: PageOption = None,
    every: options.All = False,
    form: options.Form = "table",
) -> None:
    """Rank strategies, or layouts of a transformer; why others fail."""
    if over is not None:
        unused = {"price": price, "across": across or None, "why": why or None, "report": page}
        options.refuse_given(unused, "cannot be combined with --worst-case")
        _show_worst_cases(context.obj, over, objective, every, form)
        return
    if context.obj.tokens is not None and objective == "epoch-time":
        objective = "train-time"
    expect_page(page)
    subject: Subject = context.obj.read(objective)
    from paradl.sweep.questions.best import rank_strategies
    from paradl.sweep.show.ranking import describe_losers, show_ranking

    goal, prices = options.OBJECTIVES[objective], parse_price(price)
    # A store has one layout per cell; of a design space several are compared.
    layouts = None if subject.store else MOST_LAYOUTS if every else FEW_LAYOUTS
    # None and not False: a design space explains its losers unasked.
    ask = partial(rank_strategies, across=across, why=why or None, layouts=layouts)
    subject.tell_kept_groups()
    rows = subject.ask(ask, form, objective=goal, price=prices)
    if is_feasible := any(row["feasible"] for row in rows):
        shown = subject.list_layouts(layouts) if page and layouts else subject
        write_page_of(shown, page, objective, price)
    show_ranking(rows, form, goal, every)
    if not is_feasible:
        end(f"nothing in this slice is feasible{describe_losers(rows)}", NOTHING_FEASIBLE)


def _show_worst_cases(
    space: SpaceOptions, over: str, objective: str, every: bool, form: options.Form
) -> None:
    """Print strategies by their worst slowdown. InputError: an objective that is no time."""
    if objective not in options.TIMES:
        raise InputError(
            f"slowdowns are of a time, not {objective}",
            where="--objective",
            advice="write epoch-time or train-time",
        )
    subject = space.read(objective)
    from paradl.sweep.questions.regret import regret
    from paradl.sweep.show.ranking import describe_regret
    from paradl.sweep.show.rows import show_rows

    by = options.TIMES[objective]
    rows = subject.ask(regret, form, over=over, objective=by, bounded=False)
    show_rows(rows, form, every, partial(describe_regret, over))
    if not any(row["rank"] for row in rows):
        end("no strategy is feasible throughout", NOTHING_FEASIBLE)


@app.command(cls=SpaceCommand)
def pareto(
    context: Context,
    against: Annotated[
        Literal["pe-hours", "cost", "memory", "pe"],
        Option(help="Quantity to trade off with the objective."),
    ] = "pe-hours",
    price: options.Prices = None,
    objective: Annotated[
        Literal["epoch-time", "train-time", "pe-hours"],
        Option(help="What to minimise; pe-hours: the most samples a second of a PE."),
    ] = "epoch-time",
    page: PageOption = None,
    every: options.All = False,
    form: options.Form = "table",
) -> None:
    """Configurations that none beats in time and another quantity."""
    goals = {"against": against, "objective": options.OBJECTIVES[objective]}
    expect_page(page)
    subject: Subject = context.obj.read(objective)
    from paradl.sweep.questions.pareto import pareto as question
    from paradl.sweep.report.asked import ask_pareto
    from paradl.sweep.show.ranking import show_front

    # A store has one layout per cell, and so no others that need less memory.
    layouts = against == "memory" and subject.store is None
    prices = parse_price(price)
    rows = subject.ask(question, form, price=prices, layouts=layouts, bounded=False, **goals)
    if not rows:
        end("nothing in this slice is feasible", NOTHING_FEASIBLE)
    asked = ask_pareto(rows, goals["objective"], against)
    write_page_of(subject, page, objective, price, asked)
    show_front(rows, form, every, asked.describe)
