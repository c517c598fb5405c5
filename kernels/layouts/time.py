"""Seconds of an iteration of a transformer, by layout and by term.

Narayanan et al. 2021 (SC21), section 2.2: FLOPs and pipelines. Korthikanti et al. 2022: what is
computed again. Dao et al. 2022: fused attention. Formulas: docs/transformers.md, Time. Symbols: u
tokens of a micro-batch on a PE, m micro-batches; degrees t, c, e, p, d; v chunks a stage.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from kernels.layouts.columns import Column, add, keep_largest, sum_kinds
from kernels.layouts.dimensions import DIMENSIONS
from kernels.layouts.memory import hold_parameters, measure_tensor
from kernels.layouts.parameters import Parameters, count_block, pad_vocabulary
from kernels.layouts.rates import BACKWARD, Rates
from kernels.layouts.replicas import count_updated
from kernels.layouts.schedules import Stage, count_bubbles, list_stages
from kernels.layouts.transfers import Transfers
from kernels.layouts.transformer import (
    RECOMPUTE,
    Block,
    Layouts,
    Tensor,
    Training,
    Transformer,
    Weights,
)
from kernels.machine.network import Network
from kernels.names.layout_terms import LAYOUT_TERMS
from kernels.namespace import use_numpy

COMPUTING = ("products", "attention", "elementwise", "logits", "recomputation")
TERMS = tuple(LAYOUT_TERMS)
FUSED_BACKWARD = 2.5  # as BACKWARD: fused attention computes its scores again
CAUSAL = 0.5  # of all pairs of positions, which fused kernels leave out
# Features of a head whose products with a score take as long as its exponential: an A100's units
# multiply and add 1,024 pairs and take 16 exponentials a clock, and a score has 4 FLOPs a feature
# (NVIDIA A100 white paper; CUDA C++ Programming Guide, arithmetic instructions).
EXPONENTIALS = 32
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
        iteration = IterationTimes(net, layouts, training, rates, network)
        terms = keep_largest(iteration.time_stages(), layouts.shape)
    return dict(zip(TERMS, terms, strict=True))


def time_exchanges(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, network: Network
) -> Terms:
    """Seconds of an iteration's communication by term [layouts], whether or not computing hides it,
    on the stage that takes longest."""
    with use_numpy():
        iteration = IterationTimes(net, layouts, training, rates, network)
        totals = [iteration.total_exchanges(stage) for stage in iteration.stages]
        answers = (
            ([*total.values()], seconds)
            for total, (_, seconds) in zip(totals, iteration.time_stages(), strict=True)
        )
        return dict(zip(totals[0], keep_largest(answers, layouts.shape), strict=True))


class IterationTimes:
    """Seconds of blocks for a micro-batch, and of stages for an iteration; to be asked for in numpy
    (`kernels.namespace`)."""

    def __init__(
        self, net: Transformer, layouts: Layouts, training: Training, rates: Rates, network: Network
    ) -> None:
        rates = rates.select(layouts.machine)
        self.net, self.layouts, self.training, self.rates = net, layouts, training, rates
        transfers = Transfers(network, layouts.pes, rates.rail, layouts.machine)
        self.dimensions = [kind(net, layouts, training, rates, transfers) for kind in DIMENSIONS]
        self.tokens = training.count_tokens(layouts)
        recipe = training.recipe
        # Between products tensors have 16 bits, whatever products read.
        self.wide = replace(training, recipe=recipe._replace(read=recipe.item))
        self.held = [count_block(block, layouts) for block in net.kinds]
        self.blocks = [self.time_block(block) for block in net.kinds]
        self.logits = self.time_logits()
        self.stages = list_stages(net, layouts, training)

    def time_stages(self) -> Iterator[tuple[list[Column], Column]]:
        """Seconds of an iteration if each stage is the slowest: by TERMS, and their sum."""
        return map(self.time_stage, self.stages)

    def time_stage(self, stage: Stage) -> tuple[list[Column], Column]:
        """Seconds of an iteration by TERMS, if this stage is the slowest; and their sum."""
        layouts, m = self.layouts, self.training.count_micro_batches(self.layouts)
        blocks = {
            name: sum_kinds(stage.counts, (block[name] for block in self.blocks))
            for name in self.blocks[0]
        }
        blocks["logits"] = stage.last * self.logits
        computed = add(blocks[name] for name in COMPUTING)
        blocks["launch_wait"] = self.wait_for_launches(stage.counts, computed)
        passes = {name: blocks[name] for name in TERMS if name in blocks}
        both_ways = add(passes.values())
        held = hold_parameters(self.net, layouts, self.held, stage)
        terms = {
            **{name: m * seconds for name, seconds in passes.items()},
            # While a pipeline fills and empties, others wait for passes of this stage.
            "pipeline_bubble": count_bubbles(layouts, self.training) * both_ways,
            **self.exchange_iteration(held, both_ways),
            "optimizer": self.update(held),
        }
        # A straggler is late for exchanges, too.
        busy = add(terms.values())
        lost = self.rates.straggling * np.log2(layouts.pes)
        terms["waiting"] = self.rates.pause + lost * busy
        return [terms[name] for name in TERMS], busy + terms["waiting"]

    def time_block(self, block: Block) -> Terms:
        """Seconds of a micro-batch, forward and backward, by term."""
        products, attention = self.time_products(block.weights), self.time_attention(block)
        backward = FUSED_BACKWARD if self.training.fused_attention else BACKWARD
        return {
            "products": (1 + BACKWARD) * add(seconds for _, seconds in products),
            "attention": (1 + backward) * attention,
            "elementwise": self.move_tensors(block.tensors),
            "recomputation": self.compute_again([*products, (ATTENTION, attention)]),
            **self.exchange_block(block, (1 + backward) * attention),
        }

    def exchange_block(self, block: Block, attention: Column | None) -> Terms:
        """Seconds of exchanges of a micro-batch, as far as attention does not hide them."""
        exchanged: Terms = {}
        for dimension in self.dimensions:
            exchanged |= dimension.exchange_block(block, attention)
        return exchanged

    def exchange_iteration(self, held: Parameters, passes: Column | None) -> Terms:
        """Seconds of exchanges of an iteration, as far as passes do not hide them."""
        exchanged: Terms = {}
        for dimension in self.dimensions:
            exchanged |= dimension.exchange_iteration(held, passes)
        return exchanged

    def total_exchanges(self, stage: Stage) -> Terms:
        """Seconds of exchanges of an iteration by term, whether or not computing hides them."""
        blocks = [self.exchange_block(block, None) for block in self.net.kinds]
        m = self.training.count_micro_batches(self.layouts)
        held = hold_parameters(self.net, self.layouts, self.held, stage)
        return {
            **{
                name: m * sum_kinds(stage.counts, (block[name] for block in blocks))
                for name in blocks[0]
            },
            **self.exchange_iteration(held, None),
        }

    def move_tensors(self, tensors: Iterable[Tensor]) -> Column:
        """Seconds in which what the backward pass reads crosses the memory, forward again where it
        is computed again, and inputs of a byte, and their gradients, are cast from 16 bits."""
        recipe, total = self.training.recipe, np.zeros(1)
        for tensor in tensors:
            again = (self.layouts.recompute & tensor.modules) > 0
            size = measure_tensor(tensor, self.layouts, self.wide)
            passes = self.rates.score_passes if tensor.size == "scores" else self.rates.passes
            total = total + passes * (1 + FORWARD * again) * size
            if tensor.size in ("read", "context") and recipe.read < recipe.item:
                total = total + 2 * (1 + 2 * recipe.read / recipe.item) * size
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
            of_expert = width / sum(self.net.experts) / layouts.etp
            products = self.tokens * weights.matrix * weights.used / t
            return self.multiply(products, tokens, of_expert, self.rates.peak)
        parts = np.minimum(t, weights.parts) if weights.parts else np.ones_like(t)
        products = self.tokens * weights.matrix * weights.used
        return self.multiply(products / parts, tokens, width / parts, self.rates.peak)

    def multiply(self, products: Column, tokens: Column, width: Column, peak: float) -> Column:
        """Seconds of n multiply-accumulates: 2 n (1 + x0/x) / (P R), x the least dimension."""
        smallest = np.minimum(np.minimum(tokens, width), self.net.hidden)
        # At twice the peak a product waits for the memory up to twice the width.
        half_width = self.rates.half_width * peak / self.rates.wide_peak
        seconds: Column = 2 * products * (1 + half_width / smallest) / (peak * self.rates.reach)
        return seconds

    def time_attention(self, block: Block) -> Column:
        """Seconds forward of products of positions with each other."""
        pairs, rates, heads = self.tokens * self.training.length, self.rates, max(self.net.heads)
        flops, head = (
            block.scores * pairs / np.minimum(self.layouts.tensor, heads),
            block.scores / (4 * heads),
        )
        if self.training.fused_attention:
            return CAUSAL * flops * (1 + EXPONENTIALS / head) / (rates.wide_peak * rates.attention)
        aligned = head % ALIGNED == 0
        return flops / (rates.wide_peak * rates.reach if aligned else rates.vector_peak)

    def compute_again(self, forward: Iterable[tuple[int, Column]]) -> Column:
        """Seconds of what the layout computes again."""
        bits = self.layouts.recompute
        return add(np.where(bits & modules, seconds, 0) for modules, seconds in forward)

    def time_logits(self) -> Column:
        """Seconds of the last matrix, forward and backward."""
        if not self.net.vocabulary:
            return np.zeros(1)
        # In 16 bits even where blocks compute in 8: frameworks leave the last matrix as it is.
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

    def update(self, held: Parameters) -> Column:
        """Seconds of the optimizer."""
        recipe = self.training.recipe
        # It reads gradients, reads and writes states, and writes weights.
        moved = recipe.gradients + 2 * recipe.states + recipe.weights
        return count_updated(held, self.layouts) * moved / self.rates.bandwidth


ATTENTION = RECOMPUTE["core_attn"] | RECOMPUTE["blocks"] | RECOMPUTE["full"]


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
