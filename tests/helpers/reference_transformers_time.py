"""An independent reference of transformers: seconds of an iteration of a layout, in plain numbers.

Written independently of the kernels, from docs/transformers.md, Time. The slowest stage determines
an iteration. Where the formulas leave room:

- Every matrix is a separate product: queries, keys, values, each of a gated MLP's two.
- A recomputed module is whole (Megatron-LM checkpoints its forward pass): `mlp` has
  both of its products, `moe` its router, `core_attn` its attention, fused or not.
- In A2A all PEs of a node leave it at once: each has L/k of a link, and no more than inside.
- Of bandwidths, messages reach all inside a node and `rail` beyond; collectives reach a share
  inside, too.
- zb1p leaves a third of 1F1B's bubble, zbv none (Qi 2023, table 1).
- Weights that a PE does not have (routed experts) are not exchanged.
- A tensor crosses the memory with the 16-bit items that its layer writes; a cast reads each input
  of a product and writes it, and its transpose, narrow; so of its gradient.
- Experts' replicas share states among `shards`, or all of them if these are fewer.
- v of launches and of start-ups between stages is `chunks`: 1 of zbv.
- Pieces of sequences slow fused attention down whatever computes it: both passes, and again.
"""

import math
from dataclasses import dataclass, replace

from reference_alignment import aligned
from reference_network import Network as Machine
from reference_network import (
    Path,
    Ring,
    all_reduce,
    by_switches,
    crowded_path,
    path,
    ring,
    top_level,
)
from reference_parts import launch_excess
from reference_transformers import (
    READ,
    RECIPES,
    Layout,
    Network,
    adapters,
    block_tensors,
    has_ends,
    held_parameters,
    held_trained,
    kept_by_module,
    padded_vocabulary,
    stage_blocks,
)
from reference_transformers_blocks import Attention, Matrix, attentions, matrices, tensors_read

WHOLE = frozenset({"blocks", "full"})
TILE = 128  # positions that a fused kernel computes at a time
BUBBLES = {"zb1p": 1 / 3, "zbv": 0.0}  # of p - 1 micro-batches; 1/v of all others


@dataclass(frozen=True)
class Rates:
    """What a PE, its links and the overlaps reach."""

    peak: float
    wide_peak: float
    vector_peak: float
    bandwidth: float
    reach: float
    product_moves: float  # times that a square product's sums, of four bytes, cross the memory
    attention: float
    passes: float
    score_passes: float
    rail: float = 1.0
    node_reduce: float = 1.0
    node_collective: float = 1.0
    hidden_gradients: float = 0.0
    hidden_weights: float = 0.0
    hidden_tensor: float = 0.0  # of the products of a block
    hidden_experts: float = 0.0  # of the computing of a block
    messages: str = "one"
    launch: float = 0.0
    expert_launch: float = 0.0  # of each expert of a PE; 0: a product of all is one kernel
    checkpoint_wait: float = 0.0  # of each block, beside whatever its device does
    pause: float = 0.0
    straggling: float = 0.0
    sends_once: bool = False
    host: float = 1e10  # [B/s] to a host, and of its memory
    hidden_host: float = 0.0


