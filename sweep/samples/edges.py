"""Edges: the places where surrogates fail; a share of the slices is moved there.

A limit lies between two neighbouring PE counts (or batches) of which one is forbidden for a
strategy. A crossover lies between two neighbours at which different strategies of two are faster.
Both are found by bisection with the same kernels, along one axis with all else as it was drawn. A
slice stays where it is if nothing changes along its axis.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from grids.ranges import Range
from grids.reading.errors import InputError
from kernels.blocks.labels import EPOCH, label_points
from kernels.compiled import fetch
from kernels.oracle.points import Points
from sweep.cube.variables import find_allowed
from sweep.samples.draw import Draw, Integers
from sweep.samples.space import Problem, SampleSpace

Flags = NDArray[np.bool_]
ORIGINS = ("space", "limit", "crossover")
# Batches out of a range between which edges are sought.
TRIED = 1024


@dataclass(frozen=True)
class Shares:
    """Shares of the slices near limits, and near crossovers of strategies."""

    limits: float = 0.0
    crossovers: float = 0.0

    def __post_init__(self) -> None:
        for name, share in (("near_limits", self.limits), ("near_crossovers", self.crossovers)):
            if not 0 <= share <= 1:
                raise InputError(f"expected a share from 0 to 1, got {share:g}", where=name)
        if self.limits + self.crossovers > 1:
            raise InputError(
                f"expected shares of 1 at most together, got {self.limits + self.crossovers:g}",
                where="near_limits, near_crossovers",
            )


@dataclass(frozen=True, eq=False)
class Walk:
    """Slices that move, each along one axis.

    batches: positions along the batch axis. along_pe: whether a slice moves along PEs, else along
    batches. rivals [2, slice]: two strategies; a limit is the first one's. crosses: whether a
    crossover is sought, else a limit.
    """

    draw: Draw
    batches: Floats
    along_pe: Flags
    rivals: Integers
    crosses: Flags

    @property
    def ends(self) -> Integers:
        """The last position along each slice's axis."""
        return np.where(self.along_pe, self.draw.tables.axes["pe"].size, self.batches.size) - 1

    def move(self, places: Integers) -> Draw:
        """The slices at such positions along their axes."""
        positions = self.draw.positions.copy()
        row = 1 + list(self.draw.tables.axes).index("pe")
        positions[row] = np.where(self.along_pe, places, positions[row])
        batch = self.batches[np.where(self.along_pe, 0, places)]
        values = dict(self.draw.values)
        values["batch"] = np.where(self.along_pe, values["batch"], batch)
        return replace(self.draw, positions=positions, values=values)

    def compare(self, places: Integers) -> tuple[Flags, Flags]:
        """Whether each slice is beyond its edge there, and whether that is known."""
        draw = self.move(places)
        answers = [_answer(points, draw) for points in draw.tables.points]
        slices = np.arange(len(draw))
        feasible = np.stack([find_allowed(answer["limit"]) for answer in answers])
        times = np.stack([answer[EPOCH] for answer in answers])
        first, second = (times[rival, slices] for rival in self.rivals)
        known = ~self.crosses | (np.isfinite(first) & np.isfinite(second))
        return np.where(self.crosses, first > second, ~feasible[self.rivals[0], slices]), known


def move_to_edges(
    space: SampleSpace, draw: Draw, problem: Problem, seed: tuple[int, ...], shares: Shares
) -> tuple[Draw, NDArray[np.str_]]:
    """Move shares of the slices to edges; return all, and the origin of each (`ORIGINS`)."""
    rng = np.random.default_rng([*seed, *problem, 2])
    part, origin = rng.random(len(draw)), np.zeros(len(draw), np.int64)
    origin[part < shares.limits + shares.crossovers] = 2
    origin[part < shares.limits] = 1
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
    places, there = _halve(walk, rng.random(len(draw)) < 0.5)
    origin[~there] = 0
    moved, at = walk.move(places), origin > 0
    values = {name: np.where(at, moved.values[name], value) for name, value in draw.values.items()}
    positions = np.where(at, moved.positions, draw.positions)
    return replace(draw, positions=positions, values=values), np.array(ORIGINS)[origin]


def _halve(walk: Walk, inner: Flags) -> tuple[Integers, Flags]:
    """A position beside each slice's edge, the one before it where `inner`; whether there is an
    edge at all.
    """
    low, high = np.zeros_like(walk.ends), walk.ends
    (before, _), (after, _) = walk.compare(low), walk.compare(high)
    for _ in range(int(walk.ends.max() + 1).bit_length()):
        middle = (low + high) // 2
        beyond = walk.compare(middle)[0] != before
        # Neighbours stay neighbours: their middle is the lower one.
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    known = walk.compare(low)[1] & walk.compare(high)[1]
    return np.where(inner, low, high), (before != after) & known


def _answer(points: Points, draw: Draw) -> dict[str, NDArray[Any]]:
    answers = label_points(points, draw.rows, dict(draw.values))[0]
    return {name: np.asarray(answer) for name, answer in fetch(answers).items()}


def _list_batches(space: SampleSpace) -> Floats:
    """The listed batches, or some out of their range."""
    drawn = space.drawn["batch"]
    if isinstance(drawn, Range):
        return np.unique(drawn.read_quantiles(np.linspace(0, 1, TRIED)))
    return drawn
