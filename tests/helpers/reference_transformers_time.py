"""An independent reference of transformers: seconds of an iteration of a layout, in plain numbers.

Written independently of the kernels, from docs/transformers.md, Time. The slowest stage determines
an iteration. Where the formulas leave room:

- Every matrix is a separate product: queries, keys, values, each of a gated MLP's two.
- A recomputed module is whole (Megatron-LM checkpoints its forward pass): `mlp` has
  both of its products, `moe` its router, `core_attn` its attention, fused or not.
- In A2A all PEs of a node leave it at once: each has L/k of a link, and no more than inside.
  `rail` divides bytes, as elsewhere, and no start-up.
- zb1p leaves a third of 1F1B's bubble, zbv none (Qi 2023, table 1).
- Weights that a PE does not have (routed experts) are not exchanged.
- A tensor crosses the memory with the 16-bit items that its layer writes; a cast reads each input
  of a product and writes it, and its transpose, narrow; so of its gradient.
- Experts' replicas share states among `shards`, or all of them if these are fewer.
"""

import math
from dataclasses import dataclass, replace

from reference_network import Network as Machine
from reference_network import Ring, all_gather, all_reduce, crowded_path, path, ring, top_level
from reference_transformers import (
    READ,
    RECIPES,
    Layout,
    Network,
    block_tensors,
    has_ends,
    held_parameters,
    padded_vocabulary,
    stage_blocks,
)

WHOLE = frozenset({"blocks", "full"})
BUBBLES = {"zb1p": 1 / 3, "zbv": 0.0}  # of p - 1 micro-batches; 1/v of all others


@dataclass(frozen=True)
class Rates:
    """What a PE, its links and the overlaps reach."""

    peak: float
    wide_peak: float
    vector_peak: float
    bandwidth: float
    reach: float
    half_width: float
    attention: float
    passes: float
    score_passes: float
    rail: float = 1.0
    hidden_gradients: float = 0.0
    hidden_weights: float = 0.0
    launch: float = 0.0
    expert_launch: float = 0.0
    pause: float = 0.0
    straggling: float = 0.0
    sends_once: bool = False


@dataclass(frozen=True)
class Matrix:
    """Weights of a block; in how many parts it may be, by columns or by rows, of which modules."""

    weights: float
    parts: float = 1
    rows: bool = False
    modules: frozenset[str] = frozenset()
    routed: bool = False


@dataclass(frozen=True)
class Case:
    net: Network
    layout: Layout
    rates: Rates
    machine: Machine

    @property
    def tokens(self) -> float:
        """u."""
        return self.layout.micro * self.net.sequence / self.layout.context

    @property
    def item(self) -> int:
        return 4 if self.layout.precision == "fp32" else 2

    def ring(self, q: float, stride: float) -> Ring:
        return ring(self.machine, self.layout.pes, round(q), round(stride))

    def reduce(self, q: float, stride: float, size: float) -> float:
        return all_reduce("auto", self.ring(q, stride), size / self.rates.rail)

    def gather(self, q: float, stride: float, size: float) -> float:
        return all_gather("auto", self.ring(q, stride), size / self.rates.rail)

    def send(self, q: int, stride: int, size: float) -> float:
        """P2P."""
        way = path(self.machine, self.layout.pes, q, stride)
        return way.alpha + size * way.beta / self.rates.rail

    def exchange(
        self, q: int, stride: int, size: float, messages: int = 1, copies: float = 1
    ) -> float:
        """A2A of what a PE has for all of a ring: inside the nodes first, then between them."""
        over, machine, size = self.ring(q, stride), self.machine, size / self.rates.rail
        top = top_level(machine, min(q * stride, self.layout.pes), self.layout.pes)
        inside = (over.h - 1) * (messages * over.inside.alpha + size / q * over.inside.beta)
        beta = crowded_path(machine, top, lambda pes: pes).beta
        # Nodes that at least one of a token's copies reaches.
        reached = over.n * (1 - (1 - 1 / over.n) ** copies)
        size *= reached / copies
        return inside + (over.n - 1) * messages * over.way.alpha + (q - over.h) / q * size * beta


