"""Seconds of an iteration of a transformer, by layout and by term.

Narayanan et al. 2021 (SC21), section 2.2: FLOPs and pipelines. Korthikanti et al. 2022: what is
computed again. Dao et al. 2022: fused attention. Formulas: docs/transformers.md, Time. Symbols: u
tokens of a micro-batch on a PE, m micro-batches; degrees t, c, e, p, d; v chunks a stage.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from kernels.layouts.exchanges import Exchanges
from kernels.layouts.memory import Blocks, hold_parameters, measure_blocks, measure_tensor
from kernels.layouts.parameters import Parameters, pad_vocabulary
from kernels.layouts.rates import Rates
from kernels.layouts.schedules import count_bubbles, count_stage_blocks, find_ends
from kernels.layouts.transformer import (
    RECOMPUTE,
    Block,
    Column,
    Layouts,
    Tensor,
    Training,
    Transformer,
    Weights,
)
from kernels.machine.network import Network
from kernels.namespace import use_numpy

COMPUTING = ("products", "attention", "elementwise", "logits", "recomputation")
TERMS = (
    *(*COMPUTING, "launch_wait"),
    *("tensor_exchange", "context_exchange", "expert_exchange"),
    *("pipeline_bubble", "stage_exchange", "gradient_exchange", "weight_gather", "optimizer"),
    "waiting",
)
# FLOPs of a backward pass over those of a forward one; fused attention computes its scores again.
BACKWARD = 2.0
FUSED_BACKWARD = 2.5
CAUSAL = 0.5  # of all pairs of positions, which fused kernels leave out
# Of the crossings of a tensor, those forward: a write and a read beside a read, a write and a read.
FORWARD = 0.4
# Items of a row that tensor cores read at once: matrices with other rows do without them.
# NVIDIA, "Matrix Multiplication Background User's Guide": 16 bytes.
ALIGNED = 8

Terms = dict[str, Column]


def time_iteration(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, network: Network
) -> Terms:
    """Seconds of an iteration by TERMS [layouts], of the stage that takes longest."""
    with use_numpy():
        iteration = _Iteration(net, layouts, training, rates, network)
        terms = np.zeros((len(TERMS), len(layouts)))
        for rows, parts in list_stages(net, layouts, training):
            of_stage = iteration.select(rows).time_stage(parts)
            longer = of_stage.sum(axis=0) > terms[:, rows].sum(axis=0)
            terms[:, rows[longer]] = of_stage[:, longer]
    return dict(zip(TERMS, terms, strict=True))


def list_stages(
    net: Transformer, layouts: Layouts, training: Training
) -> Iterator[tuple[Column, Column]]:
    """Rows of layouts, and what a stage of them has [kinds + 2, rows]: blocks of each kind, and
    whether it has the network's first and last layers; not twice the same one after the other."""
    pairs = layouts.pipeline * (layouts.chunks.max(initial=0) + 1) + layouts.chunks
    _, firsts, shapes = np.unique(pairs, return_index=True, return_inverse=True)
    some = layouts.select(firsts)
    before = np.full((len(net.kinds) + 2, len(some)), -1)
    for stage in range(layouts.pipeline.max(initial=0)):
        ends = find_ends(some, training, stage)
        parts = np.vstack([count_stage_blocks(net, some, training, stage), *ends])
        differs = np.any(parts != before, axis=0) & (some.pipeline > stage)
        rows, before = np.flatnonzero(differs[shapes]), parts
        if len(rows):
            yield rows, parts[:, shapes[rows]]


