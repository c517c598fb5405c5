"""Move a share of the slices to edges, where surrogates fail: limits and crossovers.

A limit lies between neighbouring PE counts (or batches), one of which a strategy cannot run. At a
crossover one of two strategies overtakes the other. Bisection along one axis finds both, with all
else as drawn. A slice stays where it is if nothing changes along its axis.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.axes import Range
from paradl.grids.reading.errors import InputError
from paradl.kernels.blocks.labels import label_points
from paradl.kernels.compiled import fetch
from paradl.kernels.configuration.case import Points
from paradl.kernels.names.arrays import Flags, Floats, Integers
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.cube.variables import find_allowed
from paradl.sweep.samples.space import Problem, SampleSpace

if TYPE_CHECKING:
    from paradl.sweep.samples.draw import Draw

ORIGINS = ("space", "limit", "crossover")
# Number of batches from a range that bisection chooses between.
TRIED = 1024


@dataclass(frozen=True)
class Shares:
    """Shares of the slices to move near limits and near crossovers of strategies."""

    limits: float = 0.0
    crossovers: float = 0.0

    def __post_init__(self) -> None:
        for name, share in (("near_limits", self.limits), ("near_crossovers", self.crossovers)):
            if not 0 <= share <= 1:
                raise InputError(f"expected a share from 0 to 1, got {share:g}", where=name)
        if self.limits + self.crossovers > 1:
            raise InputError(
                f"expected shares that add up to at most 1, got {self.limits + self.crossovers:g}",
                where="near_limits, near_crossovers",
            )


@dataclass(frozen=True, eq=False)
class Walk:
    """Slices on the move, each along one axis.

    batches: values along the batch axis. along_pe: whether a slice moves along PEs, else along
    batches. rivals [2, slice]: two strategies; limits are those of the first. crosses: whether to
    look for a crossover, else for a limit.
    """

    draw: "Draw"
    batches: Floats
    along_pe: Flags
    rivals: Integers
    crosses: Flags

    @property
    def ends(self) -> Integers:
        """The last position along each slice's axis."""
        return np.where(self.along_pe, self.draw.tables.axes["pe"].size, self.batches.size) - 1

    def move(self, places: Integers) -> "Draw":
        """Return the slices at positions [slice] along their axes."""
        positions = self.draw.positions.copy()
        row = 1 + list(self.draw.tables.axes).index("pe")
        positions[row] = np.where(self.along_pe, places, positions[row])
        batch = self.batches[np.where(self.along_pe, 0, places)]
        values = dict(self.draw.values)
        values["batch"] = np.where(self.along_pe, values["batch"], batch)
        return replace(self.draw, positions=positions, values=values)

    def compare(self, places: Integers) -> tuple[Flags, Flags]:
        """Return whether each slice is beyond its edge [slice], and whether that is defined."""
        draw = self.move(places)
        answers = [_answer(points, draw) for points in draw.tables.points]
        slices = np.arange(len(draw))
        feasible = np.stack([find_allowed(answer["limit"]) for answer in answers])
        times = np.stack([answer[EPOCH] for answer in answers])
        first, second = (times[rival, slices] for rival in self.rivals)
        known = ~self.crosses | (np.isfinite(first) & np.isfinite(second))
        return np.where(self.crosses, first > second, ~feasible[self.rivals[0], slices]), known


def move_to_edges(
    space: SampleSpace, draw: "Draw", problem: Problem, seed: tuple[int, ...], shares: Shares
) -> tuple["Draw", NDArray[np.str_]]:
    """Move shares of the slices to edges; return all slices and their origins (`ORIGINS`)."""
    rng = np.random.default_rng([*seed, *problem, 2])
    lots, origin = rng.random(len(draw)), np.zeros(len(draw), np.int64)
    origin[lots < shares.limits + shares.crossovers] = 2
    origin[lots < shares.limits] = 1
    if not origin.any():
        return draw, np.array(ORIGINS)[origin]
    count = len(space.grid.strategies)
    first = rng.integers(count, size=len(draw))
    second = (first + rng.integers(1, max(2, count), size=len(draw))) % count
    walk = Walk(
        draw,
        _list_batches(space),
        along_pe=rng.random(len(draw)) < 0.5,
        rivals=np.stack([first, second]),
        crosses=origin == 2,
    )
    places, has_edge = _bisect(walk, rng.random(len(draw)) < 0.5)
    origin[~has_edge] = 0
    target, moves = walk.move(places), origin > 0
    values = {
        name: np.where(moves, target.values[name], value) for name, value in draw.values.items()
    }
    positions = np.where(moves, target.positions, draw.positions)
    return replace(draw, positions=positions, values=values), np.array(ORIGINS)[origin]


def _bisect(walk: Walk, inner: Flags) -> tuple[Integers, Flags]:
    """Return the position before (`inner`) or after each slice's edge; whether it has an edge."""
    low, high = np.zeros_like(walk.ends), walk.ends
    (before, _), (after, _) = walk.compare(low), walk.compare(high)
    for _ in range(int(walk.ends.max() + 1).bit_length()):
        middle = (low + high) // 2
        beyond = walk.compare(middle)[0] != before
        # Once low and high are neighbours they stay so: their middle is the lower one.
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    known = walk.compare(low)[1] & walk.compare(high)[1]
    return np.where(inner, low, high), (before != after) & known


def _answer(points: Points, draw: "Draw") -> dict[str, NDArray[Any]]:
    answers = label_points(points, draw.rows, dict(draw.values))[0]
    return {name: np.asarray(answer) for name, answer in fetch(answers).items()}


def _list_batches(space: SampleSpace) -> Floats:
    """Return the listed batches, or TRIED of their range."""
    law = space.drawn["batch"]
    return (
        np.unique(law.read_quantiles(np.linspace(0, 1, TRIED))) if isinstance(law, Range) else law
    )
