"""An independent reference of transformers: memory of a stage, micro-batches in flight, FLOPs.

Narayanan 2021 (SC21), "Efficient Large-Scale Language Model Training", equations 2 and 3;
Korthikanti 2022, section 4 and appendix A; Qi 2023, "Zero Bubble Pipeline Parallelism".
"""

import math

from reference_transformers import (
    Layout,
    Network,
    adapters,
    dropped_bytes,
    has_ends,
    kept_by_module,
    model_states,
    padded_vocabulary,
    stage_blocks,
    undivided,
)


def in_flight(layout: Layout, stage: int) -> float:
    """Micro-batches of a whole stage that are kept at most; a chunk's pass counts 1/v."""
    p, m, v = layout.pipeline, layout.micro_batches, layout.chunks
    if p == 1:  # without stages there is no schedule
        return 1
    if layout.schedule == "gpipe":
        return m
    if layout.schedule == "interleaved":
        group = layout.group or p
        return min(2 * (p - 1 - stage) + (v - 1) * group + 1, m * v) / v
    if layout.schedule in ("zb1p", "zbv"):  # every stage as 1F1B's first one
        return min(p, m)
    return min(p - stage, m)


def activations(net: Network, layout: Layout, stage: int) -> dict[str, float]:
    """Bytes by module, of all micro-batches in flight, and what is computed again."""
    blocks = stage_blocks(net, layout, stage)
    of_blocks = [kept_by_module(net, layout, block) for block in blocks]
    again = max((dropped_bytes(net, layout, block) for block in blocks), default=0.0)
    fewer = 1.0
    if "full" in layout.recompute and blocks:
        # Chen 2016: every r-th block's input, and r blocks again.
        r = math.ceil(math.sqrt(len(blocks)))
        inputs = math.ceil(len(blocks) / r)
        fewer = inputs / len(blocks)
        whole = again + max(sum(kept.values()) for kept in of_blocks)
        again = r * whole - max(sum(kept.values()) for kept in of_blocks)
    result: dict[str, float] = {}
    for kept in of_blocks:
        for module, size in kept.items():
            result[module] = result.get(module, 0.0) + size * fewer * in_flight(layout, stage)
    if layout.offload in ("activations", "both"):  # one block's, and another's on its way
        largest = max((sum(kept.values()) for kept in of_blocks), default=0.0)
        result = {"blocks": min(sum(result.values()), 2 * largest)}
    return result | {"recomputed": again}


def embedding(net: Network, layout: Layout) -> float:
    """Token numbers (8 bytes) and the dropout's mask, of a micro-batch."""
    tokens = layout.micro * net.sequence / layout.context
    mask = net.hidden / layout.sigma if net.dropout else 0
    return tokens * (0 if net.is_tuned else 8) + tokens * mask


def logits(net: Network, layout: Layout) -> float:
    """Inputs of the final norm and of the output layer, and fp32 logits, of a micro-batch."""
    tokens = layout.micro * net.sequence / layout.context
    item = 4 if layout.precision == "fp32" else 2
    of_each = layout.logit_bytes * padded_vocabulary(net, layout) / layout.tensor
    kept = (1 + net.trains_head) * item * net.hidden / layout.sigma
    return tokens * (kept + of_each / layout.loss_parts)


def stage_memory(net: Network, layout: Layout, stage: int, reserved: float = 0) -> dict[str, float]:
    """Bytes a PE by part."""
    first, last = has_ends(layout, stage)
    flying = layout.micro_batches if layout.schedule == "gpipe" and layout.pipeline > 1 else 1
    return (
        model_states(net, layout, stage)
        | activations(net, layout, stage)
        | undivided(net, layout, stage)
        | {
            "embedding": first * in_flight(layout, stage) * embedding(net, layout),
            "logits": last * flying * logits(net, layout),
            "reserved": reserved,
        }
    )


def memory(net: Network, layout: Layout, reserved: float = 0) -> dict[str, float]:
    """Parts of the fullest stage, which one it is, and their total."""
    stages = [stage_memory(net, layout, n, reserved) for n in range(layout.pipeline)]
    totals = [sum(parts.values()) for parts in stages]
    fullest = totals.index(max(totals))
    return stages[fullest] | {"stage": fullest, "total": totals[fullest]}


def block_flops(net: Network, block: int) -> tuple[float, float]:
    """Forward FLOPs of a token in a block: of matrices, and of scores and values.

    Scores are of all pairs that a window has, whether or not a mask hides some of them.
    """
    g, h = net.matrices, net.hidden
    if net.latent:
        ranks = net.latent
        width = net.heads * (ranks.nope + ranks.rope)
        linear = (ranks.q_rank * (h + width) if ranks.q_rank else h * width) + h * (
            ranks.kv_rank + ranks.rope + net.heads * ranks.value
        )
        linear += ranks.kv_rank * net.heads * (ranks.nope + ranks.value)
        widths = width + net.heads * ranks.value
    else:
        linear = 2 * h * net.head_size * (net.heads + net.a_kv)
        widths = 2 * net.heads * net.head_size
    if net.has_experts(block):
        linear += g * h * (net.top_k * net.expert_ffn + net.shared_ffn) + net.experts * h
    else:
        linear += g * h * net.ffn
    return 2 * linear, 2 * widths * net.pairs(block, net.document)


def forward_flops(net: Network, tokens: float) -> dict[str, float]:
    """FLOPs of a forward pass: matrices of blocks, scores and values, logits."""
    linear, scores = map(sum, zip(*(block_flops(net, n) for n in range(net.layers)), strict=True))
    logits = 2 * tokens * net.hidden * net.vocabulary
    return {"linear": tokens * linear, "attention": tokens * scores, "logits": logits}


def model_flops(net: Network, batch: float) -> float:
    """Those of an iteration, nothing counted twice: what MFU counts.

    Of a frozen matrix no gradient of its own; of a block before all that are trained, none at all.
    """
    tokens, total = batch * net.sequence, 0.0
    for block in range(net.layers):
        linear, scores = block_flops(net, block)
        beside = sum(
            2 * net.rank * (one.inputs + one.outputs) * (net.top_k if one.experts else 1)
            for one in adapters(net, block)
        )
        if net.rank:
            total += 2 * linear + 3 * scores + 3 * beside
        else:
            total += (3 if net.passes(block) else 1) * (linear + scores)
    head = 2 * net.hidden * net.vocabulary
    return tokens * (total + (2 + net.trains_head) * head)
