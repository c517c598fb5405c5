"""Flags: the names of what forbids a configuration, as bits of two bytes.

ParaDL, Table III, column Number of PEs, and section 4.6. Two bits are marks: they tell, and forbid
nothing. Apart from the kernels that set them: whoever only reads them needs no JAX.
"""

from enum import IntFlag


class Limit(IntFlag):
    """Names are the cube's `flag_meanings`, values its `flag_masks`."""

    MEMORY = 1  # the fullest PE needs more than its memory
    TOO_MANY_PES = 2  # more PEs than the strategy can split a model into
    BATCH_TOO_SMALL = 4  # less than one sample for a replica or a segment
    INCOMPATIBLE = 8  # the dataset's samples do not fit the model
    GROUP_DOES_NOT_DIVIDE = 16  # p is not a multiple of the group
    UNEVEN = 32  # mark: parts of unequal size; the formula averages over them
    BATCH_EXCEEDS_DATASET = 64  # mark: an epoch is one iteration, of more samples than there are
    MACHINE_TOO_SMALL = 128  # more PEs than the machine has
    NO_CONVERGENCE = 256  # a global batch that never reaches the target, or is larger than allowed


MARKS = Limit.UNEVEN | Limit.BATCH_EXCEEDS_DATASET
FORBIDS = ~MARKS
# What ends a line of PE counts. That the group does not divide one says nothing about scaling.
STOPS = FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE
