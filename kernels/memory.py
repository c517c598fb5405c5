"""Memory: bytes that the fullest PE needs.

ParaDL, Table III, column Maximum Memory: gamma delta (2b (|x|+|y|) + 2|w| + |bi|): every activation and
weight with its gradient, every bias; gamma in (0, 1] is the part that buffer reuse leaves.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from kernels.arrays import Cells
from kernels.group import GroupWork


def memory(work: GroupWork, batch: Cells, delta: Cells, gamma: Cells) -> Num[Array, "*cells"]:
    """Bytes of the fullest stage, `batch` samples a replica, `delta` bytes an item."""
    items = jnp.max(jnp.asarray(batch * work.activations + work.parameters), axis=0)
    return gamma * delta * items
