"""What kernels and links reach when they train transformers, on any machine.

Fitted to published runs (`python -m benchmarks layouts`), beside priors of the machine oracle.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from paradl.grids.entries.calibration import LayoutTime
from paradl.grids.entries.machine_parameters import BLOCK_ROWS
from paradl.grids.entries.precision import NARROW, RECIPES
from paradl.grids.entries.software import LayoutFacts
from paradl.grids.entries.systems import ProcessingElement, System
from paradl.grids.reading.errors import InputError, format_count
from paradl.kernels.machine.rates import Peaks, StackFacts
from paradl.kernels.work.transformer import Family

# Share of the peak that large products of blocks reach where a board's power allows more, held near
# what A100's largest reach (Korthikanti et al. 2022, table 5: 22 to 1,008 billion parameters), and
# of TPUs, at a fixed clock. ENERGY [pJ] of a FLOP in 16 bits, of boards under load.
REACH, ENERGY, SYSTOLIC = 0.819, 0.806, 0.902
# Bits of operands, where fewer than 16. Between their number, as the data that moves, and its
# square, as a multiplier's area, lies the energy of a FLOP: assumption.
BITS = MappingProxyType({"fp8": 8, "mxfp8": 8, "nvfp4": 4})
NARROWER = 1.5
# The 4-norm of both limits' inverses: a share of 0.87 that power allows leaves H100 0.71 of 0.82.
SHARPNESS = 4.0
# With medians of parameters that all devices share.
FITTED: Mapping[str, float] = MappingProxyType(
    {"reach": REACH, "systolic": SYSTOLIC, "energy": ENERGY}
    | {
        row.name: row.prior.median["bf16"]
        for row in BLOCK_ROWS
        if row.prior and row.name != "efficiency_blocks"
    }
)
# All parameters that rates follow from; the last two are those of other networks' layers.
RATES = (*(row.name for row in BLOCK_ROWS), "layer_overhead", "overlap")
A100_PEAK = 312e12  # [FLOP/s] in 16 bits; NVIDIA A100 data sheet
# 16-bit peaks of the devices that `attention_penalty` was fitted to. Their kernels are the same
# whatever peak a user sets: else a higher one slowed layouts by up to 9 %.
FITTED_PEAKS = MappingProxyType(
    {
        **dict.fromkeys(("v100", "a100"), A100_PEAK),
        **dict.fromkeys(("h100", "h200", "gh200"), 989e12),
        **dict.fromkeys(("b200", "b300"), 2250e12),
        **dict.fromkeys(("gb200", "gb300"), 2500e12),
    }
)
NEWER = 2.0  # of A100's peak: GPUs whose tensor cores have instructions that A100's lack
# Spreads of ln(predicted / measured), each by a cause; those that apply add in quadrature. Of dense
# networks in 16 bits, and beside draws of parameters; then what runs left out of the fit err more
# by: of mixtures of experts, in narrow products, on devices of few runs, and if the software's ways
# are not known.
SPREAD, REST = 0.1, 0.035
NARROW_SPREAD = 0.03
# By family of networks: two runs of images are known, 0.71 and 0.49 of whose time is predicted.
FAMILIES: Mapping[Family, tuple[str, float]] = MappingProxyType(
    {
        "dense": ("a dense network", 0.0),
        "experts": ("a mixture of experts", 0.17),
        "images": ("a network of images", 0.5),
        "tuned": ("fine-tuning, no run of which is known", 0.25),
    }
)
FEW_SPREAD = 0.1
SOFTWARE_SPREAD = 0.08
# Between stacks on a machine, which a calibration measures: 0.09 between 23 of dense networks in
# the catalogue's runs of layouts, 0.12 within one.
STACK_SPREAD = 0.08
# On devices without a run: GPUs' reach misses TPUs' by a third.
NEW_SPREAD = 0.25
# By the first letters of devices whose makers have software of their own: in 16 and in fewer bits.
# Gaudi 2's five runs take 0.7 to 0.9 of the prediction; fp8 kernels for MI300X took 2.2 times as
# long in 2024, those for MI355X what is predicted in 2025.
MAKERS = MappingProxyType({"mi": ("AMD", 0.3, 0.65), "gaudi": ("Intel", 0.3, 0.35)})
# The largest network, and the most PEs, of a fitted run. Errors grow with each factor of e beyond:
# assumption, since those above 100 billion parameters, or 1,024 PEs, err no more than others where
# all of them are left out of the fit.
LARGEST, MOST_PES = 1.01e12, 11_616
FAR_SPREAD = 0.04
DEVICES_OF_MANY = ("v100", "a100", "h100")
DEVICES_OF_FEW = ("h200", "b200", "gb200", "b300", "gb300", "tpu-v5p", "tpu-v5e", "tpu-v6e")
# Others of NVIDIA and Google, whose devices err no more where a fit has not seen them.
DEVICES_ALIKE = (
    *("p100", "a10", "a30", "a40", "a800", "l4", "l40", "l40s", "h20", "h800", "gh200"),
    *("rtx4090", "tpu-v4"),
)
# Of one run beside others of the same network, software and PEs (an error that all share ranks
# none): the most probable one by 205 pairs of published layouts, `python -m benchmarks scoreboard`.
RIVAL_SPREAD = 0.055
# The 16-bit peak that a recipe of bytes a parameter runs at, by the names of `tensor_peaks`.
PEAKS = MappingProxyType({"fp16": "amp", "zero": "amp", "fp32": "fp32"})
UNKNOWN = "ddp"  # the software of a system that states none
# The recipe of bytes per parameter, by a system's precision.
OF_PRECISION = {"bf16": "bf16", "amp": "fp16", "fp32": "fp32"} | {name: name for name in NARROW}


def find_recipe(system: System) -> str:
    """Return the recipe's name: of `amp`, bf16 where a device has it. InputError: none is known."""
    if system.precision not in OF_PRECISION:
        what = f"times of layouts are not predicted in {system.precision}"
        advice = "write ':precision=bf16' behind its name"
        raise InputError(what, where=f"system {system.name}", advice=advice)
    if system.precision == "amp":
        return find_usual_recipe(system)
    return OF_PRECISION[system.precision]


