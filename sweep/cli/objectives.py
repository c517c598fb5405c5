"""Options for the objective of a ranking, and for the price of a PE-hour."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from grids.reading.errors import InputError

if TYPE_CHECKING:
    from kernels.names.statistics import Objective
    from sweep.answers.objectives import Goal, Price

# The command line spells them with dashes, answers with underscores.
TIMES: "dict[str, Objective]" = {"epoch-time": "epoch_time", "train-time": "train_time"}
OBJECTIVES: "dict[str, Goal]" = {**TIMES, "pe-hours": "pe_hours", "cost": "cost"}
ObjectiveOption = Annotated[
    Literal["epoch-time", "train-time", "pe-hours", "cost"],
    typer.Option("--objective", help="What to minimise; cost needs --price."),
]
TimeOption = Annotated[
    Literal["epoch-time", "train-time"],
    typer.Option("--objective", help="Time to minimise: of an epoch, or to the target accuracy."),
]
PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--price", metavar="[SYSTEM=]X", help="Price of a PE-hour; repeat for several systems."
    ),
]


def parse_price(items: list[str] | None) -> "Price":
    """Parse the price of a PE-hour: one for all systems, or one for each."""
    if not items:
        return None
    pairs = [item.rpartition("=") for item in items]
    try:
        prices = {system.strip(): float(value) for system, _, value in pairs}
    except ValueError:
        raise InputError(
            f"expected a number, got {', '.join(items)}",
            where="--price",
            advice="write it like 2.5",
        ) from None
    if len(prices) < len(items) or ("" in prices and len(prices) > 1):
        raise InputError(
            "expected one price, or one for each system",
            where="--price",
            advice="such as --price abci=0.6 --price dgx-a100=2.1",
        )
    return prices.get("", prices)