@dataclass(frozen=True)
class Case:
    net: Network
    layout: Layout
    rates: Rates
    machine: Machine

    def network(self, inside: float) -> Machine:
        """Of the PEs that the layout occupies, with this share of bandwidths in a node."""
        machine, rail = aligned(self.machine, self.layout), self.rates.rail
        levels = [
            (pes, latency, bandwidth * (rail if j else inside), *more)
            for j, (pes, latency, bandwidth, *more) in enumerate(machine.levels)
        ]
        return replace(machine, levels=levels)

    @property
    def tokens(self) -> float:
        """u."""
        return self.layout.micro * self.net.sequence / self.layout.context

    @property
    def item(self) -> int:
        return 4 if self.layout.precision == "fp32" else 2

    def ring(self, q: float, stride: float, inside: float) -> Ring:
        return ring(self.network(inside), self.layout.pes, round(q), round(stride))

    def reduce(self, q: float, stride: float, size: float) -> float:
        return all_reduce("auto", self.ring(q, stride, self.rates.node_collective), size)

    def gather(self, q: float, stride: float, size: float) -> float:
        return gather_around(self.ring(q, stride, self.rates.node_collective), size)

    def reduce_states(self, q: float, stride: float, size: float, messages: float) -> float:
        return all_reduce("auto", self.ring(q, stride, self.rates.node_reduce), size, messages)

    def gather_states(self, q: float, stride: float, size: float, messages: float) -> float:
        return gather_around(self.ring(q, stride, self.rates.node_reduce), size, messages)

    def way(self, q: int, stride: int) -> Path:
        """Between neighbours of a ring."""
        return path(self.network(1.0), self.layout.pes, q, stride)

    def exchange(
        self, q: int, stride: int, size: float, messages: int = 1, copies: float = 1
    ) -> float:
        """A2A of what a PE has for all of a ring: inside the nodes first, then between them."""
        share = self.rates.node_collective
        over, machine = self.ring(q, stride, share), self.network(share)
        top = top_level(machine, min(q * stride, self.layout.pes), self.layout.pes)
        inside = (over.h - 1) * (messages * over.inside.alpha + size / q * over.inside.beta)
        beta = crowded_path(machine, self.layout.pes, top, lambda pes: pes).beta
        # Nodes that at least one of a token's copies reaches.
        reached = over.n * (1 - (1 - 1 / over.n) ** copies)
        size *= reached / copies
        return inside + (over.n - 1) * messages * over.way.alpha + (q - over.h) / q * size * beta


def gather_around(over: Ring, size: float, messages: float = 1) -> float:
    """AG = RS of layouts: once around all PEs, n - 1 of the hops between nodes; or by switches."""
    between = over.n - 1
    hops = (over.q - over.n) * over.inside.alpha + between * over.way.alpha
    around = messages * hops + (over.q - 1) / over.q * size * over.way.beta
    if between or over.switches is None:
        return around
    return min(around, by_switches(over, size, messages, 1)["switches"])


def product_seconds(
    case: Case,
    tokens: float,
    columns: float,
    peak: float,
    read: float,
    count: float = 1,
    side: int = 0,
) -> float:
    """Forward, of `count` products of tokens with a matrix: arithmetic, then memory.

    Mean bytes of an item over the step's three products, which read two matrices and write one.
    """
    rates, rows = case.rates, side or case.net.hidden
    item = (read + read + case.item) / 3
    items = tokens * rows + rows * columns + tokens * columns
    sums = rates.product_moves * tokens * math.sqrt(columns * rows)
    moved = (item * items + 4 * sums) / rates.bandwidth
    return count * (2 * tokens * columns * rows / (rates.reach * peak) + moved)


def matrix_seconds(case: Case, matrix: Matrix) -> float:
    """Forward, of a micro-batch; small weights are read, and written with the items of others."""
    net, layout, peak = case.net, case.layout, case.rates.peak
    read, side = READ.get(layout.precision, case.item), matrix.rank or net.hidden
    q = min(layout.tensor, matrix.parts)
    if matrix.routed:
        q = layout.expert * (1 if matrix.undivided else layout.etp)
    larger = matrix.weights / q * (net.stored + case.item) / case.rates.bandwidth
    made = larger if matrix.small else 0.0
    if not matrix.routed:
        tokens = case.tokens / (layout.sigma if matrix.undivided else 1)
        wide = matrix.weights / side / q
        return made + product_seconds(case, tokens, wide, peak, read, side=side)
    # Of all PEs that share its expert, an expert gets its part of their tokens.
    sharing = layout.etp * layout.expert / layout.tensor
    tokens = case.tokens * sharing * net.top_k / net.experts
    here = net.experts / layout.expert
    wide = matrix.weights / side / q / here
    return made + product_seconds(case, tokens, wide, peak, read, here, side)


