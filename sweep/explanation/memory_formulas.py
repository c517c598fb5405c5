"""Formulas, with numbers, for the parts of the memory on the fullest PE.

Symbols: docs/oracle.md, and for the machine oracle docs/machine.md, Memory of a PE.
"""

import math
from typing import Any

import numpy as np

from paradl.grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS
from paradl.grids.grid import Grid
from paradl.grids.inputs.groups import Groups
from paradl.kernels.compiled import fetch
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.parallelisms import KINDS
from paradl.kernels.oracle.reduction import hold_layers
from paradl.sweep.answers.numbers import number
from paradl.sweep.cases.memory_parts import Sharing, find_sharing, take_leading

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


def list_memory_formulas(grid: Grid, case: Case, groups: Groups, predicted: Row) -> list[Row]:
    """Return one row per part of the memory in `predicted`, with its formula and numbers.

    groups: those of the case, with choices settled.
    """
    parts: dict[str, float] = predicted["memory_parts"]
    if grid.spec.oracle == "paper":
        formulas = _write_table_iii(case, groups, predicted)
    else:
        formulas = _write_states(grid, parts, find_sharing(case)) | {
            "activations": _write_activations(groups, predicted),
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


def _write_states(grid: Grid, parts: Row, sharing: Sharing | None) -> dict[str, Formula]:
    """Return formulas of weights, gradients and the optimizer's states, which ZeRO shares."""
    precision, optimizer = PRECISIONS[grid.systems[0].precision], grid.spec.optimizer
    whole = sharing or Sharing(zero=0, pes=1.0)
    over = {least: f" / {n:g}" if (n := whole.divide(least)) > 1 else "" for least in (1, 2, 3)}
    of_weight = precision.item / whole.divide(3) + precision.master / whole.divide(1)
    count = f"{parts['weights'] / of_weight:.10g}"
    # Tables with sparse gradients have gradients only for the rows that a pass touches.
    touched = f"{parts['gradients'] * whole.divide(2) / precision.gradient:.10g}"
    held = f"sum (|w| + |bi|), of a PE's part{', over the PEs of ZeRO' if sharing else ''}"
    states = held if touched == count else f"{held}, of sparse tables only touched rows"
    gathered = parts.get("gathered", 0.0) / precision.item
    return {
        "weights": (
            f"(a + its copy in fp32) {held}",
            f"({precision.item} B{over[3]} + {precision.master} B{over[1]}) x {count}",
        ),
        "gradients": (f"g {states}", f"{precision.gradient} B{over[2]} x {touched}"),
        "optimizer": (
            f"{optimizer}'s states {states}",
            f"{OPTIMIZER_BYTES[optimizer]} B{over[1]} x {touched}",
        ),
        "gathered": ("a |w| of the two largest layers", f"{precision.item} B x {gathered:.10g}"),
    }


def _write_activations(groups: Groups, predicted: Row) -> Formula:
    """Return the formula of the activations that are alive at once, and where."""
    strategy, recompute = groups.strategy, groups.options.recompute == "full"
    b = predicted["batch"]
    numbers = f"{b:g} x {predicted['memory_parts']['activations'] / b:.10g} B"
    staged = [name for name in strategy.parts if KINDS[name].segmented]
    stages = math.prod(predicted["degrees"][name] for name in staged)
    if strategy.placed:
        return "b (kept (1-1/S) + received + peak/S), of the fullest device", numbers
    if strategy.cut_by_axis and stages > 1:
        # One segment runs backward while the others in flight wait.
        early = groups.options.schedule == "1f1b"
        waiting = "(S_i-1)/S, S_i = min(q_p-i, S) in stage i" if early else "1-1/S"
        kept = f"x a ({waiting}) in the first stage" if recompute else f"kept ({waiting})"
        return f"b ({kept} + received + peak/S), of the fullest stage", numbers
    if recompute:
        peak = "b (inputs of all runs of layers + peak of the largest run)"
        return f"{peak}, or without recompute if that is less", numbers
    name, kept_bytes, gradients = _find_peak(groups)
    return (
        f"b (kept by layers up to {name} + gradients (|x|+|y|) a there), the peak",
        f"{b:g} x ({kept_bytes:.10g} B + {gradients:.10g} B)",
    )


def _find_peak(groups: Groups) -> tuple[str, float, float]:
    """Return the layer whose backward pass is the peak, kept tensors, gradients [B per sample]."""
    tensors, _ = fetch(hold_layers(groups.divide(groups.place()[0])))
    # Up to each layer: in the backward pass the layers behind it have been freed.
    kept = np.cumsum(take_leading(np.broadcast_to(tensors.kept, tensors.inputs.shape)))
    gradients = take_leading(tensors.inputs + tensors.outputs)
    most = int(np.argmax(kept + gradients))
    return groups.table.names[most], float(kept[most]), float(gradients[most])
