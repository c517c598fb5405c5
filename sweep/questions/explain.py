"""Explain: one configuration's formulas with their numbers, term by term and layer by layer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.grid import Grid
from grids.inputs.groups import Groups
from kernels.arrays import PerLayer
from kernels.case import Case
from kernels.collectives import Algorithm
from kernels.compiled import compiled
from kernels.division import Division
from kernels.filter_channel import exchanged
from kernels.group import GroupWork, Placement, share
from kernels.own_part import time_own_part
from kernels.spatial import layer_halo
from kernels.terms import TERMS
from sweep.questions.bottleneck import tell_what_binds
from sweep.questions.formulas import Formula, select_formulas
from sweep.questions.predict import ONLY, Configuration, choose_case, describe_case
from sweep.questions.smallest_group import find_smallest_group

Row = dict[str, Any]
Integers = NDArray[np.int64]


def explain(
    model: str | dict[str, object],
    strategy: str,
    pe: int,
    batch: int,
    *,
    system: str = "abci",
    dataset: str | None = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Row:
    """One configuration's terms and layers, with formulas; arguments as `sweep.predict`'s."""
    asked = Configuration(model, strategy, pe, batch, system, dataset, parameters, settings)
    return explain_grid(asked.grid())


def explain_grid(grid: Grid) -> Row:
    """The prediction, with what binds in a `sentence`, `formulas` a term and `layers` a row each.

    `hidden` has a row for what passes while PEs compute: it is no part of the whole.
    """
    case = choose_case(grid)
    predicted = describe_case(grid, case)
    predicted |= {"smallest_group": find_smallest_group(grid, ONLY)}
    if case is None or predicted["epoch_time"] is None:
        return predicted | {"sentence": None, "formulas": [], "hidden": [], "layers": []}
    # The case has sums over layers alone: layers are divided once more, by what was chosen.
    strategy = grid.strategies[0].settle(predicted)
    groups = grid.groups(ONLY, strategy=strategy)
    assert groups is not None  # it has a time
    rows = _list_formulas(grid, case, predicted)
    hidden = [row for row in rows if TERMS[row["term"]].part == "hidden"]
    shares = {row["term"]: row["part"] for row in rows if row not in hidden}
    return predicted | {
        "sentence": tell_what_binds(shares)["sentence"],
        "formulas": [row for row in rows if row not in hidden],
        "hidden": hidden,
        "layers": _list_layers(grid, groups),
    }


def _list_formulas(grid: Grid, case: Case, predicted: Row) -> list[Row]:
    """A row for each term that takes time."""
    values = _list_values(case.work, predicted)
    group = grid.strategies[0].group_strategy
    formulas = select_formulas(group, oracle=grid.spec.oracle)
    return [
        _describe_term(name, formula, values, predicted, grid.options.algorithm)
        for name, formula in formulas.items()
        if predicted["terms"][name]
    ]


def _describe_term(
    name: str, formula: Formula, values: dict[str, float], predicted: Row, algorithm: Algorithm
) -> Row:
    """A term's formula, with the numbers of one iteration, and its part of the whole."""
    seconds = predicted["terms"][name]
    once = seconds / _count_iterations(name, predicted)
    # Of several passes the numbers are those of one.
    passes = 1.0 if TERMS[name].once else predicted["parameters"]["accumulate"]
    numbers = formula.numbers.format(**values, seconds=once / passes)
    # Only terms with an all-reduce or all-gather depend on the algorithm of collectives.
    collective = "AR" in formula.symbols or "AG" in formula.symbols
    prefix = f"[{algorithm}] " if collective and algorithm != "ring" else ""
    return {
        "term": name,
        "formula": prefix + (formula.symbols if passes == 1 else f"A ({formula.symbols})"),
        "numbers": numbers if passes == 1 else f"{passes:g} x ({numbers})",
        "seconds_per_iteration": once,
        "seconds_per_epoch": seconds,
        "part": seconds / predicted["epoch_time"],
    }


