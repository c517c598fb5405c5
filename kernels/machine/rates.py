"""Rates that kernels, links and overlaps reach in transformer training."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from paradl.kernels.columns import Column

if TYPE_CHECKING:  # JAX comes with them, and lists of models need none
    from paradl.kernels.arrays import Cells
    from paradl.kernels.machine.device import PE
    from paradl.kernels.machine.software import Software

# What states leave in: one message, buckets, or a message per block or per matrix and vector.
Messages = Literal["one", "buckets", "blocks", "tensors"]
# One number, or those of machines or cases.
Rate = float | Column

# FLOPs of the backward pass over the forward pass: gradients of inputs and of weights.
BACKWARD = 2.0


class Peaks(NamedTuple):
    """Peaks of a PE [FLOP/s]: of products in blocks, of those in 16 bits, without tensor cores."""

    products: float
    wide: float
    vector: float


@dataclass(frozen=True)
class SoftwareTraits:
    """What software does while transformers train, beyond its parameters.

    overlap_gradients, overlap_weights: passes run beside the exchange of gradients, and beside
    ZeRO's gathers. overlap_tensor: matrix products run beside the gathers and scatters of sequence
    parallelism. overlap_experts: a micro-batch runs beside the exchange of another one's tokens.
    messages: in which gradients and weights leave. native_attention: fused attention uses the
    instructions of GPUs newer than A100. sends_once: a token crosses once to a node, however many
    of its experts are there (DeepEP). grouped_experts: one grouped product serves all experts of a
    PE. stops_at_blocks: hosts and devices wait for each other at every block, forward and backward.
    """

    overlap_gradients: bool = True
    overlap_weights: bool = True
    overlap_tensor: bool = False
    overlap_experts: bool = False
    messages: Messages = "blocks"
    native_attention: bool = True
    sends_once: bool = False
    grouped_experts: bool = True
    stops_at_blocks: bool = False


@dataclass(frozen=True)
class StackFacts:
    """Facts of a device and the software on it that no parameter changes.

    peaks: as stated. slow_attention: fused attention lacks this device's instructions.
    keeps_sums: partial sums of products never leave the device's own memory. slowdown: calibration
    factor on all times.
    """

    peaks: Peaks
    software: SoftwareTraits
    slow_attention: bool = False
    keeps_sums: bool = False
    slowdown: float = 1.0


@dataclass(frozen=True)
class Rates:
    """Rates of one PE, or of several machines [machines].

    peak: of matrix products in blocks [FLOP/s], possibly in 8 bits; wide_peak: of attention and
    logits, in 16 bits; vector_peak: without tensor cores. bandwidth: of memory [B/s]. reach:
    fraction of a peak at which products compute. product_moves, passes, score_passes: times that
    partial sums of a square product, a kept tensor, and a score of unfused attention, are moved to
    or from memory. attention: fraction of the peak that fused attention reaches with many features
    per head. hidden_gradients, hidden_weights: fraction of the passes that can hide their exchange.
    hidden_tensor, hidden_experts: likewise of a block's products, and of its compute.
    launch, expert_launch [s]: host time to launch a layer, and the kernels of one expert (0: a
    grouped product serves all of a PE), forward and backward. checkpoint_wait [s]: of each block,
    which no device's work hides. pause [s]: per iteration. straggling: fraction by which each
    doubling of the PEs slows an iteration. host: of a PE to its host, and of the host's memory
    [B/s]. hidden_host: share of the passes that hides this. slowdown: calibration factor on all
    times. sends_once: a
    token is sent once to a node of its experts. messages: in which gradients and weights leave.
    """

    peak: Rate
    wide_peak: Rate
    vector_peak: Rate
    bandwidth: Rate
    reach: Rate
    product_moves: Rate
    attention: Rate
    passes: Rate
    score_passes: Rate
    hidden_gradients: Rate = 0.0
    hidden_weights: Rate = 0.0
    hidden_tensor: Rate = 0.0
    hidden_experts: Rate = 0.0
    launch: Rate = 0.0
    expert_launch: Rate = 0.0
    checkpoint_wait: Rate = 0.0
    pause: Rate = 0.0
    straggling: Rate = 0.0
    host: Rate = float("inf")
    hidden_host: Rate = 0.0
    slowdown: Rate = 1.0
    sends_once: bool = False
    messages: Messages = "one"


def find_rates(pe: "PE", software: "Software", facts: StackFacts) -> Rates:
    """Return the rates of PEs with some software; numbers, or arrays of any shape."""
    does = facts.software
    # A peak that is moved moves those of attention, logits and plain cores in proportion.
    moved = np.asarray(pe.peak_flops) / facts.peaks.products
    slower = software.attention_penalty if facts.slow_attention else 1.0
    rates: dict[str, Cells] = {
        "peak": facts.peaks.products * moved,
        "wide_peak": facts.peaks.wide * moved,
        "vector_peak": facts.peaks.vector * moved,
        "bandwidth": pe.memory_bandwidth,
        "reach": pe.block_product,
        "product_moves": pe.product_moves * (not facts.keeps_sums),
        "attention": pe.attention / slower,
        "passes": pe.block_passes,
        "score_passes": pe.score_passes,
        "hidden_gradients": software.overlap * does.overlap_gradients,
        "hidden_weights": software.overlap * does.overlap_weights,
        "hidden_tensor": software.overlap * does.overlap_tensor,
        "hidden_experts": software.overlap * does.overlap_experts,
        "launch": software.layer_overhead,
        "expert_launch": software.expert_wait * (not does.grouped_experts),
        "checkpoint_wait": software.checkpoint_wait * does.stops_at_blocks,
        "pause": software.host_pause,
        "straggling": software.straggling,
        "host": software.offload_rate,
        "hidden_host": software.overlap,
    }
    columns = {name: np.asarray(rate) for name, rate in rates.items()}
    return Rates(
        **columns,
        slowdown=facts.slowdown,
        sends_once=does.sends_once,
        messages=does.messages,
    )
