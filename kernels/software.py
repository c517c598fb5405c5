"""Software: what a framework makes of a machine's time, whatever the machine."""

from dataclasses import dataclass

import jax

from kernels.arrays import Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Software:
    """How gradients are sent, what computing can hide, and how even PEs are.

    bucket [B]: of gradients that are one message. overlap: omega, the part of the time computing
    that can hide communication. jitter: spread of a PE's time computing an iteration, of the whole.
    As they stand, Table III's, which knows none of them.
    """

    bucket: Cells = float("inf")
    overlap: Cells = 0.0
    jitter: Cells = 0.0
