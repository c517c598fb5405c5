"""Limits: what forbids a configuration, as the flags of `kernels.names.flags`.

ParaDL, Table III, column Number of PEs, and section 4.6.
"""

from dataclasses import dataclass

import jax

from kernels.arrays import LIMITS, Cells, Flags, Limits
from kernels.configuration.run import Run
from kernels.machine.network import Network
from kernels.names.flags import Limit
from kernels.namespace import divides, is_whole, xp
from kernels.work.group import Bounds


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Early:
    """Flags that need no memory: of the group; of a batch, whole and cut into segments."""

    group: Limits
    batch: Limits
    segments: Limits


def early(bounds: Bounds, run: Run, network: Network, segments: Cells) -> Early:
    """Each varies with few dimensions of the cells. segments: into which samples are cut."""
    groups = divides(run.group, run.p)
    group = (
        _flag(xp.logical_not(bounds.fits), Limit.TOO_MANY_PES)
        | _flag(xp.logical_not(bounds.even), Limit.UNEVEN)
        | _flag(xp.logical_not(groups), Limit.GROUP_DOES_NOT_DIVIDE)
        | _flag(xp.greater(run.p, network.size), Limit.MACHINE_TOO_SMALL)
    )
    uneven = _flag(xp.logical_not(is_whole(run.batch)), Limit.UNEVEN)
    return Early(group, _samples(run.batch), uneven | _samples(run.batch / segments))


def limits(
    segmented: Cells,
    early: Early,
    run: Run,
    memory: Cells,
    memory_capacity: Cells,
) -> Limits:
    """All flags of every cell; of a group that does not divide p there is no more to say.

    segmented: 1 where samples pass in segments; memory [B], of which a PE has so much.
    """
    flags = (
        early.group
        | xp.where(xp.equal(segmented, 1), early.segments, early.batch)
        # NaN is greater than nothing: memory that is not known is no verdict.
        | _flag(xp.greater(memory, memory_capacity), Limit.MEMORY)
        | _flag(xp.greater(run.global_batch, run.samples), Limit.BATCH_EXCEEDS_DATASET)
    )
    if run.largest_batch is not None:
        flags = flags | _flag(xp.greater(run.global_batch, run.largest_batch), Limit.NO_CONVERGENCE)
    # Its p1 is rounded: other flags would be of a run on another number of PEs.
    alone = LIMITS(Limit.GROUP_DOES_NOT_DIVIDE)
    return xp.where((early.group & alone) > 0, alone, flags)


def _samples(count: Cells) -> Limits:
    """Flags of so many samples at once."""
    few = _flag(xp.less(count, 1), Limit.BATCH_TOO_SMALL)
    return few | _flag(xp.logical_not(is_whole(count)), Limit.UNEVEN)


def _flag(condition: Flags, limit: Limit) -> Limits:
    # Both of two bytes: the flags of a cell never become a wider integer.
    return xp.where(condition, LIMITS(limit), LIMITS(0))
