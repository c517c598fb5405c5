"""How options are read before slow imports: numbers as people write them, files to write."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer import Option

from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.textfile import PICTURES, expect_ending, expect_folder
from paradl.grids.reading.units import parse_count, parse_duration, parse_quantity

if TYPE_CHECKING:
    from paradl.sweep.answers.objectives import Price

# Kinds of numbers, by their name in help; the option adds its own name to messages.
KINDS: dict[str, Callable[[object], float]] = {
    "count": partial(parse_count, where=""),
    "amount": partial(parse_count, where="", unit="amount"),
    "share": partial(parse_quantity, unit="1", where="", example="80%"),
    "seconds": partial(parse_quantity, unit="s", where="", example="90 s"),
    "time": partial(parse_duration, where="", example="6 h"),
}


def take_number(
    kind: str, help: str, *names: str, least: float = -math.inf, most: float | None = None
) -> Any:
    """Make an option whose value is a number of a kind, such as 15T, 8k or 80%.

    most: None: 1 for shares, else no bound.
    """
    end = (1.0 if kind == "share" else math.inf) if most is None else most

    def parse(text: object) -> float:
        try:
            number = KINDS[kind](text)
            if not least <= number <= end:
                bound = f"at least {least:,.0f}" if number < least else f"at most {end:,.10g}"
                advice = "80 % is 0.8 or 80%" if kind == "share" else ""
                raise InputError(f"expected {bound}, got {shorten(text)}", advice=advice)
        except InputError as error:
            # Typer would word a ValueError; `Commands` makes an InputError of this one again.
            raise typer.BadParameter(str(error)) from error
        return number

    return Option(*names, parser=parse, metavar=f"<{kind}>", help=help)


def take_output(
    endings: tuple[str, ...],
    *names: str,
    help: str,
    metavar: str = "FILE",
    expect: Callable[[], None] = lambda: None,
) -> Any:
    """Make an option for a file to write, with one of these endings, in a folder that exists.

    expect: raises an error if what writes it is missing, before slow questions.
    """

    def check(path: Path | None) -> Path | None:
        if path is not None:
            expect_folder(path)
            expect_ending(path, endings)
            expect()
        return path

    return Option(*names, callback=check, metavar=metavar, help=help)


take_count = partial(take_number, "count")
take_share = partial(take_number, "share")
take_picture = partial(take_output, PICTURES)


def parse_price(items: list[str] | None) -> "Price":
    """Parse the price of a PE-hour: one for all systems, or one for each."""
    if not items:
        return None
    # From the right: a file's name may have an equals sign, a price has none.
    pairs = [item.rpartition("=") for item in items]
    prices = {
        system.strip(): parse_quantity(value, "1", "--price", "2.5") for system, _, value in pairs
    }
    if len(prices) < len(items) or ("" in prices and len(prices) > 1):
        raise InputError(
            "expected one price, or one for each system",
            where="--price",
            advice="such as --price abci=0.6 --price dgx-a100=2.1",
        )
    return prices.get("", prices)
