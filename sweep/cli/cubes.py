"""Commands that ask a cube. As in `sweep.cli.main`, heavy imports are inside them."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from grids.reading.errors import InputError
from sweep.cli.exits import FAILED, NOTHING_FEASIBLE, end
from sweep.cli.objectives import (
    OBJECTIVES,
    TIMES,
    ObjectiveOption,
    PriceOption,
    parse_price,
)
from sweep.cli.shared_options import Form, Store
from sweep.cli.spaces import All, Asked, ask_cube, ask_space, end_if_empty
from sweep.show.visible import tell

if TYPE_CHECKING:
    from kernels.statistics import Objective


def status(
    store: Store,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all that is done, and name what is damaged.")
    ] = False,
    form: Form = "table",
) -> None:
    """How much of a cube is done."""
    from sweep.engine.progress import bar, lines
    from sweep.questions.status import read_status as ask
    from sweep.questions.status import verify_status
    from sweep.show.damage import advise_on_damage, show_verified
    from sweep.show.tables import show_one

    if not verify:
        show_one(ask(store), form)
        return
    shown = partial(bar if sys.stderr.isatty() else lines, what="verify")
    verdict = verify_status(store, shown)
    show_verified(verdict, form)
    if verdict["damaged"]:
        end(advise_on_damage(verdict), FAILED)


@ask_space
def limits(
    asked: Asked,
    efficiency: Annotated[
        float, typer.Option(help="Parallel efficiency that counts as efficient.")
    ] = 0.5,
    objective: Annotated[
        Literal["epoch-time", "train-time", "pe-hours", "cost"],
        typer.Option(help="A time; with --crossovers what a cost, too, is compared by."),
    ] = "epoch-time",
    price: PriceOption = None,
    crossovers: Annotated[
        str | None,
        typer.Option(
            metavar="ALONG",
            help="From where on strategies overtake others: pe, batch, inter_bandwidth ...",
        ),
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option("--intervals", help="Ranges of every row, and not of few rows alone."),
    ] = False,
    every: All = False,
    form: Form = "table",
) -> None:
    """How far each strategy scales, and what stops it; or where one overtakes another."""
    from sweep.questions.limits import add_ranges, expects_intervals
    from sweep.questions.limits import list_limits as ask
    from sweep.show.answers import SCREENFUL
    from sweep.show.limits import show_limits

    if crossovers is not None:
        _show_crossovers(asked, crossovers, objective, price, every, form)
        return
    by, bound = _expect_time(objective), asked.max_global_batch

    def answer() -> list[dict[str, Any]]:
        rows = ask(asked.source, efficiency, asked.selection, by, bound, intervals=False)
        shown = rows if every or form != "table" else rows[:SCREENFUL]
        if not expects_intervals(len(shown), intervals or None):
            return rows
        told = add_ranges(asked.source, shown, efficiency, asked.selection, by, bound)
        return [*told, *rows[len(shown) :]]

    rows = ask_cube(asked, answer)
    show_limits(rows, form, every)
    end_if_empty(asked, rows)


def _expect_time(objective: str) -> "Objective":
    """The time that limits are those of. InputError: they are kept of no other objective."""
    if objective not in TIMES:
        raise InputError(
            f"no limits are kept of {objective}",
            where="--objective",
            advice="expected epoch-time or train-time; or ask for --crossovers pe",
        )
    return TIMES[objective]


def _show_crossovers(
    asked: Asked,
    along: str,
    objective: str,
    price: list[str] | None,
    every: bool,
    form: Any,
) -> None:
    """Print from where on strategies overtake each other."""
    from sweep.questions.crossovers import list_crossovers as ask
    from sweep.questions.crossovers import tell_same
    from sweep.show.crossovers import show_crossovers

    goal, prices = OBJECTIVES[objective], parse_price(price)
    rows = ask_cube(
        asked,
        lambda: ask(
            asked.source,
            along,
            asked.selection,
            objective=goal,
            price=prices,
            max_global_batch=asked.max_global_batch,
        ),
    )
    show_crossovers(rows, form, every, goal)
    same = tell_same(asked.source, asked.selection, goal)
    if same:
        tell(f"paradl: {same}")
    end_if_empty(asked, rows)


@ask_space
def best(
    asked: Asked,
    objective: ObjectiveOption = "epoch-time",
    price: PriceOption = None,
    across: Annotated[
        bool, typer.Option("--across", help="One ranking over all systems, not one for each.")
    ] = False,
    why: Annotated[
        bool, typer.Option("--why", help="Of a store, too: what would make the losers feasible.")
    ] = False,
    every: All = False,
    form: Form = "table",
) -> None:
    """Strategies ranked, each with its best free parameters; and why not the losers."""
    from sweep.questions.best import rank_strategies as ask
    from sweep.show.ranking import describe_losers, show_ranking

    rows = ask_cube(
        asked,
        lambda: ask(
            asked.source,
            asked.selection,
            OBJECTIVES[objective],
            price=parse_price(price),
            max_global_batch=asked.max_global_batch,
            across=across,
            why=why or None,
        ),
    )
    show_ranking(rows, form, OBJECTIVES[objective], every)
    if not any(row["feasible"] for row in rows):
        end(f"nothing in this slice is feasible{describe_losers(rows)}", NOTHING_FEASIBLE)


QUESTIONS = (status, limits, best)