def attention_matrices(net: Network) -> list[Matrix]:
    h, a = net.hidden, net.heads
    if not net.latent:
        keys = Matrix(h * net.a_kv * net.head_size, net.a_kv)
        wide = h * a * net.head_size
        return [Matrix(wide, a), keys, keys, Matrix(wide, a, rows=True)]
    ranks, again = net.latent, frozenset({"mla_up_proj"})
    return [
        *([Matrix(h * ranks.q_rank)] if ranks.q_rank else []),
        Matrix((ranks.q_rank or h) * a * (ranks.nope + ranks.rope), a, modules=again),
        Matrix(h * (ranks.kv_rank + ranks.rope)),
        Matrix(ranks.kv_rank * a * (ranks.nope + ranks.value), a, modules=again),
        Matrix(a * ranks.value * h, a, rows=True),
    ]


def mlp_matrices(net: Network, block: int) -> list[Matrix]:
    def mlp(width: int, *modules: str, count: int = 1, routed: bool = False) -> list[Matrix]:
        size, parts, again = count * net.hidden * width, width, frozenset(modules)
        columns = [Matrix(size, parts, False, again, routed)] * (net.matrices - 1)
        return [*columns, Matrix(size, parts, True, again, routed)] if width else []

    if not net.has_experts(block):
        return mlp(net.ffn, "mlp")
    moe = frozenset({"moe"})
    return [
        Matrix(net.experts * net.hidden, modules=moe),
        *([Matrix(net.hidden, modules=moe | {"shared_experts"})] if net.shared_gate else []),
        *mlp(net.expert_ffn, "moe", count=net.experts, routed=True),
        *mlp(net.shared_ffn, "moe", "shared_experts"),
    ]


def matrices(net: Network, block: int) -> list[Matrix]:
    return attention_matrices(net) + mlp_matrices(net, block)


def product_seconds(case: Case, flops: float, least: float, peak: float) -> float:
    """Of FLOPs whose smallest dimension is `least`."""
    rates = case.rates
    half = rates.half_width * peak / rates.wide_peak
    return flops * (1 + half / least) / (peak * rates.reach)


def matrix_seconds(case: Case, matrix: Matrix) -> float:
    """Forward, of a micro-batch."""
    net, layout, h, peak = case.net, case.layout, case.net.hidden, case.rates.peak
    if not matrix.routed:
        q = min(layout.tensor, matrix.parts)
        least = min(case.tokens, h, matrix.weights / h / q)
        return product_seconds(case, 2 * case.tokens * matrix.weights / q, least, peak)
    active = net.top_k / net.experts
    tokens = case.tokens * active * layout.etp * layout.expert / layout.tensor
    least = min(tokens, h, net.expert_ffn / layout.etp)
    flops = 2 * case.tokens * active * matrix.weights / layout.tensor
    return product_seconds(case, flops, least, peak)


def attention_seconds(case: Case) -> float:
    """Forward, of a block and micro-batch."""
    net, layout, rates = case.net, case.layout, case.rates
    widths = 2 * net.heads * net.head_size
    if net.latent:
        widths = net.heads * (net.latent.nope + net.latent.rope + net.latent.value)
    flops = 2 * widths * case.tokens * net.sequence / min(layout.tensor, net.heads)
    if layout.fused_attention:
        width = widths / 2 / net.heads  # of a head, whose exponentials take as long as 32 features
        return flops / 2 * (1 + 32 / width) / (rates.wide_peak * rates.attention)
    odd = widths % (2 * net.heads * 8) > 0
    return flops / (rates.vector_peak if odd else rates.wide_peak * rates.reach)


def attention_both(case: Case) -> float:
    return (3.5 if case.layout.fused_attention else 3) * attention_seconds(case)


def again_seconds(case: Case, block: int) -> float:
    """Forward, of what a block computes again."""
    again = case.layout.recompute
    result = sum(
        matrix_seconds(case, matrix)
        for matrix in matrices(case.net, block)
        if again & (matrix.modules | WHOLE)
    )
    return result + (attention_seconds(case) if again & (WHOLE | {"core_attn"}) else 0)


def logits_seconds(case: Case) -> float:
    wide = padded_vocabulary(case.net, case.layout) / case.layout.tensor
    flops = 2 * case.tokens * case.net.hidden * wide
    least = min(case.tokens, wide, case.net.hidden)
    return 3 * product_seconds(case, flops, least, case.rates.wide_peak)


