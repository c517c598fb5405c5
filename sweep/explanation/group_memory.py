"""Memory of the fullest PE of a group by part, with formulas, and the largest batch that fits.

Symbols: docs/oracle.md, and for the machine oracle docs/machine.md, Memory per PE.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from paradl.grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS
from paradl.grids.grid import Grid
from paradl.grids.inputs.groups import Groups
from paradl.kernels.compiled import fetch
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.parallelisms import KINDS
from paradl.kernels.oracle.formulas import find_gathered, find_share, find_unit
from paradl.kernels.oracle.reduction import hold_layers
from paradl.kernels.work.group import Touched
from paradl.kernels.work.schedules import SCHEDULES, name_schedule
from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.numbers import number
from paradl.sweep.explanation.formulas import RESERVED, Formula

# Activations and weights in the sum of Table III, by what a group divides.
TABLE_III = {
    "rows": ("sum 2 (|x|+|y|) (s/p2 + 1-s)", "sum (2|w| + |bi|)"),
    "layers": ("sum 2 (|x|+|y|), of the fullest stage", "sum (2|w| + |bi|), of that stage"),
    **dict.fromkeys(("filters", "channels"), ("sum 2 (|x|+|y|)", "sum (2|w| (s/p2 + 1-s) + |bi|)")),
    "nothing": ("sum 2 (|x|+|y|)", "sum (2|w| + |bi|)"),
}


# Bytes of a weight by part of its states, each with the PEs that share them.
States = Mapping[str, Sequence[tuple[int, float]]]


def find_states(grid: Grid, case: Case, system: int) -> States:
    """Find the states of a case's weights, and their sharing among PEs."""
    precision, zero = PRECISIONS[grid.systems[system].precision], case.options.zero
    pes = number(case.find_shards().degree) if zero else 1.0
    # ZeRO shares master weights from stage 1 on, like the optimizer's states.
    first, second, third = (pes if zero >= least else 1.0 for least in (1, 2, 3))
    return {
        "weights": [(precision.item, third), (precision.master, first)],
        "gradients": [(precision.gradient, second)],
        "states": [(OPTIMIZER_BYTES[grid.spec.optimizer], first)],
    }


def _sum_held(states: States) -> dict[str, float]:
    """Sum the bytes of a weight on a PE, by part."""
    return {name: sum(size / pes for size, pes in shares) for name, shares in states.items()}


def measure_parts(grid: Grid, case: Case, system: int) -> tuple[dict[str, float], int | None]:
    """Measure the parts of the memory [B], and the most samples per replica that fit.

    0: not one sample fits. None: samples keep nothing, so any number of them fits.
    """
    work = case.layer_work
    unit, reserved = map(number, find_unit(case))
    activations = unit * take_leading(work.activations)
    parameters, gathered = unit * take_leading(work.parameters), 0.0
    if case.options.zero:
        gathered = number(find_gathered(case, case.machine_work))
        parameters = number(find_share(case)) * parameters
    # States [B, by stage] of the rows of sparse tables that a sample looks up, and of all rows.
    rows = all_rows = np.zeros_like(parameters)
    if case.options.oracle == "machine" and (looked_up := case.machine_work.row_states):
        rows, all_rows = take_leading(looked_up.sample), take_leading(looked_up.most)
    batch = number(case.run.batch)
    fullest = int(np.argmax(batch * activations + parameters + np.minimum(batch * rows, all_rows)))
    # What is gathered is the same on every stage, as what is reserved is.
    room = number(case.pe.memory_capacity) - (reserved + gathered) - parameters
    # Samples that fit while each looks up more rows, and once all rows are looked up.
    growing, full = _divide(room, activations + rows), _divide(room - all_rows, activations)
    most = np.where(room < all_rows, growing, np.maximum(growing, full)).min()
    parts = {"activations": float(batch * activations[fullest])}
    held = _sum_held(find_states(grid, case, system))
    parts |= _part_states(case, held, float(parameters[fullest]))
    parts |= {"gathered": gathered} if gathered else {}
    largest = max(0, math.floor(most)) if math.isfinite(most) else None
    return parts | {"reserved": reserved}, largest


def _part_states(case: Case, held: Mapping[str, float], once: float) -> dict[str, float]:
    """Split what does not depend on the batch [B] into weights, gradients and states.

    held: bytes of a weight on a PE, by part.
    """
    if case.options.oracle == "paper":  # which only has weights and gradients
        return {"parameters": once}
    if touched := case.machine_work.touched:
        return _part_touched(held, touched, once, number(case.run.batch))
    weights = once / sum(held.values())
    return {name: weights * size for name, size in held.items()}


def take_leading(values: Any) -> Floats:
    """Take values by stage, layer or device [first dimension] of a case of one cell."""
    return np.asarray(values, float).reshape(np.shape(values)[0], -1)[:, 0]


def _divide(room: Floats, held: Floats) -> Floats:
    """Compute samples of `held` bytes that fit into `room`; infinite for 0 bytes."""
    return np.where(held > 0, room / np.where(held > 0, held, 1.0), np.inf)


