"""What kernels, links and overlaps reach when they train a transformer."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kernels.layouts.columns import Column

# FLOPs of a backward pass over those of a forward one: gradients of inputs, and of weights.
BACKWARD = 2.0


@dataclass(frozen=True)
class Rates:
    """What kernels, links and overlaps reach on a PE.

    peak: of products of blocks [FLOP/s], which may have inputs of a byte; wide_peak: of attention
    and logits, in 16 bits; vector_peak: without tensor cores. bandwidth: of the memory [B/s].
    reach: share of a peak that large products reach. half_width: smallest dimension at which
    products in 16 bits reach half of that. attention: share of the peak of fused attention, of many
    features a head. passes,
    score_passes: times that a kept tensor, and a score of unfused attention, crosses the memory.
    rail: share of a link's bandwidth. hidden_gradients, hidden_weights: share of the passes that
    may hide these. launch, expert_launch [s]: the host's time to launch a layer, and an expert's
    kernels, forward and backward. pause [s]: of an iteration. straggling: share by which each
    doubling of the PEs slows an iteration down. slowdown: measured times over those of all other
    rates, by a calibration. sends_once: whether a token crosses once to a node of its experts.
    """

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
    slowdown: float = 1.0
    sends_once: bool = False

    def select(self, machine: Column | None) -> Self:
        """Return the rates of each layout's machine [layouts], where these are columns of several.

        machine: numbers of theirs; None: there is one.
        """
        if machine is None:
            return self
        several = {name: value for name, value in vars(self).items() if np.ndim(value)}
        return replace(self, **{name: value[machine] for name, value in several.items()})
