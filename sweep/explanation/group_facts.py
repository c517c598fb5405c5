"""Facts of a group that divides layers: terms, the numbers in them, memory and rows of layers."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import cast

import numpy as np

from paradl.grids.design_space import ONLY
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid
from paradl.grids.inputs.groups import Groups
from paradl.grids.models.layers import LayerTable
from paradl.kernels.arrays import PerLayer, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.oracle.formulas import hold_layers, time_part
from paradl.kernels.oracle.iteration import count_sent
from paradl.kernels.parallelism.layout import count_steps, find_layout
from paradl.kernels.work.division import Division, Placement
from paradl.kernels.work.group import GroupWork, share
from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.numbers import finite, number
from paradl.sweep.answers.types.prediction import LayerRow
from paradl.sweep.explanation.formulas import WorkFacts, select_terms
from paradl.sweep.explanation.group_memory import take_leading, write_memory


def list_layers(groups: Groups, batch: float, gamma: float = 1.0) -> list[LayerRow]:
    """Return one row per layer of groups of one size, with the share of one PE.

    Items and `macs` are those of the whole layer, per sample. For one PE: forward, backward [s per
    sample], overhead [s per pass], and memory [B] of the tensors that it keeps for the backward
    pass of `batch` samples, its weights, gradients and states of the optimizer; for Table III
    memory is the layer's part of the sum.
    """
    table, (placement, _) = groups.table, groups.place()
    amounts = _find_amounts(groups.divide(placement))
    flat = {name: np.asarray(values).reshape(len(table)) for name, values in amounts.items()}
    # As the oracle adds them: kept tensors once per sample, states once.
    memory = gamma * (batch * flat.pop("kept") + flat.pop("states"))
    columns = {
        "layer": table.names,
        "kind": table.kinds,
        "output": [_list_extents(table, n) for n in range(len(table))],
        "x": table.x,
        "y": table.y,
        "weights": table.w,
        "biases": table.bias,
        # A multiply-accumulate is two operations; element-wise layers have none.
        "macs": np.where(table.multiplying, np.asarray(table.flops) / 2, 0.0).tolist(),
        **_find_pes(placement, len(table), groups.strategy),
        "split": (flat.pop("split") > 0).tolist(),
        **{name: values.astype(float).tolist() for name, values in flat.items()},
        "memory": memory.astype(float).tolist(),
    }
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [cast(LayerRow, row) for row in rows]


@compiled(numpy=True)
def _find_amounts(division: Division) -> dict[str, PerLayer]:
    """Return amounts of one PE per sample, in one program, which loads faster than many."""
    placement, layout = division.placement, find_layout(division.parallelisms)
    times = time_part(division)
    whole = division.options.oracle == "paper"  # Table III divides the times of whole layers
    part = share(placement.split, division.group) if whole else 1.0
    sent = layout.count_items(division)
    nothing = xp.zeros_like(placement.split)
    kept, states = hold_layers(division)
    return {
        "split": placement.split,
        "seconds_per_sample": (times.forward + times.backward) * part,
        "forward": times.forward * part,
        "backward": times.backward * part,
        "overhead": times.fixed,
        **{name: sent.get(name, nothing) for name in ("gathered_items", "halo_items")},
        "kept": kept,
        "states": states,
    }


def _list_extents(table: LayerTable, layer: int) -> list[int]:
    """Return the output of a sample: channels, then extents, or the number of positions."""
    extents = [int(extent) for extent in table.extents_y[layer]]
    while extents and extents[0] == 1:  # leading dimensions that the network lacks
        extents.pop(0)
    shape, items = [int(table.filters[layer]), *extents], int(table.y[layer])
    known = math.prod(shape)
    if not known or items % known:  # the paper authors' files may not state extents
        return [items]
    return shape if items == known else [*shape, items // known]


def _find_pes(placement: Placement, layers: int, strategy: Strategy) -> dict[str, list[int]]:
    """Return `stage` of each layer of a pipeline, or `device` of each placed layer, from 1."""
    if placement.placed is not None:
        runs = np.asarray(placement.placed.runs)
        devices = runs.reshape(*runs.shape[:2], -1)[..., 0].argmax(axis=0)
        return {"device": (devices + 1).tolist()}
    if not strategy.segmented:
        return {}
    ends = take_leading(placement.ends)
    # Parts of a stage come in turn.
    parts = np.searchsorted(ends, np.arange(layers), side="right")
    stages = parts % (len(ends) // strategy.chunks)
    return {"stage": (stages + 1).tolist()}


# Sums of a case's work that formulas name.
SUMS = (
    *("forward_backward", "update", "fixed", "launches"),
    *("gathers", "halo_exchanges", "path_messages"),
)
# Fields of a case's work that are not numbers to be summed.
APART = ("sent", "touched", "row_states", "gathered_weights")


def find_group_facts(grid: Grid, case: Case, predicted: Row) -> WorkFacts:
    """Find the facts of a group that divides layers."""
    # A case only has sums over layers: divide the layers again, with the choices settled.
    strategy = grid.strategy(ONLY).settle(predicted | predicted["degrees"])
    groups = grid.groups(ONLY, strategy=strategy)
    assert groups is not None  # it has a time
    terms = select_terms(strategy.parts, case.options, in_shards=case.run.shards is not None)
    # Only Table III has a factor for buffer reuse; the machine counts tensors.
    gamma = number(case.run.gamma) if case.options.oracle == "paper" else 1.0
    algorithm = grid.options.algorithm
    return WorkFacts(
        terms=[(name, term, predicted["terms"][name]) for name, term in terms.items()],
        memory=write_memory(grid, case, groups, predicted),
        values=_list_values(case, predicted),
        passes=predicted["parameters"]["accumulate"],
        algorithm=algorithm if algorithm != "ring" else "",
        layers=list_layers(groups, predicted["batch"], gamma),
    )


def _list_values(case: Case, predicted: Row) -> Row:
    """Return all numbers that formulas name, beside those of the answer."""
    parameters: dict[str, float] = predicted["parameters"]
    sums, item_bytes = _add_up(case), predicted["batch"] * parameters["delta"]
    machine = vars(case.software) | {"staging_bandwidth": case.network.staging_bandwidth}
    values = {
        **{name: finite(number(value)) for name, value in machine.items()},
        **parameters,
        **{name: sums[name] for name in SUMS},
        # Gradients cross replicas once in all passes, and a formula is for one pass.
        "across": 1 / parameters["accumulate"] if predicted["replicas"] > 1 else 0.0,
        "halo_bytes": item_bytes * sums["halo_items"],
        "split_bytes": item_bytes * sums["split_items"],
        "stage_bytes": item_bytes / parameters["segments"] * sums["stage_items"],
    }
    if case.options.oracle == "paper":
        # Weights that all PEs of a group hold are reduced over all PEs, others over replicas.
        return values | {
            "ring": predicted["pe"] if sums["replicated"] else predicted["replicas"],
            "gathered_bytes": item_bytes * sums["gathered"],
            "gradient_bytes": parameters["delta"] * sums["gradient"],
        }
    return values | {
        "steps": number(count_steps(case)),
        "shards": number(case.find_shards().degree) if case.options.zero else 1.0,
        "chunks": case.options.chunks,
        "gathers": sums["messages"],
        "gathered_bytes": item_bytes * sums["items"],
        "gradient_bytes": parameters["gradient_delta"] * count_sent(case),
        "logged": sums["logged"] if predicted["group"] > 1 else 0.0,
        "path_bytes": item_bytes * sums["path_items"],
    }


def _add_up(case: Case) -> Mapping[str, float]:
    """Sum the numbers in a case's work over stages and messages; 0 for absent ones."""
    work = case.work
    parts = [work, *work.sent.values()] if isinstance(work, GroupWork) else [work]
    fields = {name: values for part in parts for name, values in vars(part).items()}
    numbers = {
        name: float(np.sum(np.asarray(values)))
        for name, values in fields.items()
        if name not in APART
    }
    return defaultdict(float, numbers)
