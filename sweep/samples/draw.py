"""Draws: where in the space each slice lies, by low-discrepancy sequences (Sobol, scrambled).

A slice is one point of a problem (PEs, batch, bandwidths ...) under every strategy, so that the
fastest one there is known. Each problem has its own sequence, which follows from the seed and the
problem's position alone: rows do not depend on the number of workers, or on their order.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from grids.models.layers import Floats
from sweep.samples.space import Problem, SampleSpace
from sweep.samples.tables import Tables, read_parts

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draw:
    """Slices of one problem: positions along the tables' machines and axes [axis, slice], and
    values [slice] of the parameters that are drawn, by name.
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
        """Values of all axes [slice], by name."""
        along = zip(self.tables.axes.items(), self.positions[1:], strict=True)
        return {name: values[at] for (name, values), at in along} | dict(self.values)


def draw_slices(
    space: SampleSpace, tables: Tables, problem: Problem, seed: int, first: int, count: int
) -> Draw:
    """Slices `first` to `first + count` of the problem's sequence."""
    rng = np.random.default_rng([seed, *problem, 1])
    shape, drawn = tables.shape, space.drawn
    # Axes of the sequence: those of the tables first, then the drawn parameters.
    sequence = qmc.Sobol(len(shape) + len(drawn), rng=rng)
    if first:
        sequence.fast_forward(first)
    # scipy advises a power of two for a sequence's first points.
    points = sequence.random(1 << (count - 1).bit_length())[:count].T
    parts = np.minimum(points, np.nextafter(1.0, 0.0))
    positions = (parts[: len(shape)] * np.array(shape)[:, None]).astype(np.int64)
    pairs = zip(drawn.items(), parts[len(shape) :], strict=True)
    values = {name: read_parts(law, part) for (name, law), part in pairs}
    shared = {name: column[positions[0]] for name, column in tables.machines.items()}
    return Draw(tables, positions, values | shared)
