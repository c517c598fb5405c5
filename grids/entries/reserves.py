"""Reserves: how much more memory a run takes than formulas count, and the chance that it fits.

A PE also holds what an allocator caches or cannot use, and buffers of communication. Formulas count
`reserved` beside tensors, for context and workspaces.
"""

from collections.abc import Mapping
from math import log
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from paradl.kernels.names.arrays import Floats


class Reserve(NamedTuple):
    """A log-normal factor on bytes by formulas: its median, and the spread of its logarithm.

    of_all: on all of them, as for transformers; else on what is `reserved` beside tensors alone.
    """

    median: float
    spread: float
    source: str
    of_all: bool = True


LEAST = 1e-9  # a probability that anything has

# By software that trains transformers. Published runs (`python -m benchmarks layouts`) of one stack
# spread by 0.07 to 0.12; a spread here also covers other versions and settings of the software.
RESERVES: Mapping[str, Reserve] = {
    "megatron": Reserve(
        *(1.1, 0.1),
        "22 runs allocate 1.00 of it (2025); of a 70B recipe at 92 % of an H100, 30 to 60 % of the "
        "runs ran out of memory (Megatron-Bridge, pull request 3107, 2026)",
    ),
    "deepspeed": Reserve(1.31, 0.12, "68 runs of BLOOM by Megatron-DeepSpeed, nvidia-smi (2022)"),
    "fsdp": Reserve(
        1.05, 0.15, "2 runs of Llama 3 8B by torchtitan reserve 0.99 (2024); the rest is assumed"
    ),
    "unknown": Reserve(
        *(1.33, 0.25),
        "mean and spread of the logarithms of those above, and of nanotron (1.51, 14 runs, 2025) "
        "and InternEvo (1.83, 16 runs, 2024)",
    ),
}


def find_fit_chance(memory: float, capacity: float, reserve: Reserve, reserved: float) -> float:
    """Return the probability that memory suffices; memory, reserved: by formulas [B]."""
    part = memory if reserve.of_all else reserved
    room = capacity - memory + part
    if part <= 0 or room <= 0:  # nothing is uncertain, or not even the rest fits
        return float(part <= 0 <= room)
    return NormalDist(0, reserve.spread).cdf(log(room / part / reserve.median))


def find_most_memory(
    capacity: Floats, chance: Floats, reserve: Reserve, reserved: Floats
) -> Floats:
    """Return the most memory by formulas [B] that suffices with a probability; 0: any.

    reserved: of it, beside tensors.
    """
    factor = _find_factor(chance, reserve)
    most: Floats = capacity / factor if reserve.of_all else capacity - reserved * (factor - 1)
    return np.where(chance > 0, most, np.inf)


def find_least_capacity(memory: float, chance: float, reserve: Reserve, reserved: float) -> float:
    """Return the capacity [B] that suffices with a probability; 0: memory by formulas."""
    if chance <= 0:
        return memory
    more = float(_find_factor(np.asarray(chance), reserve)) - 1
    return memory + more * (memory if reserve.of_all else reserved)


def _find_factor(chance: Floats, reserve: Reserve) -> Floats:
    """Return the factor on bytes by formulas that is not exceeded with a probability."""
    from scipy.special import ndtri  # late: takes 0.1 s

    factor: Floats = np.exp(reserve.spread * ndtri(np.maximum(chance, LEAST)))
    return reserve.median * factor
