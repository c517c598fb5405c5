"""Context parallelism: PEs share each sequence, and pass keys and values on.

Liu et al. 2023, section 3: the ring. Jacobs et al. 2023: all-to-all over heads. Megatron-LM,
transformer_config.py: the all-gather.
"""

from typing import ClassVar

import numpy as np

from kernels.layouts.columns import Column
from kernels.layouts.dimension import Dimension, Exchanged, Rules, leave_rest
from kernels.layouts.transformer import Block, Layouts, Training


class ContextParallel(Dimension):
    """Positions of each sequence."""

    reasons: ClassVar[Rules] = {
        "sequence": lambda net, layouts, training: (
            training.length % _count_parts(layouts, training) > 0
        ),
        "context_heads": lambda net, layouts, training: (
            (training.context_by == "all_to_all")
            & (layouts.context > 1)
            & leave_rest((*net.heads, *net.kv_heads), layouts.context * layouts.tensor)
        ),
    }

    def exchange_block(self, block: Block, attention: Column | None) -> Exchanged:
        """Compute seconds of keys and values, as far as attention does not hide a ring's."""
        return {"context_exchange": self._exchange_keys(attention)}

    def _exchange_keys(self, attention: Column | None) -> Column:
        c, t, transfers = self.layouts.context, self.layouts.tensor, self.transfers
        keys = 2 * max(self.net.kv_heads) / max(self.net.heads) * self.activations / t
        if self.training.context_by == "ring":
            # Each of c - 1 steps hides behind the attention of the part that has arrived.
            hidden = 0 if attention is None else attention / c
            # Forward, again backward, and the gradients.
            return (c - 1) * np.maximum(3 * transfers.send(c, t, keys) - hidden, 0)
        if self.training.context_by == "all_gather":
            return 2 * transfers.gather(c, t, c * keys) + transfers.scatter(c, t, c * keys)
        # Queries and outputs, keys and values change from positions to heads and back; so do
        # their gradients (Jacobs et al. 2023).
        queries = 2 * self.activations / t
        return 2 * transfers.send_to_all(c, t, queries + keys, 2)


def _count_parts(layouts: Layouts, training: Training) -> Column:
    """Count parts of a sequence: a causal ring gives each rank a late one with an early one."""
    c = layouts.context
    return c if training.context_by == "all_to_all" else np.where(c > 1, 2 * c, 1)
