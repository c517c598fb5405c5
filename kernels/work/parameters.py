"""Parameters of a transformer on a PE: divided over tensor, replicated, or routed experts."""

from typing import NamedTuple

import numpy as np

from paradl.kernels.columns import Column
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Block, Transformer, Weights


class Parameters(NamedTuple):
    """Parameters on a PE [layouts]: all but routed experts, and routed experts."""

    dense: Column
    experts: Column


def count_weights(weights: Weights, layouts: Layouts) -> Column:
    """Parameters of a layer on a PE [layouts]; PEs beyond its parts hold copies."""
    tensor = layouts.etp if weights.is_routed else layouts.tensor
    # Experts have few biases, and are divided over their width.
    parts = np.minimum(tensor, weights.parts) if weights.parts else np.ones_like(tensor)
    biases = weights.biases / (parts if weights.by_columns else 1)
    held: Column = (weights.matrix / parts + biases) / (layouts.expert if weights.is_routed else 1)
    return held


def count_block(block: Block, layouts: Layouts) -> Parameters:
    """Parameters of a block on a PE [layouts], without embedding tables."""
    held: dict[bool, Column] = {False: np.zeros(1), True: np.zeros(1)}
    for weights in block.weights:
        held[weights.is_routed] = held[weights.is_routed] + count_weights(weights, layouts)
    return Parameters(held[False], held[True])


def count_tables(net: Transformer, layouts: Layouts, reads: Column, last: Column) -> Column:
    """Parameters of embedding tables on a PE [layouts].

    reads, last: whether a stage embeds tokens, and computes logits; with tied tables, one serves.
    """
    tables = np.where(reads & last & net.ties, 1, reads.astype(int) + last)
    held: Column = tables * pad_vocabulary(net, layouts) / layouts.tensor * net.hidden
    return held


def pad_vocabulary(net: Transformer, layouts: Layouts) -> Column:
    """V [layouts], padded to a multiple of 128 t."""
    # Megatron-LM, arguments.py: make-vocab-size-divisible-by, for the efficiency of tensor cores.
    unit: Column = 128 * layouts.tensor
    return unit * np.ceil(net.vocabulary / unit)
