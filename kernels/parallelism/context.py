"""Context parallelism: sequences are divided, and keys and values exchanged.

Ring: Liu et al. 2023, section 3. All-to-all over heads: Jacobs et al. 2023. All-gather:
Megatron-LM, transformer_config.py.
"""

import numpy as np

from paradl.kernels.columns import Column, add, read_first
from paradl.kernels.parallelism.divided_blocks import (
    Computing,
    DividedBlocks,
    Exchanged,
    Rule,
    Rules,
    leave_rest,
)
from paradl.kernels.parallelism.parallelism import Parallelism
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import AttentionProducts, Block, Training, Transformer


class ContextParallel(Parallelism):
    """Divides the positions of each sequence."""

    name = sends_as = "context"

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        c, t = layouts.context, layouts.tensor
        cp = f"cp{read_first(c)}"
        by_heads = training.context_by == "all_to_all"
        # A causal ring gives each rank an early and a late part.
        parts = c if by_heads else np.where(c > 1, 2 * c, 1)
        return {
            "sequence": Rule(
                training.length % parts > 0,
                f"{cp} does not divide {training.length:,} tokens",
                f"a context degree whose double divides {training.length:,} tokens",
            ),
            "context_heads": Rule(
                by_heads & (c > 1) & leave_rest((*net.heads, *net.kv_heads), c * t),
                f"{cp} x tp{read_first(t)} does not divide the heads",
                "tensor x context that divides the heads",
            ),
        }

    def exchange_block(
        self, divided: DividedBlocks, costs: None, block: Block, hiding: Computing | None
    ) -> Exchanged:
        """Compute exposed seconds of keys and values; only a ring hides behind attention."""
        hidden = hiding.attentions if hiding else [np.zeros(1)] * len(block.attentions)
        exchanges = (
            _exchange_keys(divided, *pair) for pair in zip(block.attentions, hidden, strict=True)
        )
        return {"context_exchange": add([np.zeros(1), *exchanges])}


PARALLELISM = ContextParallel()


def _exchange_keys(divided: DividedBlocks, attention: AttentionProducts, hidden: Column) -> Column:
    layouts, training = divided.layouts, divided.training
    c, t, transfers = layouts.context, layouts.tensor, divided.transfers
    # All heads together may be wider than the features between blocks, or narrower.
    tokens, item = training.count_tokens(layouts), training.recipe.item
    queries = tokens * item * attention.flops / 2
    # With more PEs than KV heads, each PE has a whole one.
    held = attention.kv_heads / np.minimum(t, attention.kv_heads)
    keys = queries / attention.heads * held
    if training.context_by == "ring":
        # The bytes of each of the c - 1 steps hide behind the attention to the part received
        # before, start-ups behind nothing. Keys and values go forward and backward, and their
        # gradients.
        startups, sent = transfers.split_send(c, t, keys)
        times = 3 if attention.returns else 1
        step: Column = times * startups + np.maximum(times * sent - hidden / c, 0)
        return (c - 1) * step
    if training.context_by == "all_gather":
        gathered = transfers.send("all_gather", c, t, c * keys)
        if not attention.returns:
            return gathered
        return 2 * gathered + transfers.send("reduce_scatter", c, t, c * keys)
    # Queries, keys and values go from positions to heads, outputs back; likewise their
    # gradients (Jacobs et al. 2023).
    return (1 + attention.returns) * transfers.send_to_all(c, t, queries / t + keys, 2)
