"""Limits that make a configuration infeasible, as the flags of `kernels.names.flags`.

ParaDL, Table III, column Number of PEs, and section 4.6.
"""

from paradl.kernels.arrays import LIMITS, Cells, Flags, Limits, divides, is_whole, pytree, xp
from paradl.kernels.configuration.run import Run
from paradl.kernels.machine.network import Network
from paradl.kernels.names.flags import Limit
from paradl.kernels.work.group import Bounds


@pytree
class InvariantFlags:
    """Flags that do not depend on memory: of the group; of a batch, whole or in segments."""

    group: Limits
    batch: Limits
    segments: Limits


def find_group_flags(bounds: Bounds, run: Run, network: Network) -> Limits:
    """Compute the flags of groups of PEs."""
    groups = divides(run.group, run.p)
    return (
        flag(xp.logical_not(bounds.fits), Limit.TOO_MANY_PES)
        | flag(xp.logical_not(bounds.even), Limit.UNEVEN)
        | flag(xp.logical_not(groups), Limit.GROUP_DOES_NOT_DIVIDE)
        | flag(xp.greater(run.p, network.size), Limit.MACHINE_TOO_SMALL)
    )


def find_invariant_flags(
    bounds: Bounds, run: Run, network: Network, segments: Cells
) -> InvariantFlags:
    """Compute flags that vary along few dimensions. segments: number of parts of a batch."""
    group = find_group_flags(bounds, run, network)
    uneven = flag(xp.logical_not(is_whole(run.batch)), Limit.UNEVEN)
    return InvariantFlags(group, _samples(run.batch), uneven | _samples(run.batch / segments))


def limits(
    segmented: Cells, invariant: InvariantFlags, run: Run, memory: Cells, memory_capacity: Cells
) -> Limits:
    """Compute all flags of every cell; only GROUP_DOES_NOT_DIVIDE if the group does not divide p.

    segmented: 1 if samples pass in segments. memory: bytes that a PE needs.
    """
    flags = (
        invariant.group
        | xp.where(xp.equal(segmented, 1), invariant.segments, invariant.batch)
        # Comparisons with NaN are false: unknown memory sets no flag.
        | flag(xp.greater(memory, memory_capacity), Limit.MEMORY)
        | flag(xp.greater(run.global_batch, run.samples), Limit.BATCH_EXCEEDS_DATASET)
    )
    if run.largest_batch is not None:
        flags = flags | flag(xp.greater(run.global_batch, run.largest_batch), Limit.NO_CONVERGENCE)
    # With p1 rounded, other flags would describe a run on another number of PEs.
    undivided = LIMITS(Limit.GROUP_DOES_NOT_DIVIDE)
    return xp.where((invariant.group & undivided) > 0, undivided, flags)


def _samples(count: Cells) -> Limits:
    """Compute the flags of a number of samples per pass."""
    few = flag(xp.less(count, 1), Limit.BATCH_TOO_SMALL)
    return few | flag(xp.logical_not(is_whole(count)), Limit.UNEVEN)


def flag(condition: Flags, limit: Limit) -> Limits:
    """Return a limit's flag where a condition is true."""
    # Both have two bytes, so that flags are not promoted to a wider integer.
    return xp.where(condition, LIMITS(limit), LIMITS(0))
