"""Seconds of an iteration of a transformer, by layout and by term, on its slowest stage.

Narayanan et al. 2021 (SC21), sections 2.2 and 3.2: FLOPs, pipelines, tensor parallelism. Korthikanti
et al. 2022: sequence parallelism, recomputation. Liu et al. 2023: the ring of a context. Lepikhin et
al. 2020 (GShard): experts. Rajbhandari et al. 2020 (ZeRO): gradients and weights. Rings, their
paths and collectives are those of the machine oracle. Symbols as in docs/transformers.md: u tokens
of a micro-batch on a PE, m micro-batches, degrees t, c, e, p, d, v chunks a stage.
"""

from dataclasses import dataclass

import numpy as np

from kernels.layouts.memory import hold_parameters, measure_blocks, sum_tensors
from kernels.layouts.parameters import pad_vocabulary
from kernels.layouts.schedules import count_stage_blocks, find_ends
from kernels.layouts.transformer import (
    RECOMPUTE,
    Block,
    Column,
    Layouts,
    Training,
    Transformer,
    Weights,
)
from kernels.machine.library_collectives import Costs, gather_costs, reduce_costs, time_fastest
from kernels.machine.network import Network
from kernels.machine.rings import Ring, count_in_node, find_path
from kernels.namespace import use_numpy

TERMS = (
    *("products", "attention", "elementwise", "logits", "recomputation"),
    *("tensor_exchange", "context_exchange", "expert_exchange", "stage_exchange"),
    *("pipeline_bubble", "gradient_exchange", "weight_gather", "optimizer"),
)
BACKWARD = 2.0  # FLOPs of a backward pass over those of a forward pass
FUSED_BACKWARD = 2.5  # of fused attention, which computes its scores again (Dao et al. 2022)


@dataclass(frozen=True)
class Rates:
    """What kernels and overlaps reach.

    peak [FLOP/s], bandwidth [B/s] of a PE. reach: of the peak, by products whose every dimension is
    large; half_width: the smallest dimension with which they reach half of that. attention: of the
    peak. passes: times that what the backward pass reads crosses the memory. rail: of a link's
    bandwidth. hidden_gradients, hidden_weights: of the time of the passes beside which gradients
    are reduced, and weights gathered. hidden_tensor: of exchanges over tensor behind the products
    beside them. causal: of all pairs of positions that attention computes.
    """

    peak: float
    bandwidth: float
    reach: float
    half_width: float
    attention: float
    passes: float
    rail: float
    hidden_gradients: float
    hidden_weights: float
    hidden_tensor: float = 0.0
    causal: float = 0.5


def time_iteration(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, network: Network
) -> dict[str, Column]:
    """Seconds of an iteration by TERMS [layouts], of the stage that takes longest."""
    with use_numpy():
        timing = _Timing(net, layouts, training, rates, network)
        slowest: dict[str, Column] = {}
        for stage in range(layouts.pipeline.max(initial=0)):
            terms = timing.time_stage(stage)
            if not slowest:
                slowest = terms
                continue
            total, most = sum(terms.values()), sum(slowest.values())
            longer = (layouts.pipeline > stage) & (total > most)
            slowest = {name: np.where(longer, terms[name], slowest[name]) for name in TERMS}
    return slowest