def _count_iterations(term: str, predicted: Row) -> float:
    """How often an epoch pays a term: samples are computed D/B times, the rest I times."""
    per_sample = TERMS[term].per == "sample"
    exactly: float = predicted["samples"] / predicted["global_batch"]
    return exactly if per_sample else float(predicted["iterations"])


def _list_values(work: GroupWork, predicted: Row) -> dict[str, float]:
    """Every number that a formula names."""
    parameters: dict[str, float] = predicted["parameters"]
    b, delta, p2 = predicted["batch"], parameters["delta"], predicted["group"]
    number = {
        name: float(np.sum(np.asarray(getattr(work, name)))) for name in work.__dataclass_fields__
    }
    # Weights that each PE of a group holds are reduced over all PEs, parts of weights over
    # replicas.
    ring = predicted["pe"] if number["replicated"] else predicted["replicas"]
    several = number["pipelined"] and p2 > 1
    return parameters | {
        "b": b,
        "p2": p2,
        "steps": p2 + parameters["segments"] - 1 if several else 1,
        "fixed": number["fixed"],
        "ring": ring,
        "work": number["forward_backward"],
        "update": number["update"],
        "gradient_bytes": parameters.get("gradient_delta", delta) * number["gradient"],
        "gathers": number["gathers"],
        "gathered_bytes": b * delta * number["gathered"],
        "halos": number["halo_exchanges"],
        "halo_bytes": b * delta * number["halo_items"],
        "split_bytes": b * delta * number["split_items"],
        "stage_bytes": b / predicted["parameters"]["segments"] * delta * number["stage_items"],
        "path_messages": number["path_messages"],
        "path_bytes": b * delta * number["path_items"],
    }


def _list_layers(grid: Grid, groups: Groups) -> list[Row]:
    """A row for each layer: sizes, split, and what one PE computes and sends of it."""
    table, (placement, _) = groups.table, groups.place()
    amounts = _find_amounts(groups.divide(placement))
    flat = {name: np.asarray(each).reshape(len(table)) for name, each in amounts.items()}
    where = _find_pes(placement, len(table), groups.strategy.group_strategy)
    return [
        {
            "layer": table.names[n],
            "kind": table.kinds[n],
            "x": table.x[n],
            "y": table.y[n],
            "weights": table.w[n],
            "biases": table.bias[n],
            **{name: int(numbers[n]) for name, numbers in where.items()},
            "split": bool(flat["split"][n]),
            "seconds_per_sample": float(flat["seconds"][n]),
            "gathered_items": float(flat["gathered_items"][n]),
            "halo_items": float(flat["halo_items"][n]),
        }
        for n in range(len(table))
    ]


@compiled(numpy=True)
def _find_amounts(division: Division) -> dict[str, PerLayer]:
    """What one PE computes and sends of a sample: one program loads faster than each operation."""
    layers, placement, group = division.layers, division.placement, division.group
    times = time_own_part(division)
    whole = division.options.weights_read == "sample"  # Table III divides times of whole layers
    aligned = division.options.network == "rails"
    halo = placement.split * layer_halo(layers, placement.factors, aligned)
    sent = exchanged(placement.split) * layers.y
    return {
        "split": placement.split,
        "seconds": (times.forward + times.backward)
        * (share(placement.split, division.p2) if whole else 1.0),
        # Of the other strategies nothing is sent layer by layer.
        "halo_items": halo * float(group == "spatial"),
        "gathered_items": sent * float(group in ("filter", "channel")),
    }


def _find_pes(placement: Placement, layers: int, group: str) -> dict[str, Integers]:
    """The `stage` of each layer of a pipeline, the `device` of each placed one, from 1."""
    if placement.placed is not None:
        runs = np.asarray(placement.placed.runs)
        return {"device": runs.reshape(*runs.shape[:2], -1)[..., 0].argmax(axis=0) + 1}
    return {"stage": _find_stages(placement, layers)} if group == "pipeline" else {}


def _find_stages(placement: Placement, layers: int) -> Integers:
    """The pipeline stage of each layer, from 1."""
    ends = np.asarray(placement.ends).reshape(len(placement.ends), -1)[:, 0]
    return np.searchsorted(ends, np.arange(layers), side="right") + 1
