"""Formulas, with numbers, for the parts of the memory on the fullest PE.

Symbols: docs/oracle.md, and for the machine oracle docs/machine.md, Memory of a PE.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS
from grids.grid import Grid
from grids.inputs.groups import Groups
from kernels.compiled import fetch
from kernels.configuration.case import Case
from kernels.names.parallelisms import KINDS
from kernels.oracle.formulas import find_share
from kernels.oracle.reduction import hold, hold_layers
from sweep.answers.numbers import number
from sweep.cases.memory_parts import Sharing, find_sharing, take_leading

Row = dict[str, Any]
Formula = tuple[str, str]  # in symbols, and with numbers

# Activations and weights in the sum of Table III, by what a group divides.
TABLE_III = {
    "rows": ("sum 2 (|x|+|y|) (s/p2 + 1-s)", "sum (2|w| + |bi|)"),
    "layers": ("sum 2 (|x|+|y|), of the fullest stage", "sum (2|w| + |bi|), of that stage"),
    "filters": ("sum 2 (|x|+|y|)", "sum (2|w| (s/p2 + 1-s) + |bi|)"),
    "channels": ("sum 2 (|x|+|y|)", "sum (2|w| (s/p2 + 1-s) + |bi|)"),
    "nothing": ("sum 2 (|x|+|y|)", "sum (2|w| + |bi|)"),
}


@dataclass(frozen=True)
class Fullest:
    """The fullest stage or device: what its layers keep, their input and peak [B per sample].

    flying: segments in flight at once.
    """

    position: int
    kept: float
    entry: float
    peak: float
    flying: float


def list_memory_formulas(grid: Grid, case: Case, groups: Groups, predicted: Row) -> list[Row]:
    """Return one row per part of the memory in `predicted`, with its formula and numbers.

    groups: those of the case, with choices settled.
    """
    parts: dict[str, float] = predicted["memory_parts"]
    if grid.spec.oracle == "paper":
        formulas = _write_table_iii(case, groups, predicted)
    else:
        # None without ZeRO: each PE holds all of its states.
        stated = find_share(case)
        share = 1.0 if stated is None else number(stated)
        formulas = _write_states(grid, parts, find_sharing(case)) | {
            "activations": _write_activations(groups, predicted, share),
            "reserved": (
                "reserved: memory of the driver, workspaces, buffers",
                f"{parts['reserved']:.6g} B",
            ),
        }
    # The sum of the answer's parts, so that shares add up to 1.
    whole = sum(parts.values())
    return [
        {
            "part": name,
            "formula": formulas[name][0],
            "numbers": formulas[name][1],
            "bytes": size,
            "share": size / whole,
        }
        for name, size in parts.items()
        if name in formulas
    ]


def _write_table_iii(case: Case, groups: Groups, predicted: Row) -> dict[str, Formula]:
    """Return formulas of Table III's activations and parameters; items follow from bytes."""
    parts = groups.strategy.parts
    activations, weights = TABLE_III[KINDS[parts[0]].divides if parts else "nothing"]
    # Computed back from the answer, so that the product on the page is the answer exactly.
    unit = number(case.run.gamma) * number(case.run.delta)
    b, held = predicted["batch"], predicted["memory_parts"]
    factors = f"{number(case.run.gamma):g} x {number(case.run.delta):g} B"
    return {
        "activations": (
            f"gamma delta b {activations}",
            f"{factors} x {b:g} x {held['activations'] / unit / b:.10g}",
        ),
        "parameters": (f"gamma delta {weights}", f"{factors} x {held['parameters'] / unit:.10g}"),
    }


def _write_shared(grid: Grid, parts: Row, sharing: Sharing) -> dict[str, Formula]:
    """Return formulas of states that ZeRO shares, and of the layers that it gathers."""
    precision, bytes_of = PRECISIONS[grid.systems[0].precision], OPTIMIZER_BYTES
    alone, gradients, states = (sharing.divide(least) for least in (3, 2, 1))
    count = parts["gradients"] * gradients / precision.gradient
    held, copies = "sum (|w| + |bi|)", f"{precision.item} B / {alone:g}"
    optimizer = bytes_of[grid.spec.optimizer]
    return {
        "weights": (
            f"(a, and its copy in fp32, both over ZeRO's PEs) {held}",
            f"({copies} + {precision.master} B / {states:g}) x {count:.10g}",
        ),
        "gradients": (
            f"g {held}, over ZeRO's PEs",
            f"{precision.gradient} B / {gradients:g} x {count:.10g}",
        ),
        "optimizer": (
            f"{grid.spec.optimizer}'s states {held}, over ZeRO's PEs",
            f"{optimizer} B / {states:g} x {count:.10g}",
        ),
        "gathered": (
            "a |w| of the two largest layers",
            f"{precision.item} B x {parts.get('gathered', 0.0) / precision.item:.10g}",
        ),
    }