def moved_bytes(case: Case, block: int) -> float:
    """Bytes of a block that cross the memory."""
    rates, narrow = case.rates, READ.get(case.layout.precision)
    layout = replace(case.layout, precision="bf16") if narrow else case.layout
    total = 0.0
    for tensor in block_tensors(case.net, layout, block):
        passes = rates.score_passes if tensor.module == "core_attention" else rates.passes
        again = bool(tensor.dropped_by & layout.recompute)
        total += tensor.bytes * passes * (1.4 if again else 1)
    return total + (2 * (2 + 2 * narrow) * cast_items(case, block) if narrow else 0)


def cast_items(case: Case, block: int) -> float:
    """Items of the inputs of a block's products."""
    net, layout, h = case.net, case.layout, case.net.hidden
    t, sigma = layout.tensor, layout.sigma
    width = net.latent.value if net.latent else net.head_size
    latents = net.latent.q_rank + net.latent.kv_rank if net.latent else 0
    items = 2 * h / sigma + net.heads * width / t + latents / sigma
    if net.has_experts(block):
        items += net.top_k * (h * layout.etp + net.expert_ffn) / t + net.shared_ffn / t
    else:
        items += net.ffn / t
    return case.tokens * items


def launches(case: Case, block: int) -> int:
    """Tensors that a block reads."""
    net = case.net
    attention = 5 + 2 * net.head_norms  # norm's input and output; queries, keys, values
    if net.latent:  # the latents and their norms; queries, keys with values
        attention = 2 + 2 * bool(net.latent.q_rank) + 5
    attention += 1 + 1  # scores, the projection's input
    mlp = 2 + 2 + 1
    if net.has_experts(block):
        wide = net.matrices
        mlp = 2 + 3 + wide + (wide if net.shared_ffn else 0)
    else:
        mlp = 2 + net.matrices
    return attention + mlp + 2  # masks


def compute_terms(case: Case, stage: int) -> dict[str, float]:
    net, layout, rates = case.net, case.layout, case.rates
    blocks = stage_blocks(net, layout, stage)
    result = {
        "products": 3 * sum(matrix_seconds(case, m) for n in blocks for m in matrices(net, n)),
        "attention": len(blocks) * attention_both(case),
        "elementwise": sum(moved_bytes(case, block) for block in blocks) / rates.bandwidth,
        "logits": logits_seconds(case) * has_ends(layout, stage)[1],
        "recomputation": sum(again_seconds(case, block) for block in blocks),
    }
    device = sum(result.values())
    host = rates.launch * sum(launches(case, block) for block in blocks)
    routed = sum(net.has_experts(block) for block in blocks)
    host += routed * rates.expert_launch * net.experts / layout.expert
    return result | {"launch_wait": math.hypot(device**2, host**2) ** 0.5 - device}


def tensor_seconds(case: Case, block: int) -> float:
    layout, size = case.layout, case.tokens * case.net.hidden * case.item
    t = layout.tensor
    one = 2 * case.gather(t, 1, size) if layout.sequence_parallel else case.reduce(t, 1, size)
    rows = sum(matrix.rows and not matrix.routed for matrix in matrices(case.net, block))
    return rows * (3 if layout.recompute & WHOLE else 2) * one


def context_seconds(case: Case, hides: bool = True) -> float:
    """Of a block; attention hides a ring's steps, unless all of them are wanted."""
    net, layout = case.net, case.layout
    c, t = layout.context, layout.tensor
    if c == 1:
        return 0.0
    wide = 2 * net.heads * net.head_size
    if net.latent:
        wide = net.heads * (net.latent.nope + net.latent.rope + net.latent.value)
    rest = case.tokens * wide * case.item / t
    shared = case.tokens * wide * net.a_kv / net.heads * case.item / min(t, net.a_kv)
    if layout.context_by == "ring":
        step = attention_both(case) / c if hides else 0.0
        return (c - 1) * max(0.0, 3 * case.send(c, t, shared) - step)
    if layout.context_by == "all_gather":
        return 3 * case.gather(c, t, c * shared)
    return 2 * case.exchange(c, t, rest + shared, messages=2)


def expert_seconds(case: Case, block: int) -> float:
    net, layout = case.net, case.layout
    if layout.expert == 1 or not net.has_experts(block):
        return 0.0
    size = case.tokens * net.top_k * net.hidden * case.item / layout.tensor
    copies = net.top_k if case.rates.sends_once else 1
    return 4 * case.exchange(layout.expert, layout.etp, size, copies=copies)


