"""Fill: one strategy's answers, tile after tile, into memory that is there, and their summary.

A block's arrays are reused from block to block, and given up to the compiled program in turn: fresh
pages from the system cost several times what the answers do.
"""

import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids.grid import Grid, Index
from grids.models.layers import Floats
from grids.reduction import Reduced, reduced
from kernels.arrays import Cells
from kernels.compiled import compiled
from kernels.oracle import Answer
from kernels.run import Options
from kernels.summary import REPEATED, Line, Summary, merged, nothing, summarise
from kernels.tiles import Starts, Tiles, repeat, tiles
from sweep.buffers import Buffers
from sweep.evaluate import answered, output
from sweep.variables import EFFICIENCY, Arrays, dtype

Filled = tuple[Buffers, Summary]


def fill(
    buffers: Buffers,
    place: int,
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats],
    serial_time: NDArray[np.float32],
) -> Filled:
    """Evaluate one (model, dataset, system, strategy) over `axes` into a place of the buffers.

    serial_time [numeric dims but pe]: an epoch on one PE. Returns the buffers, in place of those
    given, and the summary over the PE counts that was made in the same pass.
    """
    problem = grid.problem(index, axes)
    assert problem is not None, index  # all of a block shares one model and dataset, which fit
    with jax.enable_x64(True):
        return _filled(
            buffers,
            np.asarray(place),
            reduced(problem, grid.options),
            np.asarray(serial_time)[None],
            shape=tuple(values.size for values in axes.values()),
            choices=problem.choices,
            options=grid.options,
        )


def summary_arrays(summary: Summary) -> Arrays:
    """As a store keeps it: limits, which lead in the kernels, come last, as a cube's dims do."""
    arrays = {name: np.asarray(value) for name, value in vars(summary).items()}
    return arrays | {"counts": np.moveaxis(arrays["counts"], 0, -1)}


@compiled("shape", "choices", "options", donated=("buffers",))
def _filled(
    buffers: Buffers,
    place: Cells,
    given: Reduced,
    serial_time: Cells,
    *,
    shape: tuple[int, ...],
    choices: bool,
    options: Options,
) -> Filled:
    """Tiles along the PE counts for each tile of the other dimensions."""
    cut = tiles(shape)
    others = cut.counts[1:]

    def column(number: Cells, so_far: Filled) -> Filled:
        along = jnp.unravel_index(jnp.asarray(number), others)

        def tile(row: Cells, so_far: Filled) -> Filled:
            starts = cut.starts((row, *along))
            found = answered(cut.cut(given, starts), choices=choices, options=options)
            outputs = _at_hand(found, so_far[0])
            line = _line(outputs, cut, row, starts, given.run.p, serial_time)
            written = _written(so_far[0], outputs, (place, *starts), cut.size)
            return written, merged(so_far[1], summarise(line, EFFICIENCY))

        filled, summary = repeat(cut.counts[0], tile, (so_far[0], nothing(cut.size[1:])))
        return filled, _placed(so_far[1], summary, cut.starts((0, *along))[1:])

    return repeat(math.prod(others), column, (buffers, nothing(shape[1:])))


def _at_hand(found: Answer, names: Mapping[str, object]) -> dict[str, Array]:
    """What is stored, and what the summary reads, computed once and not again for each reader."""
    wanted = dict.fromkeys((*names, "comp_time", "comm_time", "memory", "limit"))
    outputs = {name: jnp.asarray(output(found, name)).astype(dtype(name)) for name in wanted}
    held: dict[str, Array] = jax.lax.optimization_barrier(outputs)
    return held


def _line(
    outputs: Mapping[str, Array],
    cut: Tiles,
    row: Cells,
    starts: Starts,
    p: Cells,
    serial_time: Cells,
) -> Line:
    """The part of the lines that a tile is; a PE count that it repeats does not count again."""
    limit = outputs["limit"]
    if cut.overlap:
        pe = jnp.arange(cut.size[0]).reshape(-1, *[1] * (limit.ndim - 1)) + starts[0]
        limit = jnp.where(pe >= row * cut.size[0], limit, jnp.uint8(REPEATED))
    p = jnp.asarray(p).reshape(cut.shape[0], *[1] * (limit.ndim - 1))
    return Line(
        p=cut.cut(p, starts),
        comp_time=outputs["comp_time"],
        comm_time=outputs["comm_time"],
        memory=outputs["memory"],
        limit=limit,
        serial_time=cut.cut(serial_time, starts),
    )


def _written(
    buffers: Buffers, outputs: Mapping[str, Array], starts: Starts, size: tuple[int, ...]
) -> Buffers:
    """The buffers with a tile's answers in their place."""
    return {
        name: jax.lax.dynamic_update_slice(
            buffer, jnp.broadcast_to(outputs[name], (1, *size)), starts
        )
        for name, buffer in buffers.items()
    }


def _placed(all_of_them: Summary, summary: Summary, starts: Starts) -> Summary:
    """Summaries with a tile's in its place; the counts have limits in front."""

    def put(whole: Array, part: Array) -> Array:
        first = (0,) * (whole.ndim - len(starts)) + tuple(starts)
        return jax.lax.dynamic_update_slice(whole, part.astype(whole.dtype), first)

    placed: Summary = jax.tree.map(put, all_of_them, summary)
    return placed
