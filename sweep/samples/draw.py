"""Draws: where in the space each slice lies, by low-discrepancy sequences (Sobol, scrambled).

A slice is one point of a problem (PEs, batch, bandwidths ...) under every strategy, so that the
fastest one there is known. Each problem has its own sequence, which follows from the seed and the
problem's position alone: rows do not depend on the number of workers, or on their order.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from grids.inputs.tables import build_table, join_tables
from grids.models.layers import Floats
from grids.ranges import Range
from kernels.configuration.places import PLACES
from kernels.oracle.points import Points
from sweep.samples.space import Problem, SampleSpace

Integers = NDArray[np.int64]

# Machines that the rows of a problem share (`Space.shares_machines`): to find the stages of
# ResNet-50's pipelines on one of them takes 30 ms.
MACHINES = 32


@dataclass(frozen=True, eq=False)
class Tables:
    """points: by strategy, one for each combination of the values of `axes` (C order). machines:
    values [machine] by parameter; points are then those on the first machine, on the second ...
    """

    points: tuple[Points, ...]
    axes: dict[str, Floats]
    machines: dict[str, Floats]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of machines, 1 where each row has its own, and the sizes of the axes."""
        machines = next(iter(self.machines.values()), np.empty(1)).size
        return machines, *(values.size for values in self.axes.values())


def make_tables(space: SampleSpace, problem: Problem, seed: int) -> Tables:
    """Make the tables of one problem; its machines follow from the seed."""
    axes = {name: values for name, values in space.tabled.items() if name not in space.drawn}
    rng = np.random.default_rng([seed, *problem])
    machines = _draw_machines(space, rng) if space.shares_machines else {}
    strategies = range(len(space.grid.strategies))
    points = tuple(_tabulate(space, problem, strategy, machines) for strategy in strategies)
    return Tables(points, axes, machines)


def _tabulate(
    space: SampleSpace, problem: Problem, strategy: int, machines: dict[str, Floats]
) -> Points:
    """The points of a strategy on each of the machines."""
    count = MACHINES if machines else 1
    pipeline = space.grid.strategies[strategy].cut_by_axis
    tables = []
    # Only a pipeline's stages follow from the machine's speed: else one machine's table serves all.
    for number in range(count if pipeline else 1):
        machine = {name: values[number : number + 1] for name, values in machines.items()}
        build = partial(build_table, layered=space.layered)
        table = space.grid.build(build, (*problem, strategy), space.tabled | machine, None)
        assert table is not None  # the samples of a problem fit its model
        tables.append(table)
    cells = math.prod(values.size for values in space.tabled.values())
    return join_tables(tables * (count // len(tables)), cells) if count > 1 else tables[0]


def _draw_machines(space: SampleSpace, rng: np.random.Generator) -> dict[str, Floats]:
    """Values of the drawn parameters that layers depend on [machine], by name."""
    drawn = {name: drawn for name, drawn in space.drawn.items() if PLACES[name].layered}
    if not drawn:
        return {}
    parts = qmc.Sobol(len(drawn), rng=rng).random(MACHINES).T
    return {
        name: read_parts(law, part) for (name, law), part in zip(drawn.items(), parts, strict=True)
    }


def read_parts(drawn: Range | Floats, parts: Floats) -> Floats:
    """Values at such parts, in [0, 1), of a range or a list."""
    if isinstance(drawn, Range):
        return drawn.read_quantiles(parts)
    return np.asarray(drawn[(parts * drawn.size).astype(int)])


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
