"""What kernels and links reach when they train transformers, on any machine.

Fitted to published runs of bf16 and fp16 (`python -m benchmarks layouts`); `hidden_gradients`,
`hidden_weights` and `launch` are assumptions, about which those runs say nothing.
"""

from types import MappingProxyType

from grids.entries.systems import System
from grids.reading.errors import InputError
from kernels.layouts.time import Rates

FITTED = MappingProxyType(
    {"reach": 0.599, "half_width": 401.0, "attention": 0.275, "passes": 2.84, "rail": 0.78}
)
ASSUMED = MappingProxyType({"hidden_gradients": 0.95, "hidden_weights": 0.95, "launch": 1e-5})
# Of ln(predicted / measured), so that 80 % intervals hold runs of stacks left out of the fit.
SPREAD = 0.17
# The peak that products of a recipe of bytes a parameter run at; others have one of their name.
PEAKS = MappingProxyType({"bf16": "bf16", "fp16": "amp", "zero": "amp", "fp32": "fp32"})


def read_rates(system: System, precision: str) -> Rates:
    """The rates of a PE of the system; InputError: its peak is not stated."""
    peaks = system.pe.tensor_peaks
    name = PEAKS.get(precision, precision)
    peak = system.pe.peak_flops if name == "fp32" else getattr(peaks, name, None)
    if peak is None:
        raise InputError(
            f"no peak in {precision} is known of {system.name}, so times are not predicted",
            where="precision",
            advice="take bf16 or fp16, or leave out --by time",
        )
    # Attention stays in 16 bits where products have fewer: an assumption, as all of fp8 is.
    of_attention = peaks.bf16 / peak if peaks and peaks.bf16 and peaks.bf16 < peak else 1.0
    rates = FITTED | {"attention": FITTED["attention"] * of_attention}
    return Rates(peak, system.pe.memory_bandwidth, **rates, **ASSUMED)