class _Iteration:
    """What blocks take of a micro-batch, and stages of an iteration."""

    def __init__(
        self,
        net: Transformer,
        layouts: Layouts,
        training: Training,
        rates: Rates,
        network: Network,
    ) -> None:
        self.net, self.layouts, self.training, self.rates = net, layouts, training, rates
        self.exchanges = Exchanges(net, layouts, training, network, rates.rail)
        self.tokens = training.count_tokens(layouts)
        recipe = training.recipe
        self.wide = replace(training, recipe=recipe._replace(read=recipe.item))
        self.held: Blocks = measure_blocks(net, layouts, training)
        self.blocks = [self.time_block(block) for block in net.kinds]

    def select(self, rows: Column) -> Self:
        """The same of some layouts."""
        some = copy(self)
        some.layouts, some.tokens = self.layouts.select(rows), self.tokens[rows]
        some.exchanges = replace(self.exchanges, layouts=some.layouts)
        some.held = self.held.select(rows)
        some.blocks = [
            {name: seconds[rows] for name, seconds in block.items()} for block in self.blocks
        ]
        return some

    def time_stage(self, parts: Column) -> Column:
        """Seconds of an iteration [terms, layouts], if the slowest stage has these parts."""
        layouts, counts, (first, last) = self.layouts, parts[:-2], parts[-2:] > 0
        terms = dict.fromkeys(TERMS, np.zeros(len(layouts)))
        for name in self.blocks[0]:
            terms[name] = sum_kinds(counts, (block[name] for block in self.blocks))
        terms["logits"] = last * self.time_logits()
        terms["launch_wait"] = self.wait_for_launches(
            counts, add(terms[name] for name in COMPUTING)
        )
        a_pass = np.sum([*terms.values()], axis=0)
        terms = {name: self.training.count_micro_batches(layouts) * terms[name] for name in TERMS}
        terms["pipeline_bubble"] = count_bubbles(layouts, self.training) * a_pass
        terms["stage_exchange"] = self.exchanges.exchange_stages()
        held = hold_parameters(self.net, layouts, self.held, counts, first, last)
        terms |= self.update(held, a_pass)
        lost = self.rates.straggling * np.log2(layouts.pes)
        terms["waiting"] = self.rates.pause + lost * add(terms.values())
        return np.stack([*terms.values()])

    def time_block(self, block: Block) -> Terms:
        """Seconds of a micro-batch, forward and backward, by term."""
        products, attention = self.time_products(block.weights), self.time_attention(block)
        backward = FUSED_BACKWARD if self.training.fused_attention else BACKWARD
        return {
            "products": (1 + BACKWARD) * add(seconds for _, seconds in products),
            "attention": (1 + backward) * attention,
            "elementwise": self.move_tensors(block.tensors),
            "recomputation": self.compute_again([*products, (ATTENTION, attention)]),
            "tensor_exchange": self.exchanges.count_tensor(block) * self.exchanges.reduce_tensor(),
            "context_exchange": self.exchanges.exchange_context((1 + backward) * attention),
            "expert_exchange": self.exchanges.exchange_experts(block),
        }

    def move_tensors(self, tensors: Iterable[Tensor]) -> Column:
        """Seconds in which what the backward pass reads crosses the memory, forward again where it
        is computed again, and inputs of a byte, and their gradients, are cast from 16 bits."""
        recipe, total = self.training.recipe, np.zeros(len(self.layouts))
        for tensor in tensors:
            again = (self.layouts.recompute & tensor.modules) > 0
            size = measure_tensor(tensor, self.layouts, self.wide)
            passes = self.rates.score_passes if tensor.size == "scores" else self.rates.passes
            total += passes * (1 + FORWARD * again) * size
            if tensor.size in ("read", "context") and recipe.read < recipe.item:
                total += 2 * (1 + 2 * recipe.read / recipe.item) * size
        return total / self.rates.bandwidth

    def time_products(self, matrices: Iterable[Weights]) -> list[tuple[int, Column]]:
        """Of each matrix the modules that compute it again, and its seconds forward."""
        return [
            (weights.modules, self.time_product(weights)) for weights in matrices if weights.used
        ]

    def time_product(self, weights: Weights) -> Column:
        """Seconds forward of a matrix."""
        layouts, t = self.layouts, self.layouts.tensor
        width, tokens = weights.matrix / self.net.hidden, self.tokens
        if weights.is_routed:
            # The tokens of one expert come from all PEs that share its replicas.
            tokens = self.tokens * weights.used * layouts.etp * layouts.expert / t
            own = width / sum(self.net.experts) / layouts.etp
            used = self.tokens * weights.matrix * weights.used / t
            return self.multiply(used, tokens, own, self.rates.peak)
        parts = np.minimum(t, weights.parts) if weights.parts else np.ones_like(t)
        used = self.tokens * weights.matrix * weights.used
        return self.multiply(used / parts, tokens, width / parts, self.rates.peak)

    def multiply(self, products: Column, tokens: Column, width: Column, peak: float) -> Column:
        """Seconds of n multiply-accumulates: 2 n (1 + x0/x) / (P R), x the least dimension."""
        smallest = np.minimum(np.minimum(tokens, width), self.net.hidden)
        half_width = self.rates.half_width * peak / self.rates.wide_peak
        seconds: Column = 2 * products * (1 + half_width / smallest) / (peak * self.rates.reach)
        return seconds

    def time_attention(self, block: Block) -> Column:
        """Seconds forward of products of positions with each other."""
        pairs, rates, heads = self.tokens * self.training.length, self.rates, max(self.net.heads)
        flops = block.scores * pairs / np.minimum(self.layouts.tensor, heads)
        if self.training.fused_attention:
            return CAUSAL * flops / (rates.wide_peak * rates.attention)
        aligned = block.scores / (4 * heads) % ALIGNED == 0
        return flops / (rates.wide_peak * rates.reach if aligned else rates.vector_peak)

    def compute_again(self, forward: Iterable[tuple[int, Column]]) -> Column:
        """Seconds of what the layout computes again."""
        return add(np.where(self.layouts.recompute & modules, each, 0) for modules, each in forward)

    def time_logits(self) -> Column:
        """Seconds of the last matrix, forward and backward."""
        if not self.net.vocabulary:
            return np.zeros(len(self.layouts))
        width = pad_vocabulary(self.net, self.layouts) / self.layouts.tensor
        products = self.tokens * self.net.hidden * width
        return (1 + BACKWARD) * self.multiply(products, self.tokens, width, self.rates.wide_peak)

    def wait_for_launches(self, counts: Column, device: Column) -> Column:
        """Seconds that launches add to a micro-batch, as in docs/machine.md, Launches."""
        host = sum_kinds(counts, (self.launch(block) for block in self.net.kinds))
        seconds: Column = (device**4 + host**4) ** 0.25 - device
        return seconds

    def launch(self, block: Block) -> Column:
        """Seconds in which the host launches a block, and the kernels of a PE's experts."""
        routed = any(weights.is_routed for weights in block.weights)
        experts = routed * sum(self.net.experts) / self.layouts.expert
        seconds: Column = (
            self.rates.launch * len(block.tensors) + self.rates.expert_launch * experts
        )
        return seconds

    def update(self, held: Parameters, a_pass: Column) -> Terms:
        """Seconds of gradients and weights that passes do not hide, and of the optimizer.

        Without ZeRO 3 the last backward pass hides gradients, and the first forward pass weights;
        with it all passes do.
        """
        layouts, recipe, rates = self.layouts, self.training.recipe, self.rates
        gradients, weights = self.exchanges.exchange_states(held)
        always = layouts.zero == 3
        passes = np.where(always, self.training.count_micro_batches(layouts), 1) * a_pass
        beside_gradients = BACKWARD / (1 + BACKWARD) * passes
        beside_weights = np.where(always, passes, passes / (1 + BACKWARD))
        shards = (np.where(layouts.zero > 0, n, 1) for n in (layouts.shards, layouts.expert_shards))
        updated = add(each / n for each, n in zip(held, shards, strict=True))
        moved = recipe.gradients + 2 * recipe.states + recipe.weights
        return {
            "gradient_exchange": np.maximum(
                gradients - rates.hidden_gradients * beside_gradients, 0
            ),
            "weight_gather": np.maximum(weights - rates.hidden_weights * beside_weights, 0),
            "optimizer": updated * moved / rates.bandwidth,
        }