def _part_touched(
    sizes: Mapping[str, float], touched: Touched, once: float, batch: float
) -> dict[str, float]:
    """Split states [B] where only touched rows of sparse tables have gradients."""
    of_weight, of_row = sizes["weights"], sizes["gradients"] + sizes["states"]
    whole, tables, biases, drawn, looked_up = (
        take_leading(getattr(touched, part.name)) for part in fields(touched)
    )
    tables = tables + biases
    rows = np.minimum(tables, drawn + batch * looked_up)
    # Find the fullest stage as the nearest sum, which differs by a few biases.
    left = once - ((of_weight + of_row) * whole + of_weight * tables + of_row * drawn)
    stage = int(np.argmin(np.abs(left)))
    dense = whole[stage] + left[stage] / (of_weight + of_row)
    held = {"weights": tables[stage], "gradients": rows[stage], "states": rows[stage]}
    return {name: float(size * (dense + held[name])) for name, size in sizes.items()}


def write_memory(grid: Grid, case: Case, groups: Groups, predicted: Row) -> dict[str, Formula]:
    """Write each part of a group's memory in `predicted`.

    groups: those of the case, with choices settled.
    """
    if case.options.oracle == "paper":
        return _write_table_iii(case, groups, predicted)
    parts: dict[str, float] = predicted["memory_parts"]
    zero, optimizer = case.options.zero > 0, grid.spec.optimizer
    return _write_states(find_states(grid, case, 0), parts, zero, optimizer) | {
        "activations": _write_activations(groups, predicted),
        "reserved": (RESERVED, f"{parts['reserved']:.6g} B"),
    }


def _write_table_iii(case: Case, groups: Groups, predicted: Row) -> dict[str, Formula]:
    """Write Table III's activations and parameters; items follow from bytes."""
    parts = groups.strategy.parts
    activations, weights = TABLE_III[KINDS[parts[0]].divides if parts else "nothing"]
    # Computed back from the answer, so that the product on the page is the answer exactly.
    gamma, delta = number(case.run.gamma), number(case.run.delta)
    b, held = predicted["batch"], predicted["memory_parts"]
    kept, once = held["activations"] / (gamma * delta) / b, held["parameters"] / (gamma * delta)
    factors = f"{gamma:g} x {delta:g} B"
    return {
        "activations": (f"gamma delta b {activations}", f"{factors} x {b:g} x {kept:.10g}"),
        "parameters": (f"gamma delta {weights}", f"{factors} x {once:.10g}"),
    }


def _write_states(states: States, parts: Row, zero: bool, optimizer: str) -> dict[str, Formula]:
    """Write weights, gradients and the optimizer's states, which ZeRO shares."""
    held_bytes, item = _sum_held(states), states["weights"][0][0]
    bytes_of = {
        name: " + ".join(f"{size} B / {pes:g}" if pes > 1 else f"{size} B" for size, pes in terms)
        for name, terms in states.items()
    }
    count = f"{parts['weights'] / held_bytes['weights']:.10g}"
    # Tables with sparse gradients have gradients only for the rows that a pass touches.
    touched = f"{parts['gradients'] / held_bytes['gradients']:.10g}"
    held = f"sum (|w| + |bi|), of a PE's part{', over the PEs of ZeRO' if zero else ''}"
    updated = held if touched == count else f"{held}, of sparse tables only touched rows"
    gathered = f"{item} B x {parts.get('gathered', 0.0) / item:.10g}"
    return {
        "weights": (f"(a + its copy in fp32) {held}", f"({bytes_of['weights']}) x {count}"),
        "gradients": (f"g {updated}", f"{bytes_of['gradients']} x {touched}"),
        "states": (f"{optimizer}'s states {updated}", f"{bytes_of['states']} x {touched}"),
        "gathered": ("a |w| of the two largest layers", gathered),
    }


def _write_activations(groups: Groups, predicted: Row) -> Formula:
    """Write the activations that are alive at once, and where."""
    strategy, recompute = groups.strategy, groups.options.recompute == "full"
    b = predicted["batch"]
    numbers = f"{b:g} x {predicted['memory_parts']['activations'] / b:.10g} B"
    staged = [name for name in strategy.parts if KINDS[name].segmented]
    stages = math.prod(predicted["degrees"][name] for name in staged)
    if strategy.placed:
        return "b (kept (1-1/S) + received + peak/S), of the fullest device", numbers
    if strategy.staged and stages > 1:
        # One segment runs backward while the others in flight wait.
        chunks = groups.options.chunks
        flying = SCHEDULES[name_schedule(groups.options.schedule, chunks)].formula
        waiting = f"({flying} - {'1' if chunks == 1 else '1/v'})/S"
        kept = f"x a {waiting} in the first stage" if recompute else f"kept {waiting}"
        return f"b ({kept} + received + peak/S), of the fullest stage i", numbers
    if recompute:
        peak = "b (inputs of all runs of layers + peak of the largest run)"
        return f"{peak}, or without recompute if that is less", numbers
    name, kept_bytes, gradients = _find_peak(groups)
    again = "" if strategy.recompute != "layernorm" else " + what runs again"
    return (
        f"b (kept by layers up to {name} + gradients (|x|+|y|) a{again} there), the peak",
        f"{b:g} x ({kept_bytes:.10g} B + {gradients:.10g} B)",
    )


def _find_peak(groups: Groups) -> tuple[str, float, float]:
    """Find the layer whose backward pass is the peak, kept tensors, gradients [B per sample]."""
    tensors, _ = fetch(hold_layers(groups.divide(groups.place()[0])))
    # Up to each layer: in the backward pass the layers behind it have been freed.
    kept = np.cumsum(take_leading(np.broadcast_to(tensors.kept, tensors.inputs.shape)))
    gradients = take_leading(tensors.backward)
    most = int(np.argmax(kept + gradients))
    return groups.table.names[most], float(kept[most]), float(gradients[most])