def find_attentions(case: Case, block: int) -> list[Attention]:
    return attentions(case.net, block, case.layout.fused_attention)


def products_seconds(case: Case, block: int) -> float:
    """All products of a block with matrices, forward and backward."""
    both = matrices(case.net, block)
    return sum((1 + matrix.gradients) * matrix_seconds(case, matrix) for matrix in both)


def attention_seconds(case: Case, attention: Attention) -> float:
    """Forward, of a micro-batch."""
    layout, rates = case.layout, case.rates
    of_each_key = attention.flops * case.tokens / min(layout.tensor, attention.heads)
    if layout.fused_attention:
        # The exponentials of a head take as long as 32 features.
        slower = (1 + 32 / attention.features) * in_pieces(case)
        return of_each_key * attention.keys * slower / (rates.wide_peak * rates.attention)
    flops, odd = of_each_key * attention.pairs, attention.features % 8 > 0
    return flops / (rates.vector_peak if odd else rates.wide_peak * rates.reach)


def in_pieces(case: Case) -> float:
    """How many times as long fused attention takes on 2 c pieces of each document."""
    c, s = case.layout.context, case.net.sequence
    pieces = 1 if c == 1 or case.layout.context_by == "all_to_all" else 2 * c
    return 1 + TILE * (pieces * s / (case.net.document or s) - 1) / s


def attention_both(case: Case, attention: Attention, block: int) -> float:
    both = 3.5 if case.layout.fused_attention else 3
    return (both if case.net.passes(block) else 1) * attention_seconds(case, attention)


def again_seconds(case: Case, block: int) -> float:
    """Forward, of what a block computes again."""
    again = case.layout.recompute
    if not case.net.passes(block):
        return 0.0
    result = sum(
        matrix_seconds(case, matrix)
        for matrix in matrices(case.net, block)
        if again & (matrix.modules | WHOLE)
    )
    if again & (WHOLE | {"core_attn"}):
        result += sum(attention_seconds(case, one) for one in find_attentions(case, block))
    return result


def logits_seconds(case: Case) -> float:
    wide = padded_vocabulary(case.net, case.layout) / case.layout.tensor
    passes = 2 + case.net.trains_head
    return passes * product_seconds(case, case.tokens, wide, case.rates.wide_peak, case.item)


def moved_bytes(case: Case, block: int) -> float:
    """Bytes of a block that cross the memory."""
    rates, narrow = case.rates, READ.get(case.layout.precision)
    layout = replace(case.layout, precision="bf16") if narrow else case.layout
    total = 0.0
    for tensor in block_tensors(case.net, layout, block):
        passes = rates.score_passes if tensor.module == "core_attention" else rates.passes
        again = bool(tensor.dropped_by & layout.recompute)
        # Two of five forward, one to read it again, two of its gradient.
        accesses = (2 + 2 * tensor.flows + tensor.kept) / 5
        total += tensor.bytes * passes * (accesses + (0.4 if again else 0))
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
    between = (net.top_k if one.experts else 1 for one in adapters(net, block))
    return case.tokens * (items + net.rank * sum(between) / sigma)


def launches(case: Case, block: int) -> float:
    """Of a block: its tensors, and steps of its rings."""
    net, layout = case.net, case.layout
    result: float = tensors_read(net, block)
    if layout.context_by == "ring":  # a kernel and a message of each step
        result += 2 * (layout.context - 1) * len(find_attentions(case, block))
    return result


