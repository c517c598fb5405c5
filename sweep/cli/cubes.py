"""Commands that ask a cube. As in `sweep.cli.main`, heavy imports are inside them."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

import typer

from kernels.statistics import Objective
from sweep.cli.assignments import list_fixed, parse_prices, parse_selection
from sweep.cli.exits import FAILED, NOTHING_FEASIBLE, end
from sweep.cli.shared_options import Form, ObjectiveOption, Store
from sweep.show.visible import tell

Sel = Annotated[
    list[str] | None,
    typer.Option("--sel", metavar="AXIS=VALUE[,VALUE]", help="Slice the cube; may be repeated."),
]

Price = Annotated[
    list[str] | None,
    typer.Option("--price", metavar="[SYSTEM=]PRICE", help="Of a PE-hour; may be repeated."),
]

# As the cube calls what the command line spells with dashes.
OBJECTIVES: dict[str, Objective] = {"epoch-time": "epoch_time", "train-time": "train_time"}


def status(
    store: Store,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all that is done, and name what is damaged.")
    ] = False,
    form: Form = "table",
) -> None:
    """How much of a cube is done."""
    from sweep.engine.progress import bar, silent
    from sweep.questions.status import read_status as ask
    from sweep.questions.status import verify_status
    from sweep.show.damage import advise_on_damage, show_verified
    from sweep.show.tables import show_one

    if not verify:
        show_one(ask(store), form)
        return
    verdict = verify_status(store, partial(bar, what="verify") if sys.stderr.isatty() else silent)
    show_verified(verdict, form)
    if verdict["damaged"]:
        end(advise_on_damage(verdict), FAILED)


def limits(
    store: Store,
    efficiency: Annotated[
        float, typer.Option(help="Parallel efficiency that counts as efficient.")
    ] = 0.5,
    sel: Sel = None,
    objective: ObjectiveOption = "epoch-time",
    form: Form = "table",
) -> None:
    """How far each strategy scales, and what stops it."""
    from sweep.questions.limits import list_limits as ask

    by, chosen = OBJECTIVES[objective], parse_selection(sel)
    _show_cube(store, form, chosen, lambda: ask(store, efficiency, chosen, by))


def best(
    store: Store,
    sel: Sel = None,
    objective: ObjectiveOption = "epoch-time",
    form: Form = "table",
) -> None:
    """Strategies ranked for a slice of a cube, with what forbids the losers."""
    from sweep.questions.best import rank_strategies as ask

    by, chosen = OBJECTIVES[objective], parse_selection(sel)
    table = _show_cube(store, form, chosen, lambda: ask(store, chosen, by))
    if not any(row["feasible"] for row in table):
        end("nothing in this slice is feasible", NOTHING_FEASIBLE)


def pareto(
    store: Store,
    against: Annotated[
        Literal["pe-hours", "cost", "memory"], typer.Option(help="What time is weighed against.")
    ] = "pe-hours",
    price: Price = None,
    sel: Sel = None,
    objective: ObjectiveOption = "epoch-time",
    form: Form = "table",
) -> None:
    """Configurations of which none is both faster and cheaper."""
    from sweep.questions.pareto import pareto as ask

    by, chosen, prices = OBJECTIVES[objective], parse_selection(sel), parse_prices(price)
    question = partial(ask, store, chosen, against=against, objective=by, price=prices)
    if not _show_cube(store, form, question):
        end("nothing in this slice is feasible", NOTHING_FEASIBLE)


def regret(
    store: Store,
    over: Annotated[
        str, typer.Option(help="What one does not know: system, draws, or an axis but pe.")
    ] = "system",
    sel: Sel = None,
    objective: ObjectiveOption = "epoch-time",
    form: Form = "table",
) -> None:
    """Strategies by what they lose at worst where one does not know the machine."""
    from sweep.questions.regret import regret as ask

    by, chosen = OBJECTIVES[objective], parse_selection(sel)
    table = _show_cube(store, form, partial(ask, store, chosen, over=over, objective=by))
    if not any(row["rank"] for row in table):
        end("no strategy is feasible throughout", NOTHING_FEASIBLE)


QUESTIONS = (status, limits, best, pareto, regret)


def _show_cube(store: str, form: Any, chosen: Mapping[str, list[str]], question: Any) -> Any:
    """Ask a cube, print the rows of the slice, and say on stderr what they lack."""
    from sweep.engine.verify import tell_damage
    from sweep.questions.status import count_blocks
    from sweep.show.tables import show

    with tell_damage(store):
        # Counted before: what a sweep finishes meanwhile is told as missing, and nothing missing as
        # done.
        done, blocks = count_blocks(store)
        table = question()
    show(table, form, fixed=list_fixed(chosen))
    if not len(table):
        tell("paradl: no samples of this slice fit its models")
    tell_missing(done, blocks)
    return table


def tell_missing(done: int, blocks: int) -> None:
    """Say on stderr that a sweep was not finished, if so."""
    if done < blocks:
        tell(
            f"paradl: only {done} of {blocks} blocks are done; "
            "run the same paradl sweep again to finish"
        )
