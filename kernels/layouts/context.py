"""Context parallelism: sequences are divided, and keys and values exchanged.

Ring: Liu et al. 2023, section 3. All-to-all over heads: Jacobs et al. 2023. All-gather:
Megatron-LM, transformer_config.py.
"""

from typing import ClassVar

import numpy as np

from kernels.layouts.columns import Column
from kernels.layouts.dimension import Dimension, Exchanged, Rules, leave_rest
from kernels.layouts.transformer import Block, Layouts, Training


class ContextParallel(Dimension):
    """Divides the positions of each sequence."""

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
        """Compute exposed seconds of keys and values; only a ring hides behind attention."""
        return {"context_exchange": self._exchange_keys(block, attention)}

    def _exchange_keys(self, block: Block, attention: Column | None) -> Column:
        c, t, transfers = self.layouts.context, self.layouts.tensor, self.transfers
        # All heads together may be wider than the features between blocks, or narrower.
        queries = 2 * self.activations * (block.scores / (4 * self.net.hidden))
        # With more PEs than KV heads, each PE has a whole one.
        keys = block.kv_heads / block.heads * queries / np.minimum(t, block.kv_heads)
        if self.training.context_by == "ring":
            # Each of the c - 1 steps hides behind the attention of the part received before.
            hidden = 0 if attention is None else attention / c
            # Keys and values forward and backward, and their gradients.
            return (c - 1) * np.maximum(3 * transfers.send(c, t, keys) - hidden, 0)
        if self.training.context_by == "all_gather":
            return 2 * transfers.gather(c, t, c * keys) + transfers.scatter(c, t, c * keys)
        # Queries, keys and values go from positions to heads, outputs back; likewise their
        # gradients (Jacobs et al. 2023).
        return 2 * transfers.send_to_all(c, t, queries / t + keys, 2)


def _count_parts(layouts: Layouts, training: Training) -> Column:
    """Count parts of a sequence: a causal ring gives each rank an early and a late part."""
    c = layouts.context
    return c if training.context_by == "all_to_all" else np.where(c > 1, 2 * c, 1)
