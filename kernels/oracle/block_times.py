"""Seconds per iteration of a transformer, by layout and term.

Narayanan et al. 2021 (SC21), section 2.2: FLOPs and pipelines. Korthikanti et al. 2022:
recomputation. Dao et al. 2022: fused attention. Formulas: docs/transformers.md, Time. Symbols:
docs/machine.md.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from paradl.kernels.arrays import use_numpy
from paradl.kernels.columns import Column, add, find_most, keep_largest, sum_kinds
from paradl.kernels.machine.rates import BACKWARD, Rate, Rates
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.names.layout_terms import LAYOUT_TERMS, VOLUMES
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.parallelism.divided_blocks import Computing, DividedBlocks
from paradl.kernels.parallelism.layout import OF_BLOCKS
from paradl.kernels.parallelism.transfers import Transfers, Volumes
from paradl.kernels.work.block_memory import (
    count_updated,
    hold_parameters,
    measure_activations,
    measure_blocks,
    measure_tensor,
)
from paradl.kernels.work.compute import wait_for_launches
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import Stage, list_stages, share_bubble
from paradl.kernels.work.transformer import (
    AttentionProducts,
    Block,
    Held,
    Parameters,
    Tensor,
    Training,
    Transformer,
    Weights,
    count_blocks,
    count_weights,
    pad_vocabulary,
)

COMPUTING = ("products", "attention", "elementwise", "logits", "recomputation")
TERMS = tuple(LAYOUT_TERMS)
FUSED_BACKWARD = 2.5  # as BACKWARD: fused attention recomputes its scores
# Positions of a tile of fused attention: a sequence in pieces has more tiles that are not full, or
# lie across the diagonal (assumption: the 128 queries of FlashAttention-2, Dao 2023).
TILE = 128
# Features per head at which the products of a score take as long as its exponential: an A100's SM
# does 1,024 multiply-adds and 16 exponentials per clock; a score needs 4 FLOPs per feature
# (NVIDIA A100 white paper; CUDA C++ Programming Guide, arithmetic instructions).
EXPONENTIALS = 32
SUM = 4.0  # bytes of a partial sum, which tensor cores keep in fp32
# Share of the forward pass in the memory traffic of a kept tensor: two of five accesses.
FORWARD = 0.4
# Tensor cores need rows of a multiple of 16 bytes; other matrices run without them.
# NVIDIA, "Matrix Multiplication Background User's Guide".
ALIGNED = 8

Terms = dict[str, Column]


def time_iteration(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, fabric: Fabric
) -> Terms:
    """Seconds per iteration by TERMS [layouts], of the slowest stage."""
    with use_numpy():
        iteration = IterationTimes.from_layouts(net, layouts, training, rates, fabric)
        terms = iteration.keep_slowest()
    return {name: np.broadcast_to(term, layouts.shape) for name, term in terms.items()}


def time_exchanges(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, fabric: Fabric
) -> Terms:
    """Seconds of communication per iteration by term [layouts], exposed and hidden, of the slowest
    stage."""
    with use_numpy():
        iteration = IterationTimes.from_layouts(net, layouts, training, rates, fabric)
        totals = [iteration.total_exchanges(stage) for stage in iteration.stages]
        answers = (
            ([*total.values()], seconds)
            for total, (_, seconds) in zip(totals, iteration.time_stages(), strict=True)
        )
        kept = dict(zip(totals[0], keep_largest(answers), strict=True))
    return {name: np.broadcast_to(seconds, layouts.shape) for name, seconds in kept.items()}


def count_bytes(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, fabric: Fabric
) -> Terms:
    """Bytes of a PE's collectives per iteration by kind [layouts], of the stage with most.

    Of an all-gather and a reduce-scatter: of the whole tensor. Sends of stages are not counted.
    """
    stages, sent = list_stages(net, layouts, training), Terms()
    with use_numpy():
        for kind in VOLUMES[:-1] if np.any(layouts.pipeline > 1) else VOLUMES:
            transfers = Volumes(fabric, layouts.pes, kind=kind)
            times = IterationTimes(DividedBlocks(net, layouts, training, rates, transfers), stages)
            totals = map(times.total_exchanges, stages)
            sizes = (add(v for k, v in total.items() if k != "stage_exchange") for total in totals)
            sent[kind] = find_most(sizes)
    return sent


class IterationTimes:
    """Seconds of blocks per micro-batch and of stages per iteration. Use inside
    `kernels.arrays.use_numpy`."""

    def __init__(self, divided: DividedBlocks, stages: Sequence[Stage]) -> None:
        net, layouts, training = divided.net, divided.layouts, divided.training
        self.net, self.layouts, self.training, self.rates = net, layouts, training, divided.rates
        self.divided, self.stages = divided, stages
        self.parts = [(part, part.cost_exchanges(divided)) for part in OF_BLOCKS]
        self.tokens = training.count_tokens(layouts)
        recipe = training.recipe
        # Tensors between products have 16 bits, whatever the products read.
        self.wide = replace(training, recipe=recipe._replace(read=recipe.item))
        self.held = count_blocks(net, layouts, training)
        self.blocks = [self.time_block(block) for block in net.kinds]
        self.logits = self.time_logits()

    @classmethod
    def from_layouts(
        cls, net: Transformer, layouts: Layouts, training: Training, rates: Rates, fabric: Fabric
    ) -> "IterationTimes":
        """Return the times of a list, or a product, of layouts."""
        transfers = Transfers.from_layouts(fabric, layouts)
        divided = DividedBlocks(net, layouts, training, rates, transfers)
        return cls(divided, list_stages(net, layouts, training))

    def keep_slowest(self) -> Terms:
        """Return seconds per iteration by TERMS, of the slowest stage."""
        return dict(zip(TERMS, keep_largest(self.time_stages()), strict=True))

    def time_stages(self) -> Iterator[tuple[list[Column], Column]]:
        """Yield seconds per iteration for each stage as the slowest: by TERMS, and their sum."""
        return map(self.time_stage, self.stages)

    def time_stage(self, stage: Stage) -> tuple[list[Column], Column]:
        """Seconds per iteration if this stage is the slowest: by TERMS, and their sum."""
        layouts, training = self.layouts, self.training
        flushes, count = training.count_flushes(layouts), training.count_passes(layouts)
        blocks = {
            name: sum_kinds(stage.counts, (block[name] for block in self.blocks))
            for name in self.blocks[0]
        }
        blocks["logits"] = stage.last * self.logits
        # With what compute does not hide of exchanges: without them, a faster device slowed
        # micro-batches that wait for launches by up to 1.6 %.
        device = add(blocks.values())
        host = sum_kinds(stage.counts, (self.launch(block) for block in self.net.kinds))
        # Each further chunk of a stage receives a message.
        host = host + self.rates.launch * (layouts.chunks - 1)
        stops = self.rates.checkpoint_wait * add(stage.counts)
        blocks["launch_wait"] = np.asarray(wait_for_launches(device, host)) + stops
        passes = {name: blocks[name] for name in TERMS if name in blocks}
        both_ways = add(passes.values())
        held = hold_parameters(self.net, layouts, self.held, stage)
        idle = share_bubble(training.schedule, layouts.chunks) * (layouts.pipeline - 1)
        terms = {
            **{name: count * seconds for name, seconds in passes.items()},
            # While the pipeline fills and drains, other stages wait for this one.
            "pipeline_bubble": flushes * idle * both_ways,
            **self.exchange_iteration(stage, held, both_ways),
            "optimizer": self.update(held.trained),
            "host_transfer": self.move_to_host(stage, held.trained, both_ways),
        }
        # Stragglers delay exchanges as well.
        busy = add(terms.values())
        lost = self.rates.straggling * np.log2(layouts.pes)
        terms["waiting"] = self.rates.pause + lost * busy
        return [terms[name] for name in TERMS], busy + terms["waiting"]

    def time_block(self, block: Block) -> Terms:
        """Seconds of a block per micro-batch, forward and backward, by term."""
        # Bits of the modules that recompute a product, and its forward seconds.
        used = [w for w in block.weights if w.used]
        products = [(w.modules, self.time_product(w)) for w in used]
        attentions = [(one.returns, self.time_attention(one)) for one in block.attentions]
        both = 1 + (FUSED_BACKWARD if self.training.fused_attention else BACKWARD)
        again = [*products, *((ATTENTION * returns, seconds) for returns, seconds in attentions)]
        bits = self.layouts.recompute
        hiding = [both * seconds if returns else seconds for returns, seconds in attentions]
        terms = {
            "products": (1 + BACKWARD)
            * add(w.share * seconds for w, (_, seconds) in zip(used, products, strict=True)),
            "attention": add([np.zeros(1), *hiding]),
            "elementwise": self.move_tensors(block.tensors),
            "recomputation": add(np.where(bits & modules, s, 0) for modules, s in again),
        }
        computing = Computing(hiding, terms["products"], add(terms.values()))
        return {**terms, **self.exchange_block(block, computing)}

    def exchange_block(self, block: Block, hiding: Computing | None) -> Terms:
        """Exposed seconds of a block's exchanges per micro-batch; hiding None: nothing hides."""
        each = (
            part.exchange_block(self.divided, costs, block, hiding) for part, costs in self.parts
        )
        return {name: seconds for exchanged in each for name, seconds in exchanged.items()}

    def exchange_iteration(self, stage: Stage, held: Held, passes: Column | None) -> Terms:
        """Exposed seconds of exchanges per iteration."""
        each = (
            part.exchange_iteration(self.divided, costs, stage, held, passes)
            for part, costs in self.parts
        )
        return {name: seconds for exchanged in each for name, seconds in exchanged.items()}

    def total_exchanges(self, stage: Stage) -> Terms:
        """Seconds of exchanges per iteration by term, exposed and hidden."""
        blocks = [self.exchange_block(block, None) for block in self.net.kinds]
        m = self.training.count_passes(self.layouts)
        held = hold_parameters(self.net, self.layouts, self.held, stage)
        return {
            **{
                name: m * sum_kinds(stage.counts, (block[name] for block in blocks))
                for name in blocks[0]
            },
            **self.exchange_iteration(stage, held, None),
        }

    def move_tensors(self, tensors: Iterable[Tensor]) -> Column:
        """Seconds of memory traffic of kept activations: written and read, once more where they are
        recomputed; with 8-bit inputs, casts of these and of their gradients from 16 bits."""
        recipe, total = self.training.recipe, np.zeros(1)
        for tensor in tensors:
            again = (self.layouts.recompute & tensor.modules) > 0
            size = measure_tensor(tensor, self.layouts, self.wide)
            passes = self.rates.score_passes if tensor.size == "scores" else self.rates.passes
            total = total + passes * (tensor.moved + FORWARD * again) * size
            if tensor.size in ("read", "context") and recipe.read < recipe.item:
                total = total + 2 * (1 + 2 * recipe.read / recipe.item) * size
        return total / self.rates.bandwidth

    def time_product(self, weights: Weights) -> Column:
        """Forward seconds of a matrix product, of 4 or 8 bits with making 16 of them first."""
        if weights.stored:
            items = count_weights(weights._replace(biases=0.0), self.layouts)
            moved = items * (weights.stored + self.training.recipe.item)
            return self.time_product(weights._replace(stored=0.0)) + moved / self.rates.bandwidth
        layouts, t, h = self.layouts, self.layouts.tensor, weights.rank or self.net.hidden
        width, tokens = weights.matrix / h, self.tokens * weights.used
        peak, read = self.rates.peak, self.training.recipe.read
        if weights.is_routed:
            # An expert gets tokens from all PEs of its group.
            tokens = tokens * layouts.etp * layouts.expert / t
            parts = 1 if weights.rank and not weights.parts else layouts.etp
            of_expert, held = width / weights.experts / parts, weights.experts / layouts.expert
            return held * self.multiply(tokens, of_expert, peak, read, h)
        if not weights.parts:  # a whole matrix: sequence parallelism divides the tokens instead
            return self.multiply(tokens / layouts.sigma, width, peak, read, h)
        return self.multiply(tokens, width / np.minimum(t, weights.parts), peak, read, h)

    def multiply(self, tokens: Column, width: Rate, peak: Rate, read: float, h: int) -> Column:
        """Forward seconds of a product of u tokens with w columns or rows of h features.

        2 u w h/(P R) + [d (u w + u h + w h) + 4 k u sqrt(w h)]/BW: d the mean bytes of an item, k
        `product_moves` of partial sums. Affine in u; the peak is reached where w and h are large.
        read: bytes of an item that the product reads.
        """
        rates = self.rates
        # Each matrix is read by two of the three products of a step, and written by the third.
        item = (2 * read + self.training.recipe.item) / 3
        moving = item / rates.bandwidth
        sums = SUM * rates.product_moves * np.sqrt(width * h) / rates.bandwidth
        of_token = 2 * width * h / (peak * rates.reach) + moving * (width + h) + sums
        seconds: Column = tokens * of_token + moving * (width * h)
        return seconds

    def time_attention(self, attention: AttentionProducts) -> Column:
        """Forward seconds of the products of an attention."""
        rates, fused, width = self.rates, self.training.fused_attention, attention.width
        # Unfused, a mask hides other documents, whose scores are computed.
        length = self.training.document if fused else 0
        length = length or self.training.length
        keys = attention.count_keys(length, skips_later=fused)
        parts = np.minimum(self.layouts.tensor, attention.heads)
        flops = attention.flops * self.tokens * keys / parts
        if fused:
            # Pieces of a context, two per rank, slow it, and so do those of documents.
            c, divides = self.layouts.context, self.training.context_by != "all_to_all"
            pieces = np.where(divides & (c > 1), 2 * c, 1)  # all-to-alls divide heads instead
            pieces = pieces * self.training.length / length
            tiles = 1 + TILE * (pieces - 1) / self.training.length
            slower = (1 + EXPONENTIALS / width) * tiles
            return flops * slower / (rates.wide_peak * rates.attention)
        aligned = width % ALIGNED == 0
        return flops / (rates.wide_peak * rates.reach if aligned else rates.vector_peak)

    def time_logits(self) -> Column:
        """Seconds of the output layer, forward and backward."""
        if not self.net.vocabulary:
            return np.zeros(1)
        # In 16 bits even if blocks compute in 8: frameworks leave the output layer as it is.
        width = pad_vocabulary(self.net, self.layouts) / self.layouts.tensor
        by = self.rates.wide_peak, self.training.recipe.item, self.net.hidden
        return (1 + BACKWARD) * self.net.scored * self.multiply(self.tokens, width, *by)

    def launch(self, block: Block) -> Column:
        """Host seconds to launch a block, and each expert of a PE."""
        layers: Column = np.array(len(block.tensors))
        if self.training.context_by == "ring":  # each step launches a kernel and a message
            layers = layers + 2 * (self.layouts.context - 1) * len(block.attentions)
        routed = max((weights.experts for weights in block.weights), default=0)
        experts = routed / self.layouts.expert
        seconds: Column = self.rates.launch * layers + self.rates.expert_launch * experts
        return seconds

    def update(self, held: Parameters) -> Column:
        """Seconds of the optimizer."""
        recipe = self.training.recipe
        # It reads gradients, reads and writes states, and writes weights.
        moved = recipe.gradients + 2 * recipe.states + recipe.weights
        bandwidth = self.rates.bandwidth if self.training.keeps_states else self.rates.host
        return count_updated(held, self.layouts) * moved / bandwidth

    def move_to_host(self, stage: Stage, held: Parameters, both_ways: Column) -> Column:
        """Exposed seconds per iteration of moving gradients to hosts, beside the last backward pass
        (Ren et al. 2021, ZeRO-Offload, section 4), and activations there and back, beside passes.
        """
        layouts, training, host = self.layouts, self.training, self.rates.host
        sent, kept = np.zeros(1), np.zeros(1)
        if training.keeps_states and training.keeps_activations:
            return sent
        if not training.keeps_states:
            sent = training.recipe.gradients * count_updated(held, layouts) / host
        if not training.keeps_activations:
            blocks, once = measure_blocks(self.net, layouts, training), np.ones(1)
            kept = measure_activations(stage.counts, layouts, blocks, once)[0] / host
        forward = self.rates.hidden_host * both_ways / (1 + BACKWARD)
        there, back = np.maximum(kept - forward, 0), np.maximum(kept - BACKWARD * forward, 0)
        of_passes: Column = training.count_passes(layouts) * (there + back)
        return of_passes + np.maximum(sent - BACKWARD * forward, 0)


