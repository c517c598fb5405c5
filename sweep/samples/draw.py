"""Draw slices from the space by scrambled Sobol sequences.

A slice is one point of a problem (PEs, batch, bandwidths ...) under every strategy, so the fastest
strategy is known there. Each problem has its own sequence, which depends only on the seed and the
problem's position: rows are the same for any number of workers.

Kernels take points of tables, which have all cells of a case along one dimension: discrete values
(PEs, groups, segments) are laid out once, continuous parameters vary by point
(`kernels.derivatives.points`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import jax
import numpy as np

from paradl.grids.axes import Range
from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.case import divide_rows
from paradl.grids.inputs.divisions import take_at_cells
from paradl.kernels.configuration.case import Points
from paradl.kernels.configuration.places import PLACES
from paradl.kernels.names.arrays import Floats, Integers
from paradl.sweep.samples.space import Problem, SampleSpace

if TYPE_CHECKING:
    from scipy.stats import qmc

Tree = TypeVar("Tree")


def build_table(grid: Grid, index: Index, axes: Mapping[str, Floats], *, layered: bool) -> Points:
    """Return the cells of the outer product of `axes`, in C order along one dimension.

    layered: points vary parameters that layers depend on, so the layers come with the cells, to be
    reduced again for each point. Blocks are summed with each point anyway.
    """
    shape, case = tuple(values.size for values in axes.values()), grid.case(index, axes)
    assert case is not None  # the data set of a problem fits its model
    case = _flatten(case, shape, len(case.choices))
    if not layered or grid.find_blocks(index):
        return Points(case)
    divided = grid.build(divide_rows, index, axes, None)
    assert divided is not None
    choices, groups = len(case.choices), divided.groups
    # These lie along the distinct divisions; a case has the degrees of all cells.
    by_division = groups.place()[0], groups.segments
    placement, segments = jax.tree.map(
        lambda leaf: take_at_cells(leaf, divided.position, choices), by_division
    )
    division = replace(groups.divide(placement), degrees={}, segments=segments)
    return Points(case, replace(_flatten(division, shape, choices), degrees=case.run.degrees))


def join_points(tables: Sequence[Points], cells: int) -> Points:
    """Concatenate tables of `cells` each, with divisions, one table after another."""

    def join(*leaves: Floats) -> Floats:
        first = leaves[0]
        if first.ndim == 0 or all(np.array_equal(first, leaf) for leaf in leaves[1:]):
            return first if first.ndim == 0 or first.shape[-1] == 1 else np.tile(first, len(leaves))
        whole = (np.broadcast_to(leaf, (*leaf.shape[:-1], cells)) for leaf in leaves)
        return np.concatenate(tuple(whole), axis=-1)

    if tables[0].division is None:
        blocks: Points = jax.tree.map(join, *tables)
        return blocks
    # The work is reduced again for each point, so any cell's will do.
    work = jax.tree.map(lambda leaf: np.asarray(leaf)[..., :1], tables[0].case.work)
    same = [replace(table, case=replace(table.case, work=work)) for table in tables]
    joined: Points = jax.tree.map(join, *same)
    return replace(joined, case=replace(joined.case, work=work))


def _flatten(tree: Tree, shape: tuple[int, ...], choices: int) -> Tree:
    """Flatten arrays [..., cells of `shape`] to one dimension of cells, of size 1 if all agree.

    choices: number of leading dimensions for choices.
    """

    def lay_out(leaf: Floats) -> Floats:
        array, rank = np.asarray(leaf), len(shape)
        if array.ndim == 0:
            return array
        if array.ndim < rank:  # one value per level, for all cells
            return array.reshape(*array.shape, *[1] * (choices + 1))
        leading, cells = array.shape[: array.ndim - rank], array.shape[array.ndim - rank :]
        if cells != shape and math.prod(cells) > 1:
            array = np.broadcast_to(array, leading + shape)
        return array.reshape(*leading, math.prod(array.shape[len(leading) :]))

    flat: Tree = jax.tree.map(lay_out, tree)
    return flat


# Machines shared by a problem's rows: cutting ResNet-50 into pipeline stages takes 30 ms on each.
MACHINES = 32


@dataclass(frozen=True, eq=False)
class Tables:
    """Points of one problem, which slices pick from.

    points: by strategy, one for each combination of the values of `axes` (C order). machines:
    values [machine] by parameter; then all points of the first machine, of the second, and so on.
    """

    points: tuple[Points, ...]
    axes: dict[str, Floats]
    machines: dict[str, Floats]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of shared machines (1 without), and sizes of the axes."""
        machines = next(iter(self.machines.values()), np.empty(1)).size
        return machines, *(values.size for values in self.axes.values())