def _write_states(grid: Grid, parts: Row, sharing: Sharing | None) -> dict[str, Formula]:
    """Return formulas of weights, gradients and the optimizer's states."""
    if sharing is not None:
        return _write_shared(grid, parts, sharing)
    system, optimizer = grid.systems[0], grid.spec.optimizer
    precision = PRECISIONS[system.precision]
    count = f"{parts['weights'] / precision.weight:.10g}"
    # Tables with sparse gradients have gradients only for the rows that a pass touches.
    touched = f"{parts['gradients'] / precision.gradient:.10g}"
    held = "sum (|w| + |bi|), of a PE's part"
    states = held if touched == count else f"{held}, of sparse tables only touched rows"
    copies = f"({precision.item} B + {precision.master} B)"
    return {
        "weights": (f"(a + its copy in fp32) {held}", f"{copies} x {count}"),
        "gradients": (f"g {states}", f"{precision.gradient} B x {touched}"),
        "optimizer": (
            f"{optimizer}'s states {states}",
            f"{OPTIMIZER_BYTES[optimizer]} B x {touched}",
        ),
    }


def _write_activations(groups: Groups, predicted: Row, share: float) -> Formula:
    """Return the formula of the activations that are alive at once, and where."""
    strategy, recompute = groups.strategy, groups.options.recompute == "full"
    b, segments = predicted["batch"], predicted["segments"]
    staged = [name for name in strategy.parts if KINDS[name].segmented]
    stages = math.prod(predicted["degrees"][name] for name in staged)
    if strategy.cut_by_axis and stages > 1:
        return _write_stage(groups, b, segments, recompute, share)
    if strategy.placed:
        return _write_device(groups, b, segments if stages > 1 else 1)
    if recompute:
        sample = predicted["memory_parts"]["activations"] / b
        return (
            "b (inputs of all runs of layers + peak of the largest run), or without recompute"
            " if that is less",
            f"{b:g} x {sample:.10g} B",
        )
    name, kept, gradients = _find_peak(groups)
    return (
        f"b (kept by layers up to {name} + gradients (|x|+|y|) a there), the peak",
        f"{b:g} x ({kept:.10g} B + {gradients:.10g} B)",
    )


def _write_device(groups: Groups, b: float, segments: float) -> Formula:
    """Return the formula for the fullest device of a placed group, with all segments in flight."""
    at = _find_fullest(groups, b, share=1.0)
    device = f"of device {at.position + 1}"
    if segments == 1:
        numbers = f"{b:g} x ({at.entry:.10g} B + {at.peak - at.entry:.10g} B)"
        return f"b (received + peak), {device}", numbers
    peak = segments * (at.peak - at.entry - (1 - 1 / segments) * at.kept)
    return (
        f"b (kept (1-1/S) + received + peak/S), {device}",
        f"{b:g} x ({at.kept:.10g} B x (1-1/{segments:g}) + {at.entry:.10g} B"
        f" + {peak:.10g} B / {segments:g})",
    )


def _write_stage(
    groups: Groups, b: float, segments: float, recompute: bool, share: float
) -> Formula:
    """Return the formula for the fullest stage: one segment runs backward while the others wait."""
    at = _find_fullest(groups, b, share)
    waiting, name, part = f"(1-1/{segments:g})", "1-1/S", ""
    if groups.options.schedule == "1f1b":  # F segments are in flight in stage i of q
        name, part = "(F-1)/S, F = min(q-i, S)", f" x {at.flying:g}/{segments:g}"
        waiting = f"({at.flying:g}-1)/{segments:g}"
    others = f"{at.kept:.10g} B x {waiting}"
    kept, received = f"kept ({name})", f"{at.entry:.10g} B{part}"
    if recompute:
        others = f"{at.entry:.10g} B x {waiting}" if at.position == 0 else "0 B"
        kept = f"x a ({name}) in the first stage"
    if at.position == 0:
        received = "0 B"
    return (
        f"b ({kept} + received + peak/S), of stage {at.position + 1}",
        f"{b:g} x ({others} + {received} + {at.peak:.10g} B / {segments:g})",
    )


def _find_fullest(groups: Groups, b: float, share: float) -> Fullest:
    """Find the stage, or the device of a placed group, with the most memory.

    share: fraction of the states that a PE holds.
    """
    holding = fetch(hold(groups.divide(groups.place()[0])))
    kept, peak, entry, states = (
        take_leading(held) for held in (holding.kept, holding.peak, holding.entry, holding.states)
    )
    sample, flying = peak, np.ones_like(peak)
    if groups.strategy.cut_by_axis:
        first = np.arange(peak.size) == 0
        segments = float(np.asarray(groups.segments).item())
        others = first * entry if groups.options.recompute == "full" else kept
        flying = np.full(peak.size, segments)
        if groups.options.schedule == "1f1b":
            degree = float(np.asarray(groups.degrees["pipeline"]).item())
            flying = np.clip(degree - np.arange(peak.size), 1, segments)
        sample = ((flying - 1) * others + ~first * entry * flying + peak) / segments
    # The fullest by all that it holds, as the oracle's maximum: the stage with the most activations
    # need not be it.
    most = int(np.argmax(b * sample + share * states))
    numbers = (float(values[most]) for values in (kept, entry, peak, flying))
    return Fullest(most, *numbers)


def _find_peak(groups: Groups) -> tuple[str, float, float]:
    """Return the layer whose backward pass is the peak, kept tensors, gradients [B per sample]."""
    tensors, _ = fetch(hold_layers(groups.divide(groups.place()[0])))
    # Up to each layer: in the backward pass the layers behind it have been freed.
    kept = np.cumsum(take_leading(np.broadcast_to(tensors.kept, tensors.inputs.shape)))
    gradients = take_leading(tensors.inputs + tensors.outputs)
    most = int(np.argmax(kept + gradients))
    return groups.table.names[most], float(kept[most]), float(gradients[most])
