"""Training: how many epochs the global batch of each cell needs until the target is reached."""

from dataclasses import dataclass

import jax

from kernels.arrays import Cells
from kernels.configuration.convergence import Curve, Law, follow_curve, spread_epochs
from kernels.namespace import xp

# Here, and not where they stand: laws are read, and fitted, without JAX.
jax.tree_util.register_dataclass(Curve)
jax.tree_util.register_dataclass(Law)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Training:
    """Epochs by global batch. converges_to: B beyond which the target is never reached."""

    curve: Curve
    law: Law
    converges_to: Cells

    def count_epochs(self, global_batch: Cells) -> Cells:
        """Epochs to the target; NaN where it is never reached."""
        epochs = follow_curve(self.curve, xp.asarray(global_batch))
        return xp.where(xp.greater(global_batch, self.converges_to), xp.nan, epochs)

    def spread_epochs(self, global_batch: Cells) -> Cells:
        """Spread of the logarithm of the epochs."""
        spread: Cells = spread_epochs(self.law, xp.asarray(global_batch))
        return spread
