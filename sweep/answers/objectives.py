"""Objectives that questions minimise, and prices of PE-hours."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.names import list_names, split_reference
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError, find_meant, shorten
from paradl.grids.reading.units import parse_quantity
from paradl.kernels.names.statistics import BEST, Objective

Goal = Literal["epoch_time", "train_time", "pe_hours", "cost", "memory"]
C = TypeVar("C", bound=str)
# One price per PE-hour for all systems, or a price for each system.
Price = float | Mapping[str, float] | None

HOUR = 3600.0  # [s]


@dataclass(frozen=True)
class Aim:
    """The quantity to minimise, and the price per PE-hour if it is a cost."""

    goal: Goal = "epoch_time"
    price: Price = None

    def __post_init__(self) -> None:
        if self.goal not in get_args(Goal):
            raise InputError.unknown("objective", self.goal, get_args(Goal), where="objective")
        check_price(self.price, is_needed=self.goal == "cost")

    @property
    def summarised(self) -> Objective | None:
        """The objective, if a cube's summary keeps its best cells; else None."""
        # A key of BEST and not the goal itself: only the key has the narrower type.
        return next((goal for goal in BEST if goal == self.goal), None)

    @property
    def counts_pes(self) -> bool:
        """True if a time counts once for each PE: PE-hours and costs."""
        return self.goal in ("pe_hours", "cost")

    def trains(self, grid: Grid, model: str, dataset: str) -> bool:
        """True if times are to a target accuracy: for train_time, and for PE-hours and costs
        wherever a convergence law is known.
        """
        if self.goal in ("epoch_time", "train_time"):
            return self.goal == "train_time"
        return (model, dataset) in grid.convergences


def check_price(price: object, *, is_needed: bool = False) -> None:
    """Raise InputError unless every price is a number above 0; is_needed: if there is none, too."""
    if is_needed and price is None:
        raise InputError("a cost needs the price of a PE-hour, such as 2.5", where="price")
    for value in price.values() if isinstance(price, Mapping) else [price]:
        if value is not None and not (isinstance(value, Real) and 0 < float(value) < math.inf):
            raise InputError(f"expected a price above 0, got {shorten(value)}", where="price")


def read_epochs(epochs: object, grid: Grid) -> float | None:
    """Return a number of epochs; None: a law has it. InputError: no law, or not above 0."""
    if epochs is None and grid.convergences:
        return None
    if epochs is None:
        raise InputError(
            "the number of epochs is not given",
            where="epochs",
            advice="such as 90; a spec, or a question without a store, may state tokens, or a law "
            "of epochs (convergence: auto)",
        )
    number = parse_quantity(epochs, "1", "epochs", "90")
    if not number > 0:
        raise InputError(f"expected more than 0, got {shorten(epochs)}", where="epochs")
    return number


def look_up_price(price: Price, system: str) -> float | None:
    """Price of a PE-hour on a system, whatever its settings; None without prices.

    InputError: only other systems have one.
    """
    if not isinstance(price, Mapping):
        return price
    machine, _ = split_reference(system)
    if system not in price and machine not in price:
        # That of another machine of the catalogue is no slip.
        slips = [name for name in price if name not in list_names("system")]
        meant, advice = find_meant(machine, slips), f"add {machine}=2.5"
        if meant is not None:
            advice = f"write {machine}={price[meant]:g} in place of {meant}={price[meant]:g}"
        what = f"no price for {machine!r}; known: {', '.join(price) or 'none'}"
        raise InputError(what, where="price", advice=advice)
    return price.get(system, price.get(machine))


def look_up_prices(systems: NDArray[Any], price: Price) -> NDArray[np.float64]:
    """Price of a PE-hour on each system. InputError: a system without a price."""
    prices = [look_up_price(price, str(name)) for name in systems.reshape(-1)]
    return np.array(prices, float).reshape(systems.shape)


def expect_objective(objective: str) -> None:
    """Raise InputError unless summaries keep this objective."""
    if objective not in BEST:
        raise InputError.unknown("objective", objective, BEST, where="objective")


def read_choice(choice: C, known: tuple[C, ...], kind: str, where: str) -> C:
    """Read one of the known choices, with `-` or `_` between its words. InputError: another."""
    spelt = {name.replace("-", "_"): name for name in known}
    if str(choice).replace("-", "_") not in spelt:
        raise InputError.unknown(kind, choice, known, where=where)
    return spelt[choice.replace("-", "_")]


def count_hours(pe: float, seconds: float) -> float:
    """PE-hours that `pe` PEs use in `seconds`."""
    return pe * seconds / HOUR
