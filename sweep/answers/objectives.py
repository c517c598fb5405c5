"""Objectives: what a question ranks by, and what a PE-hour costs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grids.grid import Grid
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.names.statistics import BEST, Objective

Goal = Literal["epoch_time", "train_time", "pe_hours", "cost"]
# A PE-hour costs one number, or one for each system.
Price = float | Mapping[str, float] | None

HOUR = 3600.0  # [s]


@dataclass(frozen=True)
class Aim:
    """The quantity to minimise, and the price that a cost is counted with."""

    goal: Goal = "epoch_time"
    price: Price = None

    def __post_init__(self) -> None:
        expect_goal(self.goal)
        if self.goal == "cost" and self.price is None:
            raise InputError(
                "the cost needs the price of a PE-hour",
                where="objective",
                advice="give one, such as 2.5, or ask for PE-hours",
            )
        check_price(self.price)

    @property
    def summarised(self) -> Objective | None:
        """The objective whose best cell a cube's summary keeps; None: it keeps no such."""
        return next((goal for goal in BEST if goal == self.goal), None)

    def find_price(self, system: str) -> float | None:
        """The price of a PE-hour of a system, None without prices. InputError: others have one."""
        return look_up_price(self.price, system)

    def trains(self, grid: Grid, model: str, dataset: str) -> bool:
        """True if times are those to a target: where the goal says so, or a law is known of what
        is paid for.
        """
        if self.goal in ("epoch_time", "train_time"):
            return self.goal == "train_time"
        return (model, dataset) in grid.convergences


def check_price(price: object) -> None:
    """InputError: a price that is no number above 0."""
    for value in price.values() if isinstance(price, Mapping) else [price]:
        if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
            raise InputError(f"expected a price above 0, got {shorten(value)}", where="price")


def look_up_price(price: Price, system: str) -> float | None:
    """The price of a PE-hour of a system, None without prices. InputError: others have one."""
    if not isinstance(price, Mapping):
        return price
    if system not in price:
        raise InputError(
            f"no price of {system!r}",
            where="price",
            advice=f"add {system}=2.5; known: {', '.join(price)}",
        )
    return price[system]


def look_up_prices(systems: NDArray[Any], price: Price) -> NDArray[np.float64]:
    """The price of a PE-hour of each system; InputError: one has none."""
    prices = [look_up_price(price, str(name)) for name in systems.reshape(-1)]
    return np.array(prices, float).reshape(systems.shape)


def expect_objective(objective: str) -> None:
    """InputError: an objective that summaries do not have."""
    if objective not in BEST:
        raise InputError.unknown("objective", objective, BEST, where="objective")


def expect_goal(goal: object) -> None:
    """InputError: no objective."""
    if goal not in get_args(Goal):
        raise InputError(
            f"unknown objective {shorten(goal)}",
            where="objective",
            advice=suggest_name(str(goal), get_args(Goal)),
        )


def count_hours(pe: float, seconds: float) -> float:
    """PE-hours of a number of PEs for some seconds."""
    return pe * seconds / HOUR
