"""What kernels and links reach when they train transformers, on any machine.

Fitted to published runs of bf16 and fp16 (`python -m benchmarks layouts`); `hidden_gradients`,
`hidden_weights` and `launch` are assumptions, about which those runs say nothing.
"""

from collections.abc import Mapping
from types import MappingProxyType

from grids.entries.systems import System
from grids.reading.errors import InputError
from kernels.layouts.time import Rates

# ridges: the half width of products in ridge points of the roofline, peak / bandwidth: products of
# slim matrices wait for the memory. With one width for all devices, devices left out of the fit are
# met to 79.7 % in place of 84.7 %.
FITTED = MappingProxyType(
    {"reach": 0.617, "ridges": 2.76, "attention": 0.311, "passes": 2.69, "rail": 0.832}
)
ASSUMED = MappingProxyType({"hidden_gradients": 0.95, "hidden_weights": 0.95, "launch": 1e-5})
# Of ln(predicted / measured), so that 80 % intervals hold runs of stacks left out of the fit.
SPREAD = 0.17
# The same of one run beside others of the same network, software and PEs: 110 degrees of freedom in
# 28 groups (`python -m benchmarks layouts`). What errs for all layouts alike ranks none of them.
RIVAL_SPREAD = 0.11
# The peak that products of a recipe of bytes a parameter run at. Not of fp8 and less: the share of
# it that these reach is not fitted (with that of bf16 Llama-3-8B would gain 1.6, published 1.28).
PEAKS = MappingProxyType({"bf16": "bf16", "fp16": "amp", "zero": "amp", "fp32": "fp32"})


def read_rates(system: System, precision: str) -> Rates:
    """The rates of a PE of the system; InputError: its peak is not stated."""
    peaks = system.pe.tensor_peaks
    if precision not in PEAKS:
        raise InputError(
            f"rates are fitted to runs of 16 bits, so times are not predicted in {precision}",
            where="precision",
            advice="take bf16 or fp16, or leave out --by time",
        )
    name = PEAKS[precision]
    peak = system.pe.peak_flops if name == "fp32" else getattr(peaks, name, None)
    if peak is None:
        raise InputError(
            f"no peak in {precision} is known of {system.name}, so times are not predicted",
            where="precision",
            advice="take bf16 or fp16, or leave out --by time",
        )
    return make_rates(peak, system.pe.memory_bandwidth, FITTED)


def make_rates(peak: float, bandwidth: float, fitted: Mapping[str, float]) -> Rates:
    """The rates of a PE of that peak [FLOP/s] and memory bandwidth [B/s]; fitted: as FITTED."""
    shared = {name: value for name, value in fitted.items() if name != "ridges"}
    half_width = fitted["ridges"] * peak / bandwidth
    return Rates(peak, bandwidth, half_width=half_width, **shared, **ASSUMED)
