"""Commands that weigh: time against cost, and what is not known. Heavy imports are inside."""

from typing import Annotated, Literal

import typer

from sweep.cli.exits import NOTHING_FEASIBLE, end
from sweep.cli.objectives import TIMES, PriceOption, TimeOption, parse_price
from sweep.cli.shared_options import Form
from sweep.cli.spaces import All, Asked, ask_cube, ask_space


@ask_space
def pareto(
    asked: Asked,
    against: Annotated[
        Literal["pe-hours", "cost", "memory"], typer.Option(help="What time is weighed against.")
    ] = "pe-hours",
    price: PriceOption = None,
    objective: TimeOption = "epoch-time",
    every: All = False,
    form: Form = "table",
) -> None:
    """Configurations of which none is both faster and cheaper."""
    from sweep.questions.pareto import pareto as ask
    from sweep.show.answers import show_rows

    by, prices = TIMES[objective], parse_price(price)
    rows = ask_cube(
        asked,
        lambda: ask(asked.source, asked.selection, against=against, objective=by, price=prices),
    )
    show_rows(rows, form, every)
    if not rows:
        end("nothing in this slice is feasible", NOTHING_FEASIBLE)


@ask_space
def regret(
    asked: Asked,
    over: Annotated[
        str, typer.Option(help="What one does not know: system, draws, or an axis but pe.")
    ] = "system",
    objective: TimeOption = "epoch-time",
    every: All = False,
    form: Form = "table",
) -> None:
    """Strategies by what they lose at worst where one does not know the machine."""
    from sweep.questions.regret import regret as ask
    from sweep.show.regret import show_regrets

    by = TIMES[objective]
    rows = ask_cube(asked, lambda: ask(asked.source, asked.selection, over=over, objective=by))
    show_regrets(rows, over, form, every)
    if not any(row["rank"] for row in rows):
        end("no strategy is feasible throughout", NOTHING_FEASIBLE)


TRADES = (pareto, regret)