def micro_batch(case: Case, stage: int) -> dict[str, float]:
    """Seconds of a micro-batch by term."""
    blocks = stage_blocks(case.net, case.layout, stage)
    return compute_terms(case, stage) | {
        "tensor_exchange": sum(tensor_seconds(case, block) for block in blocks),
        "context_exchange": len(blocks) * context_seconds(case),
        "expert_exchange": sum(expert_seconds(case, block) for block in blocks),
    }


def shared_exchange(case: Case, stage: int) -> tuple[float, float]:
    """Seconds that the gradients, and the gathered weights, of an iteration take."""
    layout = case.layout
    held = held_parameters(case.net, layout, stage)
    folded = layout.etp * layout.expert
    replicas = layout.tensor * layout.context * layout.data / folded
    rings = [
        (layout.data * layout.context, layout.tensor, layout.shards, held.tensor + held.replicated),
        (replicas, folded, layout.expert_shards, held.experts),
    ]
    weight, gradient, _ = RECIPES[layout.precision]
    gradients = weights = 0.0
    for q, stride, shards, size in rings:
        if size and layout.zero:
            gradients += case.gather(shards, stride, gradient * size)
            gradients += case.reduce(q / shards, stride * shards, gradient * size / shards)
            weights += case.gather(shards, stride, weight * size)
        elif size:
            gradients += case.reduce(q, stride, gradient * size)
    m = layout.micro_batches
    return (m * gradients, 2 * m * weights) if layout.zero == 3 else (gradients, weights)


def stage_message(case: Case) -> float:
    """Seconds of a micro-batch from a stage to the next."""
    layout = case.layout
    size = case.tokens * case.net.hidden * case.item / layout.sigma
    return case.send(layout.pipeline, layout.tensor * layout.context * layout.data, size)


def iteration_of_stage(case: Case, stage: int) -> dict[str, float]:
    net, layout, rates = case.net, case.layout, case.rates
    p, m, all_micro = layout.pipeline, layout.micro_batches, micro_batch(case, stage)
    one = sum(all_micro.values())
    gradients, weights = shared_exchange(case, stage)
    beside, behind = (m * one, m * one) if layout.zero == 3 else (one, one / 3)
    held = held_parameters(net, layout, stage)
    carried = max(0.0, weights - rates.hidden_weights * behind)
    window = min(2 / 3 * beside, beside - (weights - carried)) if layout.zero == 3 else 2 / 3 * one
    dense, experts = held.tensor + held.replicated, held.experts
    if layout.zero:
        dense, experts = dense / layout.shards, experts / layout.expert_shards
    weight, gradient, states = RECIPES[layout.precision]
    moved = (dense + experts) * (gradient + 2 * states + weight)
    result = {name: m * seconds for name, seconds in all_micro.items()} | {
        "pipeline_bubble": (p - 1) * BUBBLES.get(layout.schedule, 1 / layout.chunks) * one,
        "stage_exchange": 2 * (p - 1) * stage_message(case) if p > 1 else 0.0,
        "gradient_exchange": max(0.0, gradients - rates.hidden_gradients * window),
        "weight_gather": carried,
        "optimizer": moved / rates.bandwidth,
    }
    doublings = math.log2(layout.pes)
    slower = rates.straggling * doublings * sum(result.values())
    return result | {"waiting": rates.pause + slower}


def communication_of_stage(case: Case, stage: int) -> dict[str, float]:
    """Seconds of all communication of an iteration, hidden or not.

    A stage passes each micro-batch on once for each of its chunks; p - 2 messages more of others
    are on the way of the first one there, and as many on the way back.
    """
    layout, blocks = case.layout, stage_blocks(case.net, case.layout, stage)
    m, chunks = layout.micro_batches, 2 if layout.schedule == "zbv" else layout.chunks
    gradients, weights = shared_exchange(case, stage)
    sent = 2 * (m * chunks + layout.pipeline - 2) if layout.pipeline > 1 else 0
    return {
        "tensor_exchange": m * sum(tensor_seconds(case, block) for block in blocks),
        "context_exchange": m * len(blocks) * context_seconds(case, hides=False),
        "expert_exchange": m * sum(expert_seconds(case, block) for block in blocks),
        "stage_exchange": sent * stage_message(case) if sent else 0.0,
        "gradient_exchange": gradients,
        "weight_gather": weights,
    }


def iterations(
    net: Network, layout: Layout, rates: Rates, machine: Machine
) -> list[dict[str, float]]:
    """Seconds by term, of each stage."""
    case = Case(net, layout, rates, machine)
    return [iteration_of_stage(case, stage) for stage in range(layout.pipeline)]
