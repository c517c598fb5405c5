"""Fill: a case's outputs, tile after tile, into memory that is there, and their summary.

The arrays of a block are given up to the program and returned by it: fresh pages from the system
cost several times what the answers do. Few cells are answered in one piece.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
from jax import Array

from paradl.kernels.arrays import LIMITS, AnyArray, Cells, repeat, xp
from paradl.kernels.blocks.outputs import Outputs, count_alone, list_summarised, select_outputs
from paradl.kernels.blocks.summary import (
    REPEATED,
    Line,
    Summary,
    extend_summary,
    summarise_nothing,
    tabulate,
    tabulate_line,
)
from paradl.kernels.blocks.tiles import Starts, Tiles, count_tile_cells, tiles
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.oracle.answer import Invariants, find_invariants, find_limits

Buffers = dict[str, Array]
Filled = tuple[Buffers, Summary]

# Invariants are found ahead of the tiles where they have at most one in so many of the cells.
# Measured (2 cores, 2026-11): over three axes 1.17 to 1.31 times the
# rate of finding them in each tile, over two, where there is less to spare, 0.86 to 1.10.
FEW = 4

# Blocks of fewer cells take longer to compile for than to fill.
SMALL_CELLS = 2**20


@compiled("shape", donated=("buffers",), few=lambda *_, shape: math.prod(shape) < SMALL_CELLS)
def fill_buffers(
    buffers: Buffers, place: Cells, case: Case, enough: Cells, *, shape: tuple[int, ...]
) -> tuple[Buffers, Array]:
    """Return the buffers [places, cells] with a case's outputs at `place`, and its summary's table.

    enough [1, cells but for PEs]: PE seconds in which an epoch is still efficient. shape: of the
    cells. The table is [statistic, cells but for PEs].
    """
    block = CellBlock(
        case=case,
        ahead=_list_few_invariants(case, math.prod(shape)),
        enough=jnp.asarray(enough, jnp.float32),
        place=place,
        # The summary reads its own also where no cells are stored (`--reduce-only`).
        names=tuple(dict.fromkeys((*buffers, *list_summarised(case)))),
        cut=tiles(shape, count_tile_cells() // _count_choices(case)),
    )
    columns = math.prod(block.cut.counts[1:])
    into, summary = repeat(columns, block.fill_column, (buffers, block.summarise_nothing(shape)))
    return into, jnp.asarray(tabulate(summary))


@compiled("names", numpy=True)
def answer_few(case: Case, enough: Cells, *, names: tuple[str, ...]) -> tuple[Outputs, AnyArray]:
    """Return a case's outputs [cells], of size 1 where they do not vary, and its summary's table.

    In numpy where that is quicker: the programs of `fill_buffers` run at memory speed, but take 2 s
    each to compile, 0.4 s to load.

    enough [1, cells but for PEs]: PE seconds in which an epoch is still efficient. The table is
    [statistic, cells but for PEs].
    """
    summarised = list_summarised(case)
    outputs = select_outputs(case, tuple(dict.fromkeys((*names, *summarised))))
    line = Line(
        # The dimensions of choices stand in front of those of the cells.
        p=xp.reshape(case.run.p, (-1, *[1] * (xp.ndim(enough) - 1))),
        enough=xp.asarray(enough, xp.float32),
        **{name: outputs[name] for name in summarised},
        epochs_alone=count_alone(case, xp.ndim(enough)),
    )
    return {name: outputs[name] for name in names}, tabulate_line(line)


@compiled(donated=("buffers",))
def put_outputs(buffers: Buffers, outputs: Outputs, place: Cells) -> Buffers:
    """Return the buffers [places, cells] with outputs of `answer_few` at `place`."""
    size = next(iter(buffers.values())).shape[1:] if buffers else ()
    return _write(buffers, outputs, (place, *[0] * len(size)), size)


@dataclass(frozen=True)
class CellBlock:
    """A block's cells inside the compiled program, and how they are cut into tiles.

    ahead: the arrays of its invariants; None in place of each that every tile finds by itself.
    enough: PE seconds in which an epoch is still efficient. names: the outputs that are read.
    """

    case: Case
    ahead: list[Array | None]
    enough: Array
    place: Cells
    names: tuple[str, ...]
    cut: Tiles

    def fill_column(self, number: Cells, so_far: Filled) -> Filled:
        """Fill all tiles along the PE counts, for a tile of the other dimensions."""
        # PE counts innermost: a summary is extended by larger ones alone.
        along = tuple(jnp.unravel_index(jnp.asarray(number), self.cut.counts[1:]))

        def fill(row: Cells, so_far: Filled) -> Filled:
            return self.fill_tile((row, *along), so_far)

        at_first = so_far[0], self.summarise_nothing(self.cut.size)
        into, summary = repeat(self.cut.counts[0], fill, at_first)
        return into, _put_summary(so_far[1], summary, self.cut.starts((0, *along))[1:])

    def fill_tile(self, number: Starts, so_far: Filled) -> Filled:
        """Evaluate one tile, write it, and add it to the summary."""
        cut, starts = self.cut, self.cut.starts(number)
        case, ahead = cut.cut((self.case, self.ahead), starts)
        # The compiler drops what the tile would compute again.
        found, structure = jax.tree.flatten(find_invariants(case))
        leaves = [
            here if there is None else there for here, there in zip(found, ahead, strict=True)
        ]
        invariants: Invariants = jax.tree.unflatten(structure, leaves)
        outputs = select_outputs(case, self.names, invariants)
        into = _write(so_far[0], outputs, (self.place, *starts), cut.size)
        outputs = _read_back(into, outputs, (self.place, *starts), cut.size)
        line = Line(
            p=cut.cut(self.p, starts),
            enough=cut.cut(self.enough, starts),
            **{name: outputs[name] for name in list_summarised(self.case)},
            epochs_alone=count_alone(case, len(cut.shape)),
        )
        if cut.overlap:
            # The last tile begins early, so as to be a whole one: its first rows count elsewhere.
            is_repeated = line.row < number[0] * cut.size[0] - starts[0]
            line = replace(line, limit=jnp.where(is_repeated, LIMITS(REPEATED), line.limit))
        return into, extend_summary(so_far[1], line)

    def summarise_nothing(self, shape: tuple[int, ...]) -> Summary:
        """Return the summary of no PE counts, for cells of this shape."""
        of_limits = tuple(map(min, shape[1:], self.limits))
        return summarise_nothing(shape[1:], of_limits, trains=self.case.training is not None)

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """Shape of the flags across the PE counts."""
        shape = jax.eval_shape(_find_limits, self.case).shape
        return tuple(shape[1:])

    @property
    def p(self) -> Array:
        """PE counts with the rank of cells, without dimensions of choices."""
        return jnp.asarray(self.case.run.p).reshape(-1, *[1] * (len(self.cut.shape) - 1))


def _find_limits(case: Case) -> AnyArray:
    """Return the flags as they are stored; times are only traced if they choose."""
    if case.choices:
        return select_outputs(case, ("limit",))["limit"]
    return find_limits(case)


def _count_choices(case: Case) -> int:
    """Count the choices of each cell: with many of them a tile has fewer cells."""
    shape = jnp.broadcast_shapes(jnp.shape(case.run.group), jnp.shape(case.run.segments))
    return math.prod(shape[: len(case.choices)])


def _list_few_invariants(case: Case, cells: int) -> list[Array | None]:
    """Return the invariant arrays that are small beside the cells, and None for the others.

    Each array by itself: with 128 bandwidths and 16 latencies, gradients through hosts are large,
    and would keep all others in the tiles (data 4.6 instead of 3.7 ns of CPU per cell).
    """
    leaves = jax.tree.leaves(find_invariants(case))
    return [leaf if leaf.size * FEW <= cells else None for leaf in leaves]


def _write(buffers: Buffers, outputs: Outputs, starts: Starts, size: tuple[int, ...]) -> Buffers:
    """Return the buffers with a tile's outputs in their place."""
    return {
        name: jax.lax.dynamic_update_slice(
            buffer, jnp.broadcast_to(outputs[name], (1, *size)), starts
        )
        for name, buffer in buffers.items()
    }


def _read_back(
    buffers: Buffers, outputs: Outputs, starts: Starts, size: tuple[int, ...]
) -> Outputs:
    """Return the outputs, read back from the buffers if they fill the tile.

    Otherwise the compiler would compute them again for the summary.
    """
    whole = (name for name in buffers if outputs[name].shape == size)
    return outputs | {
        name: jax.lax.dynamic_slice(buffers[name], starts, (1, *size))[0] for name in whole
    }


def _put_summary(all_of_them: Summary, summary: Summary, starts: Starts) -> Summary:
    """Put the summary of a tile into that of all cells; counts have limits in front."""

    def put(whole: Array, part: Array) -> Array:
        first = (0,) * (whole.ndim - len(starts)) + tuple(starts)
        return jax.lax.dynamic_update_slice(whole, part.astype(whole.dtype), first)

    placed: Summary = jax.tree.map(put, all_of_them, summary)
    return placed
