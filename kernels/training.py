"""Training: what the global batch decides beside times, epochs to a target and how large it may be.

Found ahead of the cells (grids/inputs/training.py): they vary with PE counts and batches alone.
"""

from dataclasses import dataclass

import jax

from kernels.arrays import Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Training:
    """Epochs until the target is reached, with the global batch of each cell.

    epochs_alone: with that of one PE. spread: of the logarithm of the epochs.
    """

    epochs: Cells
    epochs_alone: Cells
    spread: Cells