class _Timing:
    """An iteration of some layouts: what blocks take, and what stages make of it."""

    def __init__(
        self,
        net: Transformer,
        layouts: Layouts,
        training: Training,
        rates: Rates,
        network: Network,
    ) -> None:
        self.net, self.layouts, self.training = net, layouts, training
        self.rates, self.network = rates, network
        self.tokens = training.count_tokens(layouts)
        self.micro_batches = training.count_micro_batches(layouts)
        self.held = measure_blocks(net, layouts, training)
        self.blocks = [self.time_block(block) for block in net.kinds]

    def time_stage(self, stage: int) -> dict[str, Column]:
        """Seconds of an iteration by TERMS [layouts], as this stage has them."""
        layouts, m = self.layouts, self.micro_batches
        counts = count_stage_blocks(self.net, layouts, self.training, stage)
        first, last = find_ends(layouts, self.training, stage)
        passing = {
            name: sum(count * block[name] for count, block in zip(counts, self.blocks, strict=True))
            for name in self.blocks[0]
        }
        passing["logits"] = last * self.time_logits()
        terms = {name: m * np.asarray(seconds, float) for name, seconds in passing.items()}
        a_pass = sum(passing.values())
        terms["pipeline_bubble"] = (layouts.pipeline - 1) / layouts.chunks * a_pass
        terms["stage_exchange"] = self.time_stage_exchange()
        terms |= self.time_updates(counts, first, last, a_pass)
        return {name: terms[name] + np.zeros(len(layouts)) for name in TERMS}

    def time_block(self, block: Block) -> dict[str, Column]:
        """Seconds of a micro-batch, forward and backward, by term [layouts]."""
        products, again = np.zeros(len(self.layouts)), np.zeros(len(self.layouts))
        for weights in block.weights:
            seconds = self.time_product(weights)
            products += (1 + BACKWARD) * seconds
            again += np.where((self.layouts.recompute & weights.modules) > 0, seconds, 0)
        attention, attention_again = self.time_attention(block)
        read = sum(sum_tensors(block.tensors, self.layouts, self.training))
        tensor, tensor_again = self.time_tensor(block)
        hidden = self.rates.hidden_tensor * products
        return {
            "products": products,
            "attention": attention,
            "elementwise": self.rates.passes * read / self.rates.bandwidth,
            "recomputation": again + attention_again,
            "tensor_exchange": np.maximum(tensor - hidden, 0) + tensor_again,
            "context_exchange": self.time_context(attention),
            "expert_exchange": self.time_experts(block),
        }

    def time_product(self, weights: Weights) -> Column:
        """Seconds forward: FLOPs (1 + x0/x) / (P e), x the smallest dimension of a PE's own part."""
        layouts, u = self.layouts, self.tokens
        t, h = layouts.tensor, self.net.hidden
        if not weights.used:
            return np.zeros(len(layouts))
        parts = np.minimum(layouts.etp if weights.is_routed else t, max(weights.parts, 1))
        shared = t if weights.is_routed else parts
        flops = 2 * u * weights.matrix * weights.used / shared
        experts = self.net.experts[0] if weights.is_routed else 1
        tokens = u * weights.used * layouts.etp * layouts.expert / t if weights.is_routed else u
        width = weights.matrix / h / experts / parts
        smallest = np.minimum(np.minimum(tokens, width), h)
        widened = 1 + self.rates.half_width / smallest
        seconds: Column = flops * widened / (self.rates.peak * self.rates.reach)
        return seconds

    def time_attention(self, block: Block) -> tuple[Column, Column]:
        """Seconds forward and backward, and of computing it again [layouts]."""
        fused = self.training.fused_attention
        heads = np.minimum(self.layouts.tensor, self.net.heads[0])
        pairs = self.tokens * self.training.length * (self.rates.causal if fused else 1.0)
        reached = self.rates.attention if fused else self.rates.reach
        forward = block.scores * pairs / heads / (self.rates.peak * reached)
        modules = RECOMPUTE["core_attn"] | RECOMPUTE["blocks"] | RECOMPUTE["full"]
        again = np.where((self.layouts.recompute & modules) > 0, forward, 0)
        return forward * (1 + (FUSED_BACKWARD if fused else BACKWARD)), again

    def time_logits(self) -> Column:
        """Seconds forward and backward of the last matrix."""
        width = pad_vocabulary(self.net, self.layouts) / self.layouts.tensor
        smallest = np.minimum(np.minimum(self.tokens, width), self.net.hidden)
        flops = 2 * self.tokens * self.net.hidden * width
        widened = 1 + self.rates.half_width / smallest
        seconds: Column = (1 + BACKWARD) * flops * widened / (self.rates.peak * self.rates.reach)
        return seconds

    def _time_gather(self, degree: Column, stride: Column, m: Column, messages: Column) -> Column:
        return self._time(gather_costs(self.network, self._ring(degree, stride), "auto"), m, messages)

    def _time_reduce(self, degree: Column, stride: Column, m: Column, messages: Column) -> Column:
        return self._time(reduce_costs(self.network, self._ring(degree, stride), "auto"), m, messages)

    def _time(self, costs: Costs, m: Column, messages: Column) -> Column:
        seconds: Column = time_fastest(costs, m / self.rates.rail, messages)
        return seconds

    def _ring(self, degree: Column, stride: Column) -> Ring:
        layouts = self.layouts
        pes = layouts.tensor * layouts.context * layouts.pipeline * layouts.data
        return Ring(np.asarray(degree, float), np.asarray(stride, float), np.asarray(pes, float))

    def time_tensor(self, block: Block) -> tuple[Column, Column]:
        """Seconds of a micro-batch's exchanges over tensor, and of those made again.

        A matrix divided by rows ends in an all-reduce forward, and the columns before it in one
        backward; with sequence parallelism each is a reduce-scatter and an all-gather, and one more
        gather backward, which is hidden.
        """
        rows = [w for w in block.weights if w.used and w.parts and not w.by_columns]
        count = sum(not w.is_routed for w in rows)
        m = self.tokens * self.net.hidden * self.training.recipe.item
        t, one = self.layouts.tensor, np.ones(len(self.layouts))
        reduced = self._time_reduce(t, one, m, one)
        gathered = 2 * self._time_gather(t, one, m, one)
        each = np.where(self.layouts.sequence > 0, gathered, reduced)
        whole = (self.layouts.recompute & (RECOMPUTE["blocks"] | RECOMPUTE["full"])) > 0
        return 2 * count * each, np.where(whole, count * each, 0)

    def time_context(self, attention: Column) -> Column:
        """Seconds of a micro-batch that attention does not hide."""
        layouts, c = self.layouts, self.layouts.context
        t, one = layouts.tensor, np.ones(len(layouts))
        item = self.training.recipe.item
        share = max(self.net.kv_heads) / max(self.net.heads)
        keys = 2 * self.tokens * share * self.net.hidden / t * item
        if self.training.context_by == "ring":
            path = find_path(self.network, self._ring(c, t))
            step = path.alpha + keys * path.beta / self.rates.rail
            exposed = np.maximum(3 * step - attention / c, 0)
            return np.where(c > 1, (c - 1) * exposed, 0)
        if self.training.context_by == "all_gather":
            return 3 * self._time_gather(c, t, c * keys, one)
        queries = 2 * self.tokens * self.net.hidden / t * item
        return 2 * self.time_all_to_all(c, t, 2 * (queries + keys) / 2, 2 * one)

    def time_experts(self, block: Block) -> Column:
        """Seconds of a micro-batch: dispatch and combine, forward and backward."""
        routed = next((w for w in block.weights if w.is_routed), None)
        if routed is None:
            return np.zeros(len(self.layouts))
        layouts, active = self.layouts, routed.used * self.net.experts[0]
        m = self.tokens * active * self.net.hidden * self.training.recipe.item
        one = np.ones(len(layouts))
        return 4 * self.time_all_to_all(layouts.expert, layouts.etp, m / layouts.tensor, one)

    def time_all_to_all(
        self, degree: Column, stride: Column, m: Column, messages: Column
    ) -> Column:
        """Seconds of all-to-alls of m bytes a PE, in two levels: inside nodes, and between them."""
        network = self.network
        ring = self._ring(degree, stride)
        q, h = ring.degree, count_in_node(network, ring)
        path, nodes = find_path(network, ring), np.ceil(ring.degree / h)
        inside = (h - 1) * (messages * network.latency[0] + m / q / network.bandwidth[0])
        link = network.pes_per_node / network.links_per_node * path.beta
        link = np.where(nodes > 1, np.maximum(path.beta, link), 0)
        between = (nodes - 1) * messages * path.alpha + (q - h) / q * m * link
        return np.where(q > 1, inside + between, 0) / self.rates.rail

    def time_stage_exchange(self) -> Column:
        """Seconds of an iteration: what fills and empties the pipeline, the rest is hidden."""
        layouts = self.layouts
        m = self.tokens * self.net.hidden * self.training.recipe.item / layouts.sigma
        stride = layouts.tensor * layouts.context * layouts.data
        path = find_path(self.network, self._ring(layouts.pipeline, stride))
        seconds: Column = (
            2 * (layouts.pipeline - 1) * (path.alpha + m * path.beta / self.rates.rail)
        )
        return seconds

    def time_updates(
        self, counts: Column, first: Column, last: Column, a_pass: Column
    ) -> dict[str, Column]:
        """Seconds of gradients, weights and the optimizer, beyond what passes hide."""
        layouts, recipe, m = self.layouts, self.training.recipe, self.micro_batches
        held = hold_parameters(self.net, layouts, self.held, counts, first, last)
        t, c, d = layouts.tensor, layouts.context, layouts.data
        parts = layouts.pipeline * layouts.chunks
        gradients, weights = np.zeros(len(layouts)), np.zeros(len(layouts))
        rings = (
            (held.dense, d * c, t),
            (held.experts, t * c * d / (layouts.etp * layouts.expert), layouts.etp * layouts.expert),
        )
        for number, degree, stride in rings:
            messages = np.ones(len(layouts))
            reduced = self._time_reduce(degree, stride, recipe.gradients * number, messages)
            scattered = self._time_gather(degree, stride, recipe.gradients * number, messages)
            gathered = self._time_gather(degree, stride, recipe.weights * number, messages)
            gradients += np.where(layouts.zero == 0, reduced, scattered)
            gradients *= np.where(layouts.zero == 3, m, 1)
            weights += np.where(layouts.zero == 0, 0, gathered)
            weights *= np.where(layouts.zero == 3, 2 * m, 1)
        # Of all micro-batches' passes with ZeRO 3, else of one: the last backward, the first forward.
        passes = np.where(layouts.zero == 3, m, 1) * a_pass
        backward, forward = (BACKWARD / (1 + BACKWARD)) * passes, passes / (1 + BACKWARD)
        forward = np.where(layouts.zero == 3, passes, forward)
        shards = np.where(layouts.zero > 0, layouts.shards, 1)
        own = held.dense / shards + held.experts / np.where(layouts.zero > 0, np.maximum(layouts.expert_shards, 1), 1)
        moved = recipe.gradients + 2 * recipe.states + recipe.weights
        return {
            "gradient_exchange": np.maximum(gradients - self.rates.hidden_gradients * backward, 0),
            "weight_gather": np.maximum(weights - self.rates.hidden_weights * forward, 0),
            "optimizer": own * moved / self.rates.bandwidth,
        }
