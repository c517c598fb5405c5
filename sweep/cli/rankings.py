"""Commands that compare strategies."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from grids.reading.errors import InputError
from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.fit import (
    GlobalBatchOption,
    SequenceOption,
    TokensOption,
    limit_layouts,
    rank_layouts,
    refuse_with_sequence,
    refuse_without_sequence,
)
from sweep.cli.objectives import (
    OBJECTIVES,
    TIMES,
    ObjectiveOption,
    PriceOption,
    TimeOption,
    parse_price,
)
from sweep.cli.pages import PageOption, expect_page, write_page_of
from sweep.cli.shared_options import All, Form
from sweep.cli.spaces import SpaceCommand
from sweep.cli.subjects import Subject

if TYPE_CHECKING:
    from kernels.names.statistics import Objective

app = typer.Typer()


@app.command(cls=SpaceCommand)
def limits(
    context: typer.Context,
    efficiency: Annotated[
        float, typer.Option(help="Least parallel efficiency that counts as efficient.")
    ] = 0.5,
    objective: Annotated[
        Literal["epoch-time", "train-time", "pe-hours", "cost"],
        typer.Option(help="Time to minimise; with --crossovers also pe-hours or cost."),
    ] = "epoch-time",
    price: PriceOption = None,
    along: Annotated[
        str | None,
        typer.Option(
            "--crossovers",
            metavar="ALONG",
            help="Find where strategies overtake each other along pe, batch, inter_bandwidth ...",
        ),
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option("--intervals", help="Compute intervals even for many rows."),
    ] = False,
    sequence: SequenceOption = None,
    global_batch: GlobalBatchOption = None,
    page: PageOption = None,
    every: All = False,
    form: Form = "table",
) -> None:
    """How far each strategy scales and what stops it, or where one overtakes another.

    With --sequence: how far a transformer scales, at the fastest layout of 1, 2, 4 ... PEs.
    """
    if sequence is not None:
        given = {"price": price, "crossovers": along, "report": page}
        refuse_with_sequence(given)
        limit_layouts(context.obj, sequence, global_batch, efficiency, every, form)
        return
    of_layouts = {"global-batch": global_batch}
    refuse_without_sequence(of_layouts)
    expect_page(page)
    subject: Subject = context.obj.read(objective)
    if along is not None:
        _show_crossovers(subject, along, objective, price, every, form)
        write_page_of(subject, page, objective, price)
        return
    from sweep.questions.limits import add_ranges, expects_intervals
    from sweep.questions.limits import list_limits as ask
    from sweep.show.limits import show_limits
    from sweep.show.rows import SCREENFUL

    by, bound = _expect_time(objective), subject.max_global_batch

    def answer() -> list[dict[str, Any]]:
        rows = ask(subject.source, efficiency, subject.selection, by, bound, intervals=False)
        # Intervals need draws, so rows that the screen does not show go without.
        shown = rows if every or form != "table" else rows[:SCREENFUL]
        if not expects_intervals(len(shown), intervals or None):
            return rows
        ranged = add_ranges(subject.source, shown, efficiency, subject.selection, by, bound)
        return [*ranged, *rows[len(shown) :]]

    rows = subject.ask(answer, form)
    show_limits(rows, form, every)
    subject.end_if_empty(rows)
    write_page_of(subject, page, objective)


def _expect_time(objective: str) -> "Objective":
    """Return the time that limits refer to. InputError: another objective."""
    if objective not in TIMES:
        raise InputError(
            f"limits minimise a time, not {objective}",
            where="--objective",
            advice="write epoch-time or train-time, or add --crossovers pe",
        )
    return TIMES[objective]


def _show_crossovers(
    subject: Subject,
    along: str,
    objective: str,
    price: list[str] | None,
    every: bool,
    form: Any,
) -> None:
    """Print where strategies overtake each other."""
    from sweep.questions.crossovers import list_crossovers as ask
    from sweep.questions.crossovers import tell_same
    from sweep.show.limits import show_crossovers

    goal, prices = OBJECTIVES[objective], parse_price(price)

    def answer() -> list[dict[str, Any]]:
        rows = ask(
            subject.source,
            along,
            subject.selection,
            objective=goal,
            price=prices,
            max_global_batch=subject.max_global_batch,
        )
        same = tell_same(subject.source, subject.selection, goal)
        if same:
            subject.note(same)
        return rows

    rows = subject.ask(answer, form)
    show_crossovers(rows, form, every, goal)
    subject.end_if_empty(rows)


@app.command(cls=SpaceCommand)
def best(
    context: typer.Context,
    objective: ObjectiveOption = "epoch-time",
    price: PriceOption = None,
    across: Annotated[
        bool, typer.Option("--across", help="Rank over all systems together.")
    ] = False,
    why: Annotated[
        bool,
        typer.Option("--why", help="Say what would make the losers feasible, for a store too."),
    ] = False,
    sequence: SequenceOption = None,
    global_batch: GlobalBatchOption = None,
    tokens: TokensOption = None,
    page: PageOption = None,
    every: All = False,
    form: Form = "table",
) -> None:
    """Rank strategies, each with its best free parameters, and say why the losers are infeasible.

    With --sequence: the layouts of a transformer that fit, the fastest first, as fit --by time.
    """
    if sequence is not None:
        refuse_with_sequence({"report": page})
        rank_layouts(context.obj, sequence, global_batch, tokens, price, every, form)
        return
    of_layouts = {"global-batch": global_batch, "tokens": tokens}
    refuse_without_sequence(of_layouts)
    expect_page(page)
    subject: Subject = context.obj.read(objective)
    from sweep.questions.best import rank_strategies as ask
    from sweep.show.ranking import describe_losers, show_ranking

    rows = subject.ask(
        lambda: ask(
            subject.source,
            subject.selection,
            OBJECTIVES[objective],
            price=parse_price(price),
            max_global_batch=subject.max_global_batch,
            across=across,
            why=why or None,
        ),
        form,
    )
    show_ranking(rows, form, OBJECTIVES[objective], every)
    if not any(row["feasible"] for row in rows):
        end(f"nothing in this slice is feasible{describe_losers(rows)}", NOTHING_FEASIBLE)
    write_page_of(subject, page, objective, price)


@app.command(cls=SpaceCommand)
def pareto(
    context: typer.Context,
    against: Annotated[
        Literal["pe-hours", "cost", "memory"], typer.Option(help="Quantity to trade off with time.")
    ] = "pe-hours",
    price: PriceOption = None,
    objective: TimeOption = "epoch-time",
    page: PageOption = None,
    every: All = False,
    form: Form = "table",
) -> None:
    """Configurations that no other beats in both time and another quantity."""
    expect_page(page)
    subject: Subject = context.obj.read(objective)
    from sweep.questions.pareto import pareto as ask
    from sweep.show.rows import show_rows

    by, prices = TIMES[objective], parse_price(price)
    rows = subject.ask(
        lambda: ask(subject.source, subject.selection, against=against, objective=by, price=prices),
        form,
    )
    show_rows(rows, form, every)
    if not rows:
        end("nothing in this slice is feasible", NOTHING_FEASIBLE)
    write_page_of(subject, page, objective)


@app.command(cls=SpaceCommand)
def regret(
    context: typer.Context,
    over: Annotated[
        str, typer.Option(help="The uncertain input: system, draws, or any axis except pe.")
    ] = "system",
    objective: TimeOption = "epoch-time",
    every: All = False,
    form: Form = "table",
) -> None:
    """Rank strategies by their worst slowdown when the machine is uncertain."""
    subject: Subject = context.obj.read(objective)
    from sweep.questions.regret import regret as ask
    from sweep.show.ranking import show_regrets

    by = TIMES[objective]
    rows = subject.ask(
        lambda: ask(subject.source, subject.selection, over=over, objective=by), form
    )
    show_regrets(rows, over, form, every)
    if not any(row["rank"] for row in rows):
        end("no strategy is feasible throughout", NOTHING_FEASIBLE)
