"""Provision: what to buy, the inverse questions.

The fewest PEs that meet a deadline; the bandwidth, latency or memory that a goal needs; the largest
batch that fits.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from grids.grid import Index
from grids.models.layers import Floats
from grids.reading.errors import InputError, shorten
from grids.reading.units import parse_quantity
from kernels.flags import FORBIDS
from kernels.oracle import Answer, answer_case
from kernels.outputs import compute_outputs
from sweep.answers.degrees import list_degrees
from sweep.answers.numbers import number
from sweep.answers.objectives import Aim, Price, count_hours
from sweep.answers.reasons import write_commonest
from sweep.answers.row_cases import build_row_case
from sweep.answers.system_settings import add_software
from sweep.cells.selection import Selection, write_place
from sweep.cells.source import Source
from sweep.cells.space import Space, list_given, open_space, write_axis

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


def provision(
    cube: Source,
    deadline: float | str,
    selection: Selection | None = None,
    *,
    epochs: float | None = None,
    price: Price = None,
    max_global_batch: int | None = None,
    holds: float | None = None,
) -> "pd.DataFrame":
    """A row for each strategy in each place: the fewest PEs that meet a deadline, fewest first.

    deadline: seconds, or a text with a unit, such as "6 h". Every whole number of PEs is tried up
    to the least of the slice's counts that meets it, and the slice's batches, groups, segments and
    accumulated passes; each value of another axis, such as a bandwidth, has rows of its own. holds:
    the least probability of meeting the deadline, between 0 and 1; None: the expected time meets
    it. epochs: how many; None: to the target, of the law that the design space knows. Columns:
    labels and axes of that cell, replicas, group_size, segment_count, global_batch, epochs,
    train_time [s], pe_hours, with a price cost, `holds`: the probability that the deadline holds
    (machine oracle), and `reason` where none meets it. InputError: a deadline not above 0, epochs
    unknown, a probability not between 0 and 1.
    """
    import pandas as pd

    rows = list_provisions(
        cube,
        deadline,
        selection,
        epochs=epochs,
        price=price,
        max_global_batch=max_global_batch,
        holds=holds,
    )
    return pd.DataFrame(rows, dtype=object)


def list_provisions(
    cube: Source,
    deadline: float | str,
    selection: Selection | None = None,
    *,
    epochs: float | None = None,
    price: Price = None,
    max_global_batch: int | None = None,
    holds: float | None = None,
) -> list[Row]:
    """The rows of `provision` as plain data."""
    seconds = parse_quantity(deadline, "s", "deadline", example="6 h")
    for name, value in {"deadline": seconds, "epochs": epochs}.items():
        if value is not None and not value > 0:
            raise InputError(f"expected more than 0, got {shorten(value)}", where=name)
    space = open_space(cube, selection, max_global_batch)
    if epochs is None and not space.grid.convergences:
        raise InputError(
            "the number of epochs is not given",
            where="epochs",
            advice="such as 90; or choose a convergence, such as auto: epochs to a target",
        )
    goal = _Goal(seconds, holds)
    if holds is not None:
        if not 0 < holds < 1:
            raise InputError(
                f"expected a probability above 0 and below 1, got {shorten(holds)}",
                where="holds",
                advice="such as 0.9",
            )
        if space.grid.spec.oracle == "paper":
            raise InputError(
                "the oracle 'paper' has no intervals",
                where="holds",
                advice="leave it out, or use the oracle 'machine'",
            )
    aim = Aim("pe_hours", price)
    rows = [
        _find_fewest(part, index, goal, epochs, aim)
        for part in space.split_given()
        for index in part.list_indices()
    ]
    rows.sort(key=lambda row: (row["pe"] is None, row["pe"] or 0, row["train_time"] or 0))
    return add_software(space.systems, rows)


@dataclass(frozen=True)
class _Goal:
    """A deadline [s], and the least probability of meeting it; None: by the expected time."""

    deadline: float
    holds: float | None


def _find_fewest(space: Space, index: Index, goal: _Goal, epochs: float | None, aim: Aim) -> Row:
    """The row of a strategy."""
    rough = _Times(space, index, space.axes["pe"], epochs, goal.holds)
    met = rough.list_met(goal.deadline)
    if not met.size:
        return _describe_miss(space, index, rough, aim)
    # Fewer than the slice's least may do: every count up to it.
    every = _Times(space, index, np.arange(1.0, met.min() + 1), epochs, goal.holds)
    at = every.find_first(goal.deadline)
    return space.name(index) | _describe_cell(space, index, every, at, goal.deadline, aim)


class _Times:
    """Times of a whole training [s] over PE counts and the other axes, NaN where forbidden.

    times: the expected ones; bounds: those that are kept with the probability `holds`, if given.
    """

    def __init__(
        self,
        space: Space,
        index: Index,
        pe: Floats,
        epochs: float | None,
        holds: float | None,
    ) -> None:
        self.axes = {**space.axes, "pe": pe}
        grid = space.grid if holds is None else space.grid.ask_intervals()
        case = grid.case(index, self.axes)
        assert case is not None  # its samples fit
        names = ("comp_time", "comm_time", "limit", *(("epochs",) if epochs is None else ()))
        shape = tuple(values.size for values in self.axes.values())
        outputs = {
            name: np.broadcast_to(np.asarray(each), shape)
            for name, each in compute_outputs(case, names=names).items()
        }
        self.limit = outputs["limit"].astype(np.int64)
        self.epochs = np.broadcast_to(outputs.get("epochs", np.float64(epochs or 0)), shape)
        self.epoch_time = outputs["comp_time"].astype(float) + outputs["comm_time"]
        forbidden = (self.limit & FORBIDS) > 0
        self.times = np.where(forbidden, np.nan, self.epoch_time * self.epochs)
        self.bounds = self.times
        if holds is not None:
            # As `holds` of a row: the spread of an interval, here for all cells at once.
            sigma = _find_spread(answer_case(case), by_law=epochs is None)
            self.bounds = self.times * np.exp(ndtri(holds) * np.broadcast_to(sigma, shape))

    def list_met(self, deadline: float) -> Floats:
        """PE counts with which some cell meets the deadline."""
        meets = (self.bounds <= deadline).reshape(self.times.shape[0], -1).any(axis=1)
        return self.axes["pe"][meets]

    def find_first(self, deadline: float) -> tuple[int, ...]:
        """The quickest cell of the fewest PEs that meet it."""
        fewest = int(np.argmax((self.bounds <= deadline).reshape(self.times.shape[0], -1).any(1)))
        quickest = np.unravel_index(int(np.nanargmin(self.bounds[fewest])), self.times.shape[1:])
        return (fewest, *map(int, quickest))


def _describe_cell(
    space: Space, index: Index, times: _Times, at: tuple[int, ...], deadline: float, aim: Aim
) -> Row:
    """One cell: what it is, how long it takes, what it costs, how sure that is."""
    cell = {
        name: write_axis(name, values[n])
        for (name, values), n in zip(times.axes.items(), at, strict=True)
    }
    labels = space.name(index)
    degrees = list_degrees(space.grid, labels | cell)
    seconds, epochs = float(times.times[at]), float(times.epochs[at])
    hours = count_hours(cell["pe"], seconds)
    price = aim.find_price(labels["system"])
    return {
        **cell,
        **{name: each for name, each in degrees.items() if name not in cell},
        "epochs": epochs,
        "train_time": seconds,
        "pe_hours": hours,
        **({} if price is None else {"cost": hours * price}),
        "holds": _find_chance(space, labels | cell | degrees, seconds, deadline),
        "reason": None,
    }


def _find_chance(space: Space, row: Row, seconds: float, deadline: float) -> float | None:
    """The probability that a cell keeps the deadline; None: Table III knows of no spread."""
    if space.grid.spec.oracle == "paper":
        return None
    answer = answer_case(build_row_case(space.grid.ask_intervals(), row))
    assert answer.spread is not None  # intervals were asked for
    sigma = number(answer.spread.total)
    if answer.epochs_spread is not None:
        sigma = float(np.hypot(sigma, number(answer.epochs_spread)))
    return float(ndtr(np.log(deadline / seconds) / sigma))


def _find_spread(answer: Answer, by_law: bool) -> Floats:
    """The spread of the logarithm of times of training, with that of epochs to a target."""
    assert answer.spread is not None  # intervals were asked for
    spread: Floats = np.asarray(answer.spread.total, float)
    if by_law and answer.epochs_spread is not None:
        spread = np.hypot(spread, np.asarray(answer.epochs_spread, float))
    return spread


def _describe_miss(space: Space, index: Index, times: _Times, aim: Aim) -> Row:
    """Why none of the slice's PE counts meets the deadline."""
    nothing = dict.fromkeys(
        (
            *times.axes,
            *("replicas", "group_size", "segment_count", "global_batch"),
            *("epochs", "train_time", "pe_hours"),
            *(() if aim.price is None else ("cost",)),
            "holds",
        )
    )
    given = {name: write_axis(name, space.axes[name][0]) for name in list_given(space.axes)}
    return space.name(index) | nothing | given | {"reason": _explain_miss(times)}


def _explain_miss(times: _Times) -> str:
    if np.isnan(times.times).all():
        return f"infeasible throughout ({write_commonest(times.limit)})"
    at = np.unravel_index(int(np.nanargmin(times.bounds)), times.times.shape)
    return f"at best {times.times[at]:.4g} s, on {write_place('pe', times.axes['pe'][at[0]])}"