ATTENTION = RECOMPUTE["core_attn"] | RECOMPUTE["blocks"] | RECOMPUTE["full"]


def count_recomputed_flops(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """Recomputed FLOPs per iteration [layouts], over all pairs of positions."""
    bits = layouts.recompute
    of_token = np.zeros(len(layouts))
    for kind, count in Counter(net.order).items():
        block = net.kinds[kind]
        for weights in block.weights:
            again = (bits & weights.modules) > 0
            of_token += count * 2 * weights.matrix * weights.used * again
        scores = sum(flops * again.returns for again, flops in _count_scores(block, training))
        of_token += count * scores * ((bits & ATTENTION) > 0)
    return training.batch * training.length * of_token


def count_model_flops(net: Transformer, training: Training) -> float:
    """FLOPs per iteration without recomputation: Korthikanti et al. 2022, equation 7.

    Includes all pairs of positions inside windows, later ones too, logits, and the experts that
    each token uses; of frozen weights no gradients, and none before the first that is trained.
    """
    of_kinds = [
        2 * sum(weights.matrix * weights.used * weights.share for weights in block.weights)
        + sum(s * (1.0 if one.returns else 1 / 3) for one, s in _count_scores(block, training))
        for block in net.kinds
    ]
    of_token = sum(of_kinds[kind] for kind in net.order)
    of_token += 2 * net.hidden * net.vocabulary * net.scored
    return (1 + BACKWARD) * training.batch * training.length * of_token


def _count_scores(block: Block, training: Training) -> Iterator[tuple[AttentionProducts, float]]:
    """Yield forward FLOPs of each attention per token, of positions inside windows."""
    for attention in block.attentions:
        length = training.document or training.length
        keys = attention.count_keys(length, skips_later=False)
        yield attention, attention.flops * keys
