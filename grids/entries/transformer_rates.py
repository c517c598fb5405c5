"""What kernels and links reach when they train transformers, on any machine.

Fitted to published runs (`python -m benchmarks layouts`); `hidden_gradients`, `hidden_weights` and
`launch` are assumptions, about which those runs say little.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from grids.entries.precision import RECIPES
from grids.entries.software import SOFTWARE, LayoutFacts
from grids.entries.systems import System
from grids.reading.errors import InputError
from kernels.layouts.columns import Column
from kernels.layouts.rates import Rates

# decline: the share of the peak that products reach falls as the peak's power (above A100's): newer
# GPUs run at lower clocks under load. ridges: half width of products in ridge points of the
# roofline, peak / bandwidth: slim matrices wait for the memory. dated: slowdown of attention whose
# kernels do without the instructions of newer GPUs. score_passes: the scores of unfused attention.
FITTED = MappingProxyType(
    {
        "reach": 0.669,
        "decline": 0.0606,
        "ridges": 1.93,
        "attention": 0.396,
        "dated": 1.75,
        "passes": 2.55,
        "score_passes": 15.2,
        "rail": 0.801,
        "pause": 0.0287,
        "straggling": 0.00707,
        "expert_launch": 4.99e-4,
    }
)
LAUNCH = 1e-5  # [s] assumption: the host's time to launch a layer
HIDDEN = 0.95  # assumption: share of the passes that hides an exchange beside them
A100_PEAK = 312e12  # [FLOP/s] in 16 bits; NVIDIA A100 data sheet
NEWER = 2.0  # of A100's peak: GPUs whose tensor cores have instructions that A100's lack
# Of ln(predicted / measured), so that 80 % intervals hold as many runs of stacks left out of the
# fit: of dense networks, and of mixtures of experts.
SPREAD = 0.115
EXPERT_SPREAD = 0.22
# The same of one run beside others of the same network, stack and PEs: 243 degrees of freedom in 49
# groups of dense networks. What errs for all layouts alike ranks none of them.
RIVAL_SPREAD = 0.09
# The 16-bit peak that a recipe of bytes a parameter runs at, by the names of `tensor_peaks`.
PEAKS = MappingProxyType({"fp16": "amp", "zero": "amp", "fp32": "fp32"})
UNMEASURED = ("nvfp4",)


def read_rates(system: System, precision: str) -> Rates:
    """The rates of a PE of the system; InputError: its peak is not stated, or nothing measured."""
    name = RECIPES[precision].peak
    if precision in UNMEASURED:
        raise InputError(
            f"no published run in {precision} tests its times, so they are not predicted",
            where="precision",
            advice="take bf16, fp8 or mxfp8, or leave out --by time",
        )
    wide = find_peak(system, PEAKS.get(precision, "bf16"), precision)
    peak = find_peak(system, name, precision) if name else wide
    facts = SOFTWARE[system.software].layouts
    return make_rates((peak, wide, system.pe.peak_flops, system.pe.memory_bandwidth), FITTED, facts)


def find_spread(has_experts: bool) -> float:
    """Standard deviation of ln(predicted / measured)."""
    return EXPERT_SPREAD if has_experts else SPREAD


def find_peak(system: System, name: str, precision: str) -> float:
    """A peak of the system's PEs [FLOP/s]; InputError: it is not stated."""
    peak = system.pe.peak_flops if name == "fp32" else getattr(system.pe.tensor_peaks, name, None)
    if peak is None:
        raise InputError(
            f"no peak in {precision} is known of {system.name}, so times are not predicted",
            where="precision",
            advice="take bf16 or fp16, or leave out --by time",
        )
    return float(peak)


def make_rates(
    speeds: tuple[float, float, float, float],
    fitted: Mapping[str, float] | Mapping[str, Column],
    facts: LayoutFacts,
) -> Rates:
    """The rates of a PE; fitted: as FITTED, or columns of such values, one for each layout.

    speeds: the peak of products, that in 16 bits and that without tensor cores [FLOP/s], and the
    memory's bandwidth [B/s].
    """
    peak, wide, vector, bandwidth = speeds
    value: Mapping[str, Any] = fitted
    newer = max(wide / A100_PEAK, 1.0)
    slowdown = 1.0 if facts.native_attention or newer < NEWER else value["dated"]
    return Rates(
        *(peak, wide, vector, bandwidth),
        *(value["reach"] * newer ** -value["decline"], value["ridges"] * wide / bandwidth),
        *(value["attention"] / slowdown, value["passes"]),
        *(value["score_passes"], value["rail"]),
        hidden_gradients=HIDDEN * facts.hides_gradients,
        hidden_weights=HIDDEN * facts.hides_weights,
        launch=LAUNCH,
        expert_launch=value["expert_launch"],
        pause=value["pause"] * facts.has_pause,
        straggling=value["straggling"],
    )