def compute_terms(case: Case, stage: int) -> dict[str, float]:
    net, layout, rates = case.net, case.layout, case.rates
    blocks = stage_blocks(net, layout, stage)
    result = {
        "products": sum(products_seconds(case, n) for n in blocks),
        "attention": sum(
            attention_both(case, one, n) for n in blocks for one in find_attentions(case, n)
        ),
        "elementwise": sum(moved_bytes(case, block) for block in blocks) / rates.bandwidth,
        "logits": logits_seconds(case) * has_ends(layout, stage)[1],
        "recomputation": sum(again_seconds(case, block) for block in blocks),
    }
    # Exchanges that nothing hides are the device's as well.
    exchanged = (exposed_tensor, context_seconds, exposed_experts)
    device = sum(result.values()) + sum(part(case, n) for part in exchanged for n in blocks)
    launched = sum(launches(case, block) for block in blocks) + layout.chunks - 1
    routed = sum(net.has_experts(block) for block in blocks)
    host = rates.launch * launched + rates.expert_launch * routed * net.experts / layout.expert
    stopped = rates.checkpoint_wait * len(blocks)
    return result | {"launch_wait": launch_excess(device, host) + stopped}


def block_compute(case: Case, block: int) -> tuple[float, float]:
    """Seconds of a block's products, and of all that its device computes."""
    products = products_seconds(case, block)
    scores = sum(attention_both(case, one, block) for one in find_attentions(case, block))
    moved = moved_bytes(case, block) / case.rates.bandwidth
    return products, products + scores + moved + again_seconds(case, block)


def exposed_tensor(case: Case, block: int) -> float:
    """Three of four pieces run beside the products, if sequences are divided."""
    beside, products = adapter_seconds(case, block), block_compute(case, block)[0]
    whole = tensor_seconds(case, block) - beside
    if not case.layout.sequence_parallel:
        return whole + beside
    return beside + max(whole / 4, whole - case.rates.hidden_tensor * products)


def exposed_experts(case: Case, block: int) -> float:
    """All micro-batches but one have a neighbour."""
    whole, busy = expert_seconds(case, block), block_compute(case, block)[1]
    m = case.layout.micro_batches
    return whole - (m - 1) / m * min(whole, case.rates.hidden_experts * busy)


def tensor_seconds(case: Case, block: int) -> float:
    layout, size = case.layout, case.tokens * case.net.hidden * case.item
    t = layout.tensor
    one = 2 * case.gather(t, 1, size) if layout.sequence_parallel else case.reduce(t, 1, size)
    own = [matrix for matrix in matrices(case.net, block) if not matrix.rank]
    rows = sum(matrix.rows and not matrix.routed for matrix in own)
    times = 3 if layout.recompute & WHOLE else 2
    beside = adapter_seconds(case, block)
    return beside + rows * (times if case.net.passes(block) else 1) * one


def adapter_seconds(case: Case, block: int) -> float:
    """What is between the matrices of an adapter is summed once, or its gradient is."""
    size = case.tokens * case.net.rank * case.item
    summed = sum(bool(one.divided) and not one.experts for one in adapters(case.net, block))
    return summed * case.reduce(case.layout.tensor, 1, size) if summed else 0.0


def context_seconds(case: Case, block: int, hides: bool = True) -> float:
    """Of a block; attention hides a ring's bytes, unless all of its messages are wanted."""
    if case.layout.context == 1:
        return 0.0
    both = find_attentions(case, block)
    return sum(attention_exchange(case, one, hides, block) for one in both)


def attention_exchange(case: Case, attention: Attention, hides: bool, block: int) -> float:
    three = 3 if case.net.passes(block) else 1
    c, t, kv_heads = case.layout.context, case.layout.tensor, attention.kv_heads
    head = 2 * case.tokens * attention.features * case.item
    keys = head * kv_heads / min(t, kv_heads)
    if case.layout.context_by == "ring":
        way = case.way(c, t)
        step = attention_both(case, attention, block) / c if hides else 0.0
        return (c - 1) * (three * way.alpha + max(0.0, three * keys * way.beta - step))
    if case.layout.context_by == "all_gather":
        return three * case.gather(c, t, c * keys)
    return (2 if three > 1 else 1) * case.exchange(
        c, t, head * attention.heads / t + keys, messages=2
    )