def find_usual_recipe(system: System) -> str:
    """Return the recipe that people train in: the system's if it is narrow, else of 16 bits."""
    if system.precision in NARROW:
        return system.precision
    peaks = system.pe.list_tensor_peaks()
    return next((OF_PRECISION[name] for name in ("bf16", "amp") if name in peaks), "fp32")


def find_peaks(system: System, precision: str) -> Peaks:
    """Return the peaks of a PE in a recipe; InputError: one is not stated."""
    name = RECIPES[precision].peak
    wide = find_peak(system, PEAKS.get(precision, "bf16"), precision)
    peak = find_peak(system, name, precision) if name else wide
    return Peaks(peak, wide, system.pe.peak_flops)


def list_causes(
    device: str,
    precision: str,
    family: Family,
    is_known: bool = True,
    calibrated: LayoutTime | None = None,
    is_drawn: bool = False,
) -> dict[str, float]:
    """List what makes predictions unsure: standard deviations of ln(predicted / measured).

    precision: a recipe of bytes a parameter; is_known: whether the software is stated. calibrated:
    by runs of the same software, whatever that is. is_drawn: whether draws of parameters, which a
    calibration's runs contain, come on top.
    """
    kind, known = find_family(device), DEVICES_OF_MANY + DEVICES_OF_FEW + DEVICES_ALIKE
    unseen = "unseen network" if calibrated else "unseen network and software"
    causes = (
        (unseen, REST if is_drawn else SPREAD, True),
        (*FAMILIES[family], family != "dense"),
        (f"products in {precision}", NARROW_SPREAD, bool(RECIPES[precision].peak)),
        (f"few runs on {kind}", FEW_SPREAD, kind in DEVICES_OF_FEW),
        (f"no run on {kind}, only on its maker's", FEW_SPREAD, kind in DEVICES_ALIKE),
        (*_blame_maker(kind, precision), kind not in known),
        ("software not stated", SOFTWARE_SPREAD, not is_known and calibrated is None),
    )
    applying = {cause: spread for cause, spread, applies in causes if applies}
    if calibrated is None:
        return applying
    # What the runs scatter by is beside their factor, which few runs leave unsure.
    scattered = {cause: spread * calibrated.scatter for cause, spread in applying.items()}
    runs = format_count(calibrated.runs, "run")
    return scattered | {f"a factor fitted to {runs}": find_factor_spread(calibrated, is_known)}


def _blame_maker(kind: str, precision: str) -> tuple[str, float]:
    """Return what a device without a run, or its maker's software, makes unsure, and the spread."""
    for letters, (maker, wide, narrow) in MAKERS.items():
        if kind.startswith(letters):
            return f"software of {maker}", narrow if RECIPES[precision].peak else wide
    return f"no run on {kind}", NEW_SPREAD


def find_far_spread(
    parameters: float, pes: Any, largest: float = LARGEST, most: float = MOST_PES
) -> Any:
    """Return the spread of a run beyond the fitted ones; pes, a number or an array, as the result.

    largest, most: parameters and PEs of the fitted runs.
    """
    beyond = np.log(max(parameters / largest, 1.0)), np.log(np.maximum(pes / most, 1.0))
    return FAR_SPREAD * np.hypot(*beyond)


