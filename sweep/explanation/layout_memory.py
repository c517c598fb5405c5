"""Memory of one layout by part: formulas, and the same with numbers."""

import numpy as np

from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.work.block_memory import (
    PARTS,
    hold_parameters,
    measure_blocks,
    measure_memory,
    sum_tensors,
)
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import Stage, count_in_flight, make_stage
from paradl.kernels.work.transformer import Training, Transformer
from paradl.sweep.answers.types.fitting import PartRow

SHARDED = {"weights": 3, "gradients": 2, "states": 1}  # first ZeRO stage that shards them
WORDS = {
    "gathered": "bytes of a weight x parameters of two blocks",
    "recomputed": "what one block computes again",
    "embedding": "in flight x what embeddings keep",
    "logits": "inputs of the last norm and matrix, and logits, of a micro-batch",
    "reserved": "context and workspaces, an assumption",
}


def explain_memory(net: Transformer, layout: Layouts, training: Training) -> list[PartRow]:
    """List the parts of a layout's fullest stage that are not empty, as products of numbers."""
    parts, stages = measure_memory(net, layout, training)
    stage = make_stage(net, layout.pipeline, layout.chunks, training, stages)
    explained = _explain_states(net, layout, training, stage)
    explained |= _explain_activations(net, layout, training, stage)
    rows: list[PartRow] = []
    for name in PARTS:
        if size := float(parts[name][0]):
            formula, numbers = explained.get(name, (WORDS.get(name, ""), write(size)))
            row: PartRow = {"part": name, "memory": size, "formula": formula, "numbers": numbers}
            rows.append(row)
    return rows


def write(number: float) -> str:
    """Write a whole number in full, and others with three decimals."""
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.3f}"


def _explain_states(
    net: Transformer, layout: Layouts, training: Training, stage: Stage
) -> dict[str, tuple[str, str]]:
    """Explain states: bytes per parameter times parameters; experts apart if shared by others."""
    blocks = measure_blocks(net, layout, training)
    held = hold_parameters(net, layout, blocks.parameters, stage)
    dense, experts = float(held.dense[0]), float(held.experts[0])
    found = {}
    # A recipe starts with the bytes of these three.
    for name, size in zip(SHARDED, training.recipe[:3], strict=True):
        if layout.zero[0] < SHARDED[name]:
            numbers = f"{size} x {write(dense + experts)}"
            found[name] = ("bytes x parameters on a PE", numbers)
            continue
        terms = f"{write(dense)} / {layout.shards[0]}"
        terms += f" + {write(experts)} / {layout.expert_shards[0]}" if experts else ""
        found[name] = ("bytes x parameters on a PE / ranks of ZeRO", f"{size} x ({terms})")
    return found


def _explain_activations(
    net: Transformer, layout: Layouts, training: Training, stage: Stage
) -> dict[str, tuple[str, str]]:
    """Explain activations: micro-batches in flight times what blocks and embeddings keep of one."""
    flying = write(float(count_in_flight(layout, training, stage.number)[0]))
    front = sum_tensors(net.front.tensors, layout, training)[0]
    found = {"embedding": (WORDS["embedding"], f"{flying} x {write(float(front[0]))}")}
    # Blocks that are run again in square-root parts keep no fixed sum per block.
    if layout.recompute[0] & RECOMPUTE["full"]:
        return found
    counts, kept = stage.counts[:, 0], measure_blocks(net, layout, training).kept
    numbers = zip(counts.tolist(), kept, strict=True)
    terms = [f"{number} x {write(float(size[0]))}" for number, size in numbers if number]
    if net.memory:
        reads = np.array([block.reads_memory for block in net.kinds])
        if np.any(counts[reads] > 0):
            terms.append(write(float(sum_tensors([net.memory], layout, training)[0][0])))
    formula = "in flight x blocks x bytes that a block keeps of a micro-batch"
    return found | {"activations": (formula, f"{flying} x ({' + '.join(terms)})")}