def expert_seconds(case: Case, block: int) -> float:
    net, layout = case.net, case.layout
    if layout.expert == 1 or not net.has_experts(block):
        return 0.0
    size = case.tokens * net.top_k * net.hidden * case.item / layout.tensor
    copies = net.top_k if case.rates.sends_once else 1
    times = 4 if net.passes(block) else 2
    return times * case.exchange(layout.expert, layout.etp, size, copies=copies)


def micro_batch(case: Case, stage: int) -> dict[str, float]:
    """Seconds of a micro-batch by term."""
    blocks = stage_blocks(case.net, case.layout, stage)
    return compute_terms(case, stage) | {
        "tensor_exchange": sum(exposed_tensor(case, block) for block in blocks),
        "context_exchange": sum(context_seconds(case, block) for block in blocks),
        "expert_exchange": sum(exposed_experts(case, block) for block in blocks),
    }


def state_messages(case: Case, stage: int, parameters: float, ranks: float) -> float:
    if case.rates.messages == "blocks":
        layout = case.layout
        return max(1, len(stage_blocks(case.net, layout, stage)) + sum(has_ends(layout, stage)))
    if case.rates.messages == "buckets":
        # Networks here are too small for a bucket of each matrix, the most there can be.
        return max(1, math.ceil(parameters / max(40e6, 1e6 * ranks)))
    return 1


def shared_exchange(case: Case, stage: int) -> tuple[float, float]:
    """Seconds that the gradients, and the gathered weights, of an iteration take."""
    layout = case.layout
    held, whole = held_trained(case.net, layout, stage), held_parameters(case.net, layout, stage)
    folded = layout.etp * layout.expert
    replicas = layout.tensor * layout.context * layout.data / folded
    dense, every = (part.tensor + part.replicated for part in (held, whole))
    rings = [
        (layout.data * layout.context, layout.tensor, layout.shards, dense, every),
        (replicas, folded, layout.expert_shards, held.experts, whole.experts),
    ]
    weight, gradient, _ = RECIPES[layout.precision]
    gradients = weights = 0.0
    for q, stride, shards, size, gathered in rings:
        k = state_messages(case, stage, size, q)
        if gathered and layout.zero == 3:  # whether or not they are trained
            weights += case.gather_states(shards, stride, weight * gathered, k)
        if size and layout.zero:
            gradients += case.gather_states(shards, stride, gradient * size, k)
            beyond = gradient * size / shards
            gradients += case.reduce_states(q / shards, stride * shards, beyond, k)
            weights += (
                0 if layout.zero == 3 else case.gather_states(shards, stride, weight * size, k)
            )
        elif size:
            gradients += case.reduce_states(q, stride, gradient * size, k)
    m = layout.micro_batches
    return (m * gradients, 2 * m * weights) if layout.zero == 3 else (gradients, weights)


def stage_message(case: Case) -> Path:
    """Start-up and bytes' seconds of a micro-batch from a stage to the next."""
    layout = case.layout
    size = case.tokens * case.net.hidden * case.item / layout.sigma
    way = case.way(layout.pipeline, layout.tensor * layout.context * layout.data)
    return Path(way.alpha, size * way.beta)


def stage_exchange(case: Case) -> float:
    """Exposed: p - 1 messages each way, the start-ups of further chunks, and all of 1F1B."""
    p, m, v = case.layout.pipeline, case.layout.micro_batches, case.layout.chunks
    if p == 1:
        return 0.0
    message = stage_message(case)
    if case.layout.schedule == "1f1b" and v == 1:
        return 2 * (p - 1 + m - 1) * sum(message)
    return 2 * (p - 1) * sum(message) + 2 * m * (v - 1) * message.alpha