def find_prior_spread(is_known: bool) -> float:
    """Spread of a stack's factor before any run; is_known: whether the software is stated."""
    return STACK_SPREAD if is_known else math.hypot(STACK_SPREAD, SOFTWARE_SPREAD)


def find_factor_spread(calibrated: LayoutTime, is_known: bool) -> float:
    """Spread of a stack's factor after its runs."""
    precision = calibrated.runs / (SPREAD * calibrated.scatter) ** 2
    return float((find_prior_spread(is_known) ** -2 + precision) ** -0.5)


def find_spread(
    device: str,
    precision: str,
    family: Family,
    is_known: bool = True,
    calibrated: LayoutTime | None = None,
    is_drawn: bool = False,
) -> float:
    """Standard deviation of ln(predicted / measured), by `list_causes`."""
    causes = list_causes(device, precision, family, is_known, calibrated, is_drawn)
    return math.hypot(*causes.values())


def find_system_spread(
    system: System,
    precision: str,
    family: Family,
    calibrated: LayoutTime | None = None,
    is_drawn: bool = False,
) -> float:
    """Standard deviation of ln(predicted / measured) on a system, of a recipe."""
    is_known = system.software != UNKNOWN
    device = system.pe.device
    return find_spread(device, precision, family, is_known, calibrated, is_drawn)


def describe_times(
    system: System, precision: str, family: Family, calibrated: LayoutTime | None = None
) -> str:
    """Words on where times of layouts come from, and what their interval allows for."""
    is_known = system.software != UNKNOWN
    causes = [*list_causes(system.pe.device, precision, family, is_known, calibrated)]
    if calibrated is None:
        causes.append("priors of parameters")
    return f"rates fitted to published runs; interval: {', '.join(causes)}"


def find_family(device: str) -> str:
    """The device, whatever its memory or cluster: a100-80gb is an a100."""
    return device if is_systolic(device) else device.partition("-")[0]


def is_systolic(device: str) -> bool:
    """Whether a device's products run in systolic arrays at a fixed clock: Google's TPUs."""
    return device.startswith("tpu")


def find_peak(system: System, name: str, precision: str) -> float:
    """A peak of the system's PEs [FLOP/s]; InputError: it is not stated."""
    peaks = {"fp32": system.pe.peak_flops, **system.pe.list_tensor_peaks()}
    if name not in peaks:
        known = (
            recipe
            for recipe in OF_PRECISION.values()
            if {PEAKS.get(recipe, "bf16"), RECIPES[recipe].peak or "fp32"} <= peaks.keys()
        )
        what, advice = f"{system.pe.name} has no peak in {precision}", f"take {' or '.join(known)}"
        raise InputError(what, where="precision", advice=advice)
    return peaks[name]


def find_efficiency(
    system: System, precision: str | None = None, fitted: Mapping[str, Any] = FITTED
) -> Any:
    """Return the share of the peak that a device's large products reach.

    precision: a recipe; None: that of the system. fitted: values of `reach`, `systolic` and
    `energy`, numbers or columns.
    """
    pe = system.pe
    if is_systolic(pe.device):
        return fitted["systolic"]
    if pe.watts is None:
        return fitted["reach"]
    peak = find_peaks(system, precision).products if precision else system.peak
    # Clocks fall under load where all products together would need more power than the board has.
    narrow = BITS.get(precision or system.precision, 16) / 16
    powered = pe.watts / (fitted["energy"] * 1e-12 * narrow**NARROWER * peak)
    return (fitted["reach"] ** -SHARPNESS + powered**-SHARPNESS) ** (-1 / SHARPNESS)


def _find_wide_peak(pe: ProcessingElement) -> float:
    """Return the stated 16-bit peak of a device [FLOP/s]."""
    peaks = pe.list_tensor_peaks()
    return peaks.get("bf16") or peaks.get("amp") or pe.peak_flops


def _compare_peak(pe: ProcessingElement) -> float:
    """Return a device's 16-bit peak over A100's, at least 1."""
    return max(FITTED_PEAKS.get(find_family(pe.device), _find_wide_peak(pe)) / A100_PEAK, 1.0)


def read_facts(system: System, precision: str, facts: LayoutFacts | None = None) -> StackFacts:
    """Return facts of a system's device and software. facts: of other software.

    precision: a recipe. InputError: a peak is not stated.
    """
    known = facts or system.software_facts.layouts
    return StackFacts(
        find_peaks(system, precision),
        known,
        slow_attention=_compare_peak(system.pe) >= NEWER and not known.native_attention,
        # Assumption: their vector memory of 128 MiB holds them.
        keeps_sums=is_systolic(system.pe.device),
    )
