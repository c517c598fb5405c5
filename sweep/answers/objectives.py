"""Objectives: what a question ranks by, and what a PE-hour costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args

from grids.grid import Grid
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.statistics import BEST, Objective

Goal = Literal["epoch_time", "train_time", "pe_hours", "cost"]
# Of a PE-hour: one number, or one for each system.
Price = float | Mapping[str, float] | None

HOUR = 3600.0  # [s]


@dataclass(frozen=True)
class Aim:
    """What is to be small: a goal, and the price that a cost is counted with."""

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
        prices = self.price.values() if isinstance(self.price, Mapping) else [self.price]
        for each in prices:
            if each is not None and not (isinstance(each, Real) and each > 0):
                raise InputError(f"expected a price above 0, got {shorten(each)}", where="price")

    @property
    def summarised(self) -> Objective | None:
        """The objective whose best cell a cube's summary keeps; None: it keeps no such."""
        return next((each for each in BEST if each == self.goal), None)

    def find_price(self, system: str) -> float | None:
        """The price of a PE-hour of a system. InputError: others have one."""
        if not isinstance(self.price, Mapping):
            return self.price
        if system not in self.price:
            raise InputError(
                f"no price of {system!r}",
                where="price",
                advice=f"add {system}=2.5; known: {', '.join(self.price)}",
            )
        return self.price[system]

    def trains(self, grid: Grid, model: str, dataset: str) -> bool:
        """Whether times are those to a target: where the goal says so, or a law is known of what
        is paid for.
        """
        if self.goal in ("epoch_time", "train_time"):
            return self.goal == "train_time"
        return (model, dataset) in grid.convergences


def expect_goal(goal: object) -> None:
    """InputError: no objective."""
    if goal not in get_args(Goal):
        raise InputError(
            f"unknown objective {shorten(goal)}",
            where="objective",
            advice=suggest_name(str(goal), get_args(Goal)),
        )


def count_hours(pe: float, seconds: float) -> float:
    """PE-hours of so many PEs for so long."""
    return pe * seconds / HOUR
