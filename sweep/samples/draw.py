"""Draws: where in the space each slice lies, by low-discrepancy sequences (Sobol, scrambled).

A slice is one point of a problem (PEs, batch, bandwidths ...) under every strategy, so that what is
the fastest there is known. Each problem has a sequence of its own, which follows from the seed and
its place alone: rows are the same whoever draws them, and in which order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from grids.models.layers import Floats
from sweep.samples.space import Problem, Space
from sweep.samples.tables import Tables, read_parts

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draw:
    """Slices of one problem: positions along the tables' machines and axes [axis, slice], and
    values [slice] of what slices have their own of, by parameter.
    """

    tables: Tables
    positions: Integers
    values: Mapping[str, Floats]

    def __len__(self) -> int:
        return int(self.positions.shape[1])

    @property
    def rows(self) -> Integers:
        """Rows of the tables' points [slice]."""
        return np.asarray(np.ravel_multi_index(tuple(self.positions), self.tables.shape))

    @property
    def columns(self) -> dict[str, Floats]:
        """Values of every axis [slice], by name."""
        along = zip(self.tables.axes.items(), self.positions[1:], strict=True)
        return {name: values[at] for (name, values), at in along} | dict(self.values)

    def take(self, chosen: Integers) -> "Draw":
        """Some of the slices."""
        values = {name: value[chosen] for name, value in self.values.items()}
        return replace(self, positions=self.positions[:, chosen], values=values)


def draw_slices(
    space: Space, tables: Tables, problem: Problem, seed: int, first: int, count: int
) -> Draw:
    """Slices `first` to `first + count` of the problem's sequence."""
    rng = np.random.default_rng([seed, *problem, 1])
    sequence = qmc.Sobol(len(tables.shape) + len(space.drawn), rng=rng)
    if first:
        sequence.fast_forward(first)
    # scipy advises a power of two for a sequence's first points.
    parts = sequence.random(1 << (count - 1).bit_length())[:count].T
    return place_slices(space, tables, np.minimum(parts, BELOW_ONE))


def place_slices(space: Space, tables: Tables, parts: Floats) -> Draw:
    """The slices at such parts, in [0, 1), of each axis [axis, slice]: those of the tables first,
    then what slices have their own of.
    """
    shape, drawn = tables.shape, space.drawn
    sizes = np.array(shape)[:, None]
    positions = (parts[: len(shape)] * sizes).astype(np.int64)
    pairs = zip(drawn.items(), parts[len(shape) :], strict=True)
    values = {name: read_parts(law, part) for (name, law), part in pairs}
    shared = {name: column[positions[0]] for name, column in tables.machines.items()}
    return Draw(tables, positions, values | shared)


BELOW_ONE = np.nextafter(1.0, 0.0)