ATTENTION = RECOMPUTE["core_attn"] | RECOMPUTE["blocks"] | RECOMPUTE["full"]


def sum_kinds(counts: Column, of_kinds: Iterable[Column | float]) -> Column:
    """The sum over a stage's blocks [layouts], of a number of each kind."""
    return add(n * each for n, each in zip(counts, of_kinds, strict=True))


def add(columns: Iterable[Column]) -> Column:
    """The sum of columns [layouts]."""
    total: Column = np.sum([*columns], axis=0)
    return total


def count_recomputed_flops(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """FLOPs of an iteration that each layout computes again [layouts]: all pairs of positions."""
    bits = layouts.recompute
    of_token = np.zeros(len(layouts))
    for kind, count in Counter(net.order).items():
        block = net.kinds[kind]
        for weights in block.weights:
            again = (bits & weights.modules) > 0
            of_token += count * 2 * weights.matrix * weights.used * again
        of_token += count * block.scores * training.length * ((bits & ATTENTION) > 0)
    return training.batch * training.length * of_token


def count_model_flops(net: Transformer, training: Training) -> float:
    """FLOPs of an iteration, whatever is computed again: Korthikanti et al. 2022, equation 7.

    All pairs of positions count, and logits; of experts those that a token uses.
    """
    of_kinds = [
        2 * sum(weights.matrix * weights.used for weights in block.weights)
        + block.scores * training.length
        for block in net.kinds
    ]
    of_token = sum(of_kinds[kind] for kind in net.order) + 2 * net.hidden * net.vocabulary
    return (1 + BACKWARD) * training.batch * training.length * of_token