def make_tables(space: SampleSpace, problem: Problem, seed: int) -> Tables:
    """Make the tables of one problem; the seed determines its shared machines."""
    axes = {name: values for name, values in space.tabled.items() if name not in space.drawn}
    rng = np.random.default_rng([seed, *problem])
    machines = _draw_machines(space, rng) if space.shares_machines else {}
    strategies = range(len(space.grid.strategies))
    points = tuple(_tabulate(space, problem, strategy, machines) for strategy in strategies)
    return Tables(points, axes, machines)


def _tabulate(
    space: SampleSpace, problem: Problem, strategy: int, machines: dict[str, Floats]
) -> Points:
    """Tabulate the points of a strategy, on each of the shared machines if there are any."""
    index = (*problem, strategy)
    if not machines:
        return build_table(space.grid, index, space.tabled, layered=space.layered)
    # Only pipeline stages depend on the machine's speed: otherwise one table serves all machines.
    distinct = MACHINES if space.grid.strategies[strategy].cut_by_axis else 1
    axes = [
        space.tabled | {name: values[[number]] for name, values in machines.items()}
        for number in range(distinct)
    ]
    tables = [build_table(space.grid, index, one, layered=True) for one in axes]
    cells = math.prod(values.size for values in space.tabled.values())
    return join_points(tables * (MACHINES // distinct), cells)


def _draw_machines(space: SampleSpace, rng: np.random.Generator) -> dict[str, Floats]:
    """Draw values [machine] of the parameters that layers depend on, by name."""
    laws = {name: law for name, law in space.drawn.items() if PLACES[name].layered}
    if not laws:
        return {}
    fractions = _start_sequence(len(laws), rng).random(MACHINES).T
    return {
        name: read_quantiles(law, column)
        for (name, law), column in zip(laws.items(), fractions, strict=True)
    }


def _start_sequence(dimensions: int, rng: np.random.Generator) -> "qmc.Sobol":
    from scipy.stats import qmc  # late: takes 0.5 s, in which programs may compile already

    return qmc.Sobol(dimensions, rng=rng)


def read_quantiles(law: Range | Floats, fractions: Floats) -> Floats:
    """Return the values of a range or a list at fractions in [0, 1)."""
    if isinstance(law, Range):
        return law.read_quantiles(fractions)
    return np.asarray(law[(fractions * law.size).astype(int)])


@dataclass(frozen=True, eq=False)
class Draw:
    """Slices: positions along tables' machines and axes [axis, slice], drawn parameters [slice]."""

    tables: Tables
    positions: Integers
    values: Mapping[str, Floats]

    def __len__(self) -> int:
        return int(self.positions.shape[1])

    @property
    def rows(self) -> Integers:
        """Row of each slice in the tables' points [slice]."""
        return np.asarray(np.ravel_multi_index(tuple(self.positions), self.tables.shape))

    @property
    def pes(self) -> Floats:
        """PE count of each slice [slice]."""
        axes = self.tables.axes
        return np.asarray(axes["pe"][self.positions[1 + list(axes).index("pe")]])


def draw_slices(
    space: SampleSpace, tables: Tables, problem: Problem, seed: int, first: int, count: int
) -> Draw:
    """Draw slices `first` to `first + count` of the problem's sequence."""
    rng = np.random.default_rng([seed, *problem, 1])
    shape, drawn = tables.shape, space.drawn
    # Dimensions of the sequence: the tables' machines and axes first, then the drawn parameters.
    sequence = _start_sequence(len(shape) + len(drawn), rng)
    if first:
        sequence.fast_forward(first)
    # scipy warns unless the first points of a sequence are a power of two.
    points = sequence.random(1 << (count - 1).bit_length())[:count].T
    fractions = np.minimum(points, np.nextafter(1.0, 0.0))
    positions = (fractions[: len(shape)] * np.array(shape)[:, None]).astype(np.int64)
    pairs = zip(drawn.items(), fractions[len(shape) :], strict=True)
    values = {name: read_quantiles(law, column) for (name, law), column in pairs}
    shared = {name: column[positions[0]] for name, column in tables.machines.items()}
    return Draw(tables, positions, values | shared)
