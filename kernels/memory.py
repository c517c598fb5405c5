"""Memory: bytes that the fullest PE needs.

ParaDL, Table III, column Maximum Memory: gamma delta (2b (|x|+|y|) + 2|w| + |bi|): every activation
and weight with its gradient, every bias; gamma in (0, 1] is the part that buffer reuse leaves.
"""

from functools import reduce

import jax.numpy as jnp

from kernels.arrays import Cells
from kernels.group import GroupWork


def memory(work: GroupWork, batch: Cells, delta: Cells, gamma: Cells) -> Cells:
    """Bytes of the fullest PE, `batch` samples a replica and `delta` bytes an item."""
    # Few: those that are the fullest for some batch or other (`grids.inputs.stages`).
    stages = zip(*jnp.broadcast_arrays(work.activations, work.parameters), strict=True)
    # Stage after stage, which compiles to faster code than a maximum along a dimension.
    items = reduce(jnp.maximum, (batch * activation + once for activation, once in stages))
    return jnp.asarray(gamma * delta * items)
