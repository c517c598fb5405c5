"""Flags: limits that make a configuration infeasible, as bits of two bytes.

ParaDL, Table III, column Number of PEs, and section 4.6. Two bits are marks, which inform but do
not forbid. Separate from the kernels that set them, so that readers need no JAX.
"""

from enum import IntFlag


class Limit(IntFlag):
    """Limits and marks; names are the cube's `flag_meanings`, values its `flag_masks`."""

    MEMORY = 1  # the fullest PE needs more than its memory
    TOO_MANY_PES = 2  # more PEs than the strategy can split a model into
    BATCH_TOO_SMALL = 4  # less than one sample for a replica or a segment
    INCOMPATIBLE = 8  # the data set's samples do not fit the model
    GROUP_DOES_NOT_DIVIDE = 16  # p is not a multiple of the group
    UNEVEN = 32  # mark: parts of unequal size, over which the formula averages
    BATCH_EXCEEDS_DATASET = 64  # mark: one iteration has more samples than the data set
    MACHINE_TOO_SMALL = 128  # more PEs than the machine has
    NO_CONVERGENCE = 256  # a global batch that never reaches the target, or is larger than allowed
    DOES_NOT_DIVIDE = 512  # heads, blocks, a batch ... that the degrees of a layout do not divide


# Marks of answers, no flags of a cube: the software that the system names does not run the layout;
# little memory is left for what is not counted; nothing allowed meets a deadline.
UNSUPPORTED, TIGHT, TOO_SLOW = "unsupported", "tight", "too_slow"

MARKS = Limit.UNEVEN | Limit.BATCH_EXCEEDS_DATASET
FORBIDS = ~MARKS
# Limits that end scaling along PE counts; what does not divide one count does not.
STOPS = FORBIDS & ~(Limit.GROUP_DOES_NOT_DIVIDE | Limit.DOES_NOT_DIVIDE)
