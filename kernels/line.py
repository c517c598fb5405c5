"""A line of PE counts: what summaries are made of."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from kernels.arrays import Cells, Flags, Limits
from kernels.flags import FORBIDS

# The flag of a PE count that stands in a line again: it is not summarised.
REPEATED = 128


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Line:
    """Answers for PE counts `p`, ascending, along the first dimension of the cells: times [s per
    epoch], memory [B], flags; enough: PE seconds in which an epoch is still efficient, of size 1
    along that dimension.
    """

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


def without(line: Line, first: Cells) -> Line:
    """The line without its `first` PE counts, which stand in another."""
    limit = jnp.asarray(line.limit)
    row = jnp.arange(limit.shape[0]).reshape(-1, *[1] * (limit.ndim - 1))
    return replace(line, limit=jnp.where(row < first, jnp.uint8(REPEATED), limit))
