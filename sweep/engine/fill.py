"""Fill: one strategy's answers, tile after tile, into memory that is there, and their summary.

A block's arrays are reused from block to block, and given up to the compiled program in turn: fresh
pages from the system cost several times what the answers do.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids.grid import Grid, Index
from grids.inputs.reduction import Reduced, reduced
from grids.models.layers import Floats
from kernels.arrays import Cells
from kernels.compiled import compiled
from kernels.oracle import ahead_of
from kernels.run import Options
from kernels.summary import (
    REPEATED,
    Line,
    Summary,
    extend_summary,
    summarise_nothing,
    tabulate,
)
from kernels.tiles import TILE_CELLS, Starts, Tiles, repeat, tiles
from sweep.cube.statistics import EFFICIENCY, SUMMARISED
from sweep.cube.variables import VARIABLES
from sweep.engine.buffer_pool import Buffers
from sweep.engine.evaluate import answered, output

Answers = dict[str, Array]
Filled = tuple[Buffers, Summary]

# Arrays of at most one in so many of a block's cells are found ahead of its tiles.
FEW = 4


def fill(
    buffers: Buffers,
    place: int,
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats],
    serial_time: NDArray[np.float32],
) -> tuple[Buffers, Array]:
    """Evaluate one (model, dataset, system, strategy) over `axes` into a place of the buffers.

    serial_time [numeric dims but pe]: an epoch on one PE. Returns the buffers, in place of those
    given, and the statistics [statistic, numeric dims but pe] that were made in the same pass.
    """
    problem = grid.problem(index, axes)
    assert problem is not None, index  # all of a block shares one model and dataset, which fit
    with jax.enable_x64(True):
        return filled(
            buffers,
            np.asarray(place),
            reduced(problem, grid.options),
            np.asarray(serial_time)[None],
            shape=tuple(values.size for values in axes.values()),
            choices=problem.choices,
            options=grid.options,
        )


@compiled("shape", "choices", "options", donated=("buffers",))
def filled(
    buffers: Buffers,
    place: Cells,
    given: Reduced,
    serial_time: Cells,
    *,
    shape: tuple[int, ...],
    choices: bool,
    options: Options,
) -> tuple[Buffers, Array]:
    """Tiles along the PE counts for each tile of the other dimensions."""
    block = Block(
        given=_looking_ahead(given, math.prod(shape), options),
        enough=jnp.asarray(serial_time / EFFICIENCY, jnp.float32),
        place=place,
        names=tuple(dict.fromkeys((*buffers, *SUMMARISED))),
        cut=tiles(shape, TILE_CELLS // _choices(given, choices)),
        choices=choices,
        options=options,
    )
    columns = math.prod(block.cut.counts[1:])
    into, summary = repeat(columns, block.column, (buffers, block.nothing(shape)))
    return into, tabulate(summary)


@dataclass(frozen=True)
class Block:
    """A block's cells inside the compiled program, and how they are cut into tiles.

    enough: PE seconds in which an epoch is still efficient. names: the answers that are read.
    """

    given: Reduced
    enough: Array
    place: Cells
    names: tuple[str, ...]
    cut: Tiles
    choices: bool
    options: Options

    def column(self, number: Cells, so_far: Filled) -> Filled:
        """All tiles along the PE counts, for a tile of the other dimensions."""
        along = tuple(jnp.unravel_index(jnp.asarray(number), self.cut.counts[1:]))

        def tile(row: Cells, so_far: Filled) -> Filled:
            return self.tile((row, *along), so_far)

        at_first = so_far[0], self.nothing(self.cut.size)
        into, summary = repeat(self.cut.counts[0], tile, at_first)
        return into, _placed(so_far[1], summary, self.cut.starts((0, *along))[1:])

    def tile(self, number: Starts, so_far: Filled) -> Filled:
        """One tile: answered, written, and added to the summary."""
        cut, starts = self.cut, self.cut.starts(number)
        found = self.answers(cut.cut(self.given, starts))
        into = _written(so_far[0], found, (self.place, *starts), cut.size)
        found = _read_back(into, found, (self.place, *starts), cut.size)
        line = Line(
            p=cut.cut(self.p, starts),
            enough=cut.cut(self.enough, starts),
            **{name: found[name] for name in SUMMARISED},
        )
        if cut.overlap:
            is_repeated = line.row < number[0] * cut.size[0] - starts[0]
            line = replace(line, limit=jnp.where(is_repeated, jnp.uint8(REPEATED), line.limit))
        return into, extend_summary(so_far[1], line)

    def answers(self, given: Reduced) -> Answers:
        """In single precision; of size 1 along dimensions where they do not vary."""
        found = answered(given, choices=self.choices, options=self.options)
        return {
            name: jnp.asarray(output(found, name)).astype(VARIABLES[name].dtype)
            for name in self.names
        }

    def nothing(self, shape: tuple[int, ...]) -> Summary:
        """The summary of no PE counts, for cells of this shape."""
        return summarise_nothing(shape[1:], tuple(map(min, shape[1:], self.limits)))

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """The shape, across the PE counts, of what flags tell apart."""
        limit: tuple[int, ...] = jax.eval_shape(self.answers, self.given)["limit"].shape
        return limit[1:]

    @property
    def p(self) -> Array:
        """PE counts, of the cells' rank: without the dimension of choices."""
        return jnp.asarray(self.given.run.p).reshape(-1, *[1] * (len(self.cut.shape) - 1))


def _choices(given: Reduced, choices: bool) -> int:
    """Group sizes that each cell is answered for: a tile of many choices has fewer cells."""
    return int(jnp.shape(given.run.p2)[0]) if choices else 1


def _looking_ahead(given: Reduced, cells: int, options: Options) -> Reduced:
    """With what is the same for many cells, where it is little beside them."""
    found = ahead_of(given.work, given.bounds, given.run, given.network, options, given.known)
    largest = max(each.size for each in jax.tree.leaves(found))
    return replace(given, ahead=found) if largest * FEW <= cells else given


def _written(buffers: Buffers, answers: Answers, starts: Starts, size: tuple[int, ...]) -> Buffers:
    """The buffers with a tile's answers in their place."""
    return {
        name: jax.lax.dynamic_update_slice(
            buffer, jnp.broadcast_to(answers[name], (1, *size)), starts
        )
        for name, buffer in buffers.items()
    }


def _read_back(
    buffers: Buffers, answers: Answers, starts: Starts, size: tuple[int, ...]
) -> Answers:
    """The same answers, those that fill the tile from where they are now.

    Else the compiler would find them again for the summary.
    """
    whole = (name for name in buffers if answers[name].shape == size)
    return answers | {
        name: jax.lax.dynamic_slice(buffers[name], starts, (1, *size))[0] for name in whole
    }


def _placed(all_of_them: Summary, summary: Summary, starts: Starts) -> Summary:
    """Summaries with a tile's in its place; the counts have limits in front."""

    def put(whole: Array, part: Array) -> Array:
        first = (0,) * (whole.ndim - len(starts)) + tuple(starts)
        return jax.lax.dynamic_update_slice(whole, part.astype(whole.dtype), first)

    placed: Summary = jax.tree.map(put, all_of_them, summary)
    return placed
