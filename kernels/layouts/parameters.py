"""Parameters of a transformer on a PE: divided by tensor, replicated, routed experts."""

from typing import NamedTuple

import numpy as np

from kernels.layouts.transformer import Column, Layouts, Transformer


class Parameters(NamedTuple):
    """Parameters on a PE [..., layouts]: those that all its ranks share, and routed experts."""

    dense: Column
    experts: Column


def count_attention(net: Transformer, tensor: Column) -> Column:
    """Parameters of a block's attention on a PE [layouts], norms of its heads included."""
    h, a = net.hidden, net.heads
    if net.latent:
        ranks = net.latent
        queries = (ranks.query_rank or h) * a * (ranks.content + ranks.rotary)
        keys = ranks.rank * a * (ranks.content + ranks.value)
        down = h * (ranks.query_rank + ranks.rank + ranks.rotary)
        norms = net.norm * (ranks.query_rank + ranks.rank)
        return (queries + keys + a * ranks.value * h) / tensor + down + norms
    # t > a_kv: some PEs hold the same KV head.
    width = (a + 2 * np.maximum(net.kv_heads, tensor)) * net.head_size
    divided = h * (width + a * net.head_size) + net.column_biases * width
    normed = 2 * net.norm * net.head_size * net.head_norms
    held: Column = divided / tensor + normed + net.row_biases * h
    return held


def count_block(net: Transformer, layouts: Layouts, has_experts: bool) -> Parameters:
    """Parameters of a block on a PE [layouts]: w of Korthikanti 2022, app. A, norms and biases."""
    t, h, g = layouts.tensor, net.hidden, net.matrices
    held = count_attention(net, t) + 2 * net.norm * h
    if not has_experts:
        biases = (g - 1) * net.ffn / t + h if net.mlp_biases else 0
        return Parameters(held + g * h * net.ffn / t + biases, np.zeros_like(held))
    router = net.experts * (h + net.router_biases)
    experts = g * h * net.expert_ffn * net.experts / (t * layouts.expert)
    return Parameters(held + g * h * net.shared_ffn / t + router, experts)


def count_blocks(net: Transformer, layouts: Layouts) -> Parameters:
    """Parameters of a block on a PE [2, layouts]: of one without experts, of one with them."""
    both = [count_block(net, layouts, has_experts) for has_experts in (False, True)]
    return Parameters(*map(np.stack, zip(*both, strict=True)))


def count_ends(net: Transformer, layouts: Layouts, first: Column, last: Column) -> Column:
    """Parameters on a PE [layouts] of embedding and positions, of final norm and output layer.

    first, last: whether a stage has them. Tied tables stand once where a stage has both.
    """
    tables = np.where(first & last & net.tied, 1, first.astype(int) + last)
    table = pad_vocabulary(net, layouts) / layouts.tensor * net.hidden
    small = net.hidden * (net.norm * last + net.positions * first)
    held: Column = tables * table + small
    return held


def pad_vocabulary(net: Transformer, layouts: Layouts) -> Column:
    """V [layouts], padded to a multiple of 128 t."""
    unit: Column = 128 * layouts.tensor
    return unit * np.ceil(net.vocabulary / unit)


def count_parameters(net: Transformer) -> int:
    """P, as published: the vocabulary is not padded, nothing stands twice."""
    one = Layouts.from_rows(np.array([[1, 1, 1, 1, 1, 1, 1, 0, 0, 0]]))
    blocks = count_blocks(net, one)
    sizes = (blocks.dense + blocks.experts)[:, 0].tolist()
    tables = (1 if net.tied else 2) * net.vocabulary
    whole: float = sum(sizes[int(has_experts)] for has_experts in net.expert_blocks)
    return round(whole + net.hidden * (tables + net.norm + net.positions))
