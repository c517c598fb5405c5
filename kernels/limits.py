"""Limits: what forbids a configuration, as bit flags of one byte.

ParaDL, Table III, column Number of PEs, and section 4.6. The last two bits are marks: they tell,
and forbid nothing.
"""

from enum import IntFlag

import jax.numpy as jnp

from kernels.arrays import Cells, Flags, Limits
from kernels.group import Bounds, GroupWork
from kernels.strategy import Run


class Limit(IntFlag):
    """Names are the cube's `flag_meanings`, values its `flag_masks`."""

    MEMORY = 1  # the fullest PE needs more than its memory
    TOO_MANY_PES = 2  # more PEs than the strategy can split a model into
    BATCH_TOO_SMALL = 4  # less than one sample for a replica or a segment
    INCOMPATIBLE = 8  # the dataset's samples do not fit the model
    GROUP_DOES_NOT_DIVIDE = 16  # p is not a multiple of the group
    UNEVEN = 32  # mark: parts of unequal size; the formula averages over them
    BATCH_EXCEEDS_DATASET = 64  # mark: an epoch is less than one iteration


MARKS = Limit.UNEVEN | Limit.BATCH_EXCEEDS_DATASET
FORBIDS = ~MARKS & Limit(127)


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
