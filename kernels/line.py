"""A line of PE counts: what summaries are made of."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Flags, Limits
from kernels.flags import FORBIDS

# The flag of a PE count that stands in a line again: it does not count.
REPEATED = 128


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Line:
    """Answers for PE counts `p`, ascending, along the first dimension of the cells: times [s per
    epoch], memory [B], flags; enough: PE seconds in which an epoch is still efficient, of size 1
    along that dimension.
    """

    row: Cells
    p: Cells
    comp_time: Cells
    comm_time: Cells
    memory: Cells
    limit: Limits
    enough: Cells

    @property
    def allowed(self) -> Flags:
        """What nothing forbids."""
        return jnp.equal(self.limit & jnp.uint8(FORBIDS | REPEATED), 0)


def line(
    p: Cells, comp_time: Cells, comm_time: Cells, memory: Cells, limit: Limits, enough: Cells
) -> Line:
    """A line whose rows are numbered."""
    row = jnp.arange(jnp.shape(limit)[0], dtype=jnp.int32)
    rows = row.reshape(-1, *[1] * (jnp.ndim(limit) - 1))
    return Line(rows, p, comp_time, comm_time, memory, limit, enough)


def without(found: Line, first: Cells) -> Line:
    """The line without its `first` PE counts, which stand in another."""
    repeated = jnp.where(found.row < first, jnp.uint8(REPEATED), found.limit)
    return replace(found, limit=repeated)


def at_row(values: Cells, row: Array) -> Array:
    """The value in a row of each slice, of values along a line."""
    values = jnp.asarray(values)
    others = jnp.meshgrid(*map(jnp.arange, row.shape), indexing="ij", sparse=True)
    index = zip((row, *others), values.shape, strict=True)
    return values[tuple(each if size > 1 else 0 for each, size in index)]
