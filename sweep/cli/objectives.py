"""Options of what a question ranks by, and what a PE-hour costs."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from grids.reading.errors import InputError

if TYPE_CHECKING:
    from kernels.names.statistics import Objective
    from sweep.answers.objectives import Goal, Price

# As answers call what the command line spells with dashes.
TIMES: "dict[str, Objective]" = {"epoch-time": "epoch_time", "train-time": "train_time"}
OBJECTIVES: "dict[str, Goal]" = {**TIMES, "pe-hours": "pe_hours", "cost": "cost"}
ObjectiveOption = Annotated[
    Literal["epoch-time", "train-time", "pe-hours", "cost"],
    typer.Option("--objective", help="What to minimise; cost needs --price."),
]
TimeOption = Annotated[
    Literal["epoch-time", "train-time"],
    typer.Option("--objective", help="The time of an epoch, or the time to the target."),
]
PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--price", metavar="[SYSTEM=]X", help="Price of a PE-hour; repeat for several systems."
    ),
]


def parse_price(items: list[str] | None) -> "Price":
    """The price of a PE-hour: one, or one for each system."""
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
