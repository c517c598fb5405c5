"""Limits: what forbids a configuration, as the flags of `kernels.flags`.

ParaDL, Table III, column Number of PEs, and section 4.6.
"""

import jax.numpy as jnp

from kernels.arrays import Cells, Flags, Limits
from kernels.flags import Limit
from kernels.group import Bounds, GroupWork
from kernels.run import Run


def limits(
    work: GroupWork,
    bounds: Bounds,
    run: Run,
    memory: Cells,
    memory_capacity: Cells,
) -> Limits:
    """All flags of every cell; of a group that does not divide p there is no more to say."""
    divides = jnp.equal(jnp.remainder(run.p, run.p2), 0)
    segment = jnp.where(jnp.equal(work.pipelined, 1), run.batch / run.segments, run.batch)
    whole = jnp.equal(segment, jnp.floor(segment)) & jnp.equal(run.batch, jnp.floor(run.batch))
    flags = (
        _flag(jnp.greater(memory, memory_capacity), Limit.MEMORY)
        | _flag(jnp.logical_not(bounds.fits), Limit.TOO_MANY_PES)
        | _flag(jnp.less(segment, 1), Limit.BATCH_TOO_SMALL)
        | _flag(~(whole & bounds.even), Limit.UNEVEN)
        | _flag(jnp.greater(run.global_batch, run.samples), Limit.BATCH_EXCEEDS_DATASET)
    )
    return jnp.where(divides, flags, jnp.uint8(Limit.GROUP_DOES_NOT_DIVIDE))


def _flag(condition: Flags, limit: Limit) -> Limits:
    return jnp.where(condition, jnp.uint8(limit), jnp.uint8(0))
