"""Tensor parallelism: matrices are divided by columns, then by rows.

Narayanan et al. 2021 (SC21), section 3.2; with sequence parallelism Korthikanti et al. 2022,
section 4.2.2. Rules of Megatron-LM, arguments.py.
"""

from typing import ClassVar

import numpy as np

from paradl.kernels.columns import Column, find_any, read_first
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.parallelism.divided_blocks import (
    Computing,
    DividedBlocks,
    Exchanged,
    Marks,
    Rule,
    Rules,
    Values,
    divide,
    join_numbers,
    leave_rest,
)
from paradl.kernels.parallelism.parallelism import Parallelism
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Block, Training, Transformer

# Pieces of a product whose exchange overlaps (TransformerEngine's and torch's usual split).
CHUNKS = 4


class TensorParallel(Parallelism):
    """Divides matrices and, with sequence parallelism, norms and dropout."""

    name = sends_as = "tensor"
    values: ClassVar[Values] = {"sequence": lambda net, pes, most: (0, 1)}
    marks: ClassVar[Marks] = {
        "kv_replicated": lambda net, layouts, _, __: layouts.tensor > min(net.kv_heads),
        # The all-reduces of every block then use the slower links between nodes.
        "beyond_node": lambda net, layouts, _, pes_per_node: layouts.tensor > pes_per_node,
    }

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        t, kv_heads = layouts.tensor, join_numbers(net.kv_heads)
        tp, tokens = f"tp{read_first(t)}", training.length // layouts.context
        widths = join_numbers((*net.ffn, *net.expert_ffn))
        return {
            "heads": divide(net.heads, t, tp, "heads", "a tensor degree"),
            "kv_heads": Rule(
                # With more PEs than KV heads, each head has several copies.
                find_any(np.maximum(n, t) % np.minimum(n, t) > 0 for n in net.kv_heads),
                f"{tp} neither divides nor is a multiple of {kv_heads} KV heads",
                f"a tensor degree that divides, or is a multiple of, {kv_heads}",
            ),
            "hidden": divide((net.hidden,), t, tp, "features", "a tensor degree"),
            "ffn": Rule(
                leave_rest(net.ffn, t) | leave_rest(net.expert_ffn, layouts.etp),
                f"{tp} or etp does not divide MLPs of {widths}",
                "a tensor degree that divides the width of MLPs and experts",
            ),
            "sequence_parallel": Rule(
                (layouts.sequence > 0) & (tokens % t > 0),
                f"{tp} with sp does not divide {read_first(tokens):,} tokens",
                "a length over context that the tensor degree divides",
            ),
        }

    def cost_exchanges(self, divided: DividedBlocks) -> Column:
        """Compute seconds of an all-reduce between blocks."""
        # The same bytes either way. Sequence parallelism's second gather in the backward pass is
        # left out: it overlaps, and including it did not improve the fit of left-out runs.
        layouts, transfers, m = divided.layouts, divided.transfers, divided.activations
        t = layouts.tensor
        gathered = transfers.send("all_gather", t, 1, m) + transfers.send("reduce_scatter", t, 1, m)
        return np.where(layouts.sequence > 0, gathered, transfers.send("all_reduce", t, 1, m))

    def exchange_block(
        self, divided: DividedBlocks, costs: Column, block: Block, hiding: Computing | None
    ) -> Exchanged:
        """Compute exposed seconds of all-reduces, or of gathers and scatters.

        Forward after each matrix divided by rows, backward before the columns in front of it.
        Software that cuts these products into CHUNKS exchanges one while it computes the next:
        max(T/CHUNKS, T - share of the products' time) is exposed (Wang et al., ASPLOS 2023).
        """
        split = [w for w in block.weights if w.used and w.parts and not w.is_routed]
        rows = [w for w in split if not w.by_columns and not w.rank]
        # Full recomputation repeats the forward ones: 6 instead of 4 (SC21, section 3.2).
        whole = (divided.layouts.recompute & (RECOMPUTE["blocks"] | RECOMPUTE["full"])) > 0
        passes = any(w.share > 1 / 3 for w in rows)
        seconds = len(rows) * ((2 + whole) if passes else 1) * costs
        if hiding is not None:
            # Only gathers and scatters are cut: sequence parallelism (Megatron-LM, arguments.py).
            hidden = divided.rates.hidden_tensor * (divided.layouts.sequence > 0) * hiding.products
            seconds = seconds - np.minimum((1 - 1 / CHUNKS) * seconds, hidden)
        if ranks := [w.rank for w in split if w.rank]:
            # Between the two matrices of an adapter, forward or backward (peft's tp_layer.py).
            size = divided.activations * ranks[0] / divided.net.hidden
            sent = divided.transfers.send("all_reduce", divided.layouts.tensor, 1, size)
            seconds = seconds + len(ranks) * sent
        return {"tensor_exchange": seconds}


PARALLELISM = TensorParallel()