def iteration_of_stage(case: Case, stage: int) -> dict[str, float]:
    net, layout, rates = case.net, case.layout, case.rates
    p, m, all_micro = layout.pipeline, layout.micro_batches, micro_batch(case, stage)
    one = sum(all_micro.values())
    gradients, weights = shared_exchange(case, stage)
    # While the last (first) passes of a chunk's group run, the other chunks' states travel.
    chunk, together = one / layout.chunks, min(layout.group or p, m)
    near = chunk + together * (one - chunk)
    beside, behind = (m * one, m * one) if layout.zero == 3 else (near, near / 3)
    held = held_trained(net, layout, stage)
    carried = max(0.0, weights - rates.hidden_weights * behind)
    window = min(2 / 3 * beside, beside - (weights - carried)) if layout.zero == 3 else 2 / 3 * near
    dense, experts = held.tensor + held.replicated, held.experts
    if layout.zero:
        dense, experts = dense / layout.shards, experts / layout.expert_shards
    weight, gradient, states = RECIPES[layout.precision]
    moved = (dense + experts) * (gradient + 2 * states + weight)
    at_host = layout.offload in ("states", "both")
    result = {name: m * seconds for name, seconds in all_micro.items()} | {
        "pipeline_bubble": (p - 1) * BUBBLES.get(layout.schedule, 1 / layout.chunks) * one,
        "stage_exchange": stage_exchange(case),
        "gradient_exchange": max(0.0, gradients - rates.hidden_gradients * window),
        "weight_gather": carried,
        "optimizer": moved / (rates.host if at_host else rates.bandwidth),
        "host_transfer": host_seconds(case, stage, gradient * (dense + experts), one),
    }
    doublings = math.log2(layout.pes)
    slower = rates.straggling * doublings * sum(result.values())
    return result | {"waiting": rates.pause + slower}


def host_seconds(case: Case, stage: int, gradients: float, micro: float) -> float:
    """Gradients go beside two thirds of a micro-batch, activations beside a third and come back
    beside two.
    """
    layout, rates, exposed = case.layout, case.rates, 0.0
    third = rates.hidden_host * micro / 3
    if layout.offload in ("states", "both"):
        exposed += max(0.0, gradients / rates.host - 2 * third)
    if layout.offload in ("activations", "both"):
        blocks = stage_blocks(case.net, layout, stage)
        kept = sum(sum(kept_by_module(case.net, layout, n).values()) for n in blocks)
        if "full" in layout.recompute and blocks:
            kept *= math.ceil(len(blocks) / math.ceil(math.sqrt(len(blocks)))) / len(blocks)
        away = kept / rates.host
        both = max(0.0, away - third) + max(0.0, away - 2 * third)
        exposed += layout.micro_batches * both
    return exposed


def communication_of_stage(case: Case, stage: int) -> dict[str, float]:
    """Seconds of all communication of an iteration, hidden or not.

    A stage passes each micro-batch on once for each of its chunks; p - 2 messages more of others
    are on the way of the first one there, and as many on the way back.
    """
    layout, blocks = case.layout, stage_blocks(case.net, case.layout, stage)
    m, chunks = layout.micro_batches, layout.parts // layout.pipeline
    gradients, weights = shared_exchange(case, stage)
    sent = 2 * (m * chunks + layout.pipeline - 2) if layout.pipeline > 1 else 0
    return {
        "tensor_exchange": m * sum(tensor_seconds(case, block) for block in blocks),
        "context_exchange": m * sum(context_seconds(case, block, False) for block in blocks),
        "expert_exchange": m * sum(expert_seconds(case, block) for block in blocks),
        "stage_exchange": sent * sum(stage_message(case)) if sent else 0.0,
        "gradient_exchange": gradients,
        "weight_gather": weights,
    }


def iterations(
    net: Network, layout: Layout, rates: Rates, machine: Machine
) -> list[dict[str, float]]:
    """Seconds by term, of each stage."""
    case = Case(net, layout, rates, machine)
    return [iteration_of_stage(case, stage) for stage in range(layout.pipeline)]
