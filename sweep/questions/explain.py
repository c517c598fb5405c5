"""Explain: one configuration's formulas with their numbers, term by term and layer by layer."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from grids.grid import Grid
from grids.inputs.groups import divided
from grids.inputs.problem import Problem
from grids.spec import TERMS
from kernels.arrays import Cells, PerLayer
from kernels.compiled import compiled
from kernels.compute import PE, Optimizer, layer_times
from kernels.filter_channel import exchanged
from kernels.group import GroupWork, Placement, share
from kernels.layers import Layers
from kernels.spatial import layer_halo
from kernels.strategy import GroupStrategy
from sweep.questions.choice import with_group
from sweep.questions.formulas import formulas
from sweep.questions.predict import ONLY, Configuration, prediction

Row = dict[str, Any]


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
    asked = Configuration(
        model,
        strategy,
        pe,
        batch,
        system,
        dataset,
        {} if parameters is None else parameters,
        {} if settings is None else settings,
    )
    return explanation(asked.grid())


def explanation(grid: Grid) -> Row:
    """The prediction, with `formulas` a term and `layers` a row each."""
    predicted = prediction(grid)
    if predicted["epoch_time"] is None:
        return predicted | {"formulas": [], "layers": []}
    problem = with_group(grid, ONLY, predicted["group"])
    assert problem is not None  # it has a time
    work, _ = divided(problem.groups, grid.options)
    return predicted | {
        "formulas": _formulas(grid, problem, work, predicted),
        "layers": _layers(grid, problem),
    }


def _formulas(grid: Grid, problem: Problem, work: GroupWork, predicted: Row) -> list[Row]:
    """A row for each term that takes time."""
    values = _values(problem, work, predicted)
    algorithm = grid.options.algorithm
    rows = []
    group = problem.groups.strategy.group_strategy
    for name, formula in formulas(group, calibrated=problem.known is not None).items():
        seconds = predicted["terms"][name]
        if seconds:
            once = seconds / _passes(name, predicted)
            ring = "AR" not in formula.symbols and "AG" not in formula.symbols
            prefix = "" if ring or algorithm == "ring" else f"[{algorithm}] "
            rows.append(
                {
                    "term": name,
                    "formula": prefix + formula.symbols,
                    "numbers": formula.numbers.format(**values, seconds=once),
                    "seconds_per_iteration": once,
                    "seconds_per_epoch": seconds,
                    "part": seconds / predicted["epoch_time"],
                }
            )
    assert {row["term"] for row in rows} <= set(TERMS)
    return rows


def _passes(term: str, predicted: Row) -> float:
    """How often an epoch pays a term: samples are computed D/B times, the rest I times."""
    per_sample = term in ("forward_backward", "pipeline_bubble")
    passes: float = predicted["samples"] / predicted["global_batch"]
    return passes if per_sample else float(predicted["iterations"])


def _values(problem: Problem, work: GroupWork, predicted: Row) -> dict[str, float]:
    """Every number that a formula names."""
    b, delta = predicted["batch"], predicted["parameters"]["delta"]
    number = {
        name: float(np.sum(np.asarray(getattr(work, name)))) for name in work.__dataclass_fields__
    }
    ring = predicted["pe"] if number["replicated"] else predicted["replicas"]
    parameters: dict[str, float] = predicted["parameters"]
    return parameters | {
        "b": b,
        "p2": predicted["group"],
        "ring": ring,
        "work": number["forward_backward"],
        "update": number["update"],
        "gradient_bytes": delta * number["gradient"],
        "gathers": number["gathers"],
        "gathered_bytes": b * delta * number["gathered"],
        "halos": number["halo_exchanges"],
        "halo_bytes": b * delta * number["halo_items"],
        "split_bytes": b * delta * number["split_items"],
        "stage_bytes": b / predicted["parameters"]["segments"] * delta * number["stage_items"],
    }


def _layers(grid: Grid, problem: Problem) -> list[Row]:
    """A row for each layer: sizes, split, and what one PE computes and sends of it."""
    groups = problem.groups
    table, (placement, _) = groups.table, groups.place()
    with jax.enable_x64(True):
        amounts = _amounts(
            groups.layers,
            groups.pe,
            placement,
            groups.sizes,
            groups.delta,
            group=groups.strategy.group_strategy,
            optimizer=grid.options.optimizer,
        )
    flat = {name: np.asarray(each).reshape(len(table)) for name, each in amounts.items()}
    stage = _stage(placement, len(table))
    return [
        {
            "layer": table.names[n],
            "kind": table.kinds[n],
            "x": table.x[n],
            "y": table.y[n],
            "weights": table.w[n],
            "biases": table.bias[n],
            **({"stage": int(stage[n])} if groups.strategy.group_strategy == "pipeline" else {}),
            "split": bool(flat["split"][n]),
            "seconds_per_sample": float(flat["seconds"][n]),
            "gathered_items": float(flat["gathered_items"][n]),
            "halo_items": float(flat["halo_items"][n]),
        }
        for n in range(len(table))
    ]


@compiled("group", "optimizer")
def _amounts(
    layers: Layers,
    pe: PE,
    placement: Placement,
    p2: Cells,
    delta: Cells,
    *,
    group: GroupStrategy,
    optimizer: Optimizer,
) -> dict[str, PerLayer]:
    """What one PE computes and sends of a sample: one program loads faster than each operation."""
    times = layer_times(layers, pe, delta, optimizer)
    halo = placement.split * layer_halo(layers, placement.factors)
    sent = exchanged(placement.split) * layers.y
    return {
        "split": placement.split,
        "seconds": (times.forward + times.backward) * share(placement.split, p2),
        "halo_items": halo * float(group == "spatial"),
        "gathered_items": sent * float(group in ("filter", "channel")),
    }


def _stage(placement: Placement, layers: int) -> Any:
    """The pipeline stage of each layer, from 1."""
    ends = np.asarray(placement.ends).reshape(len(placement.ends), -1)[:, 0]
    return np.searchsorted(ends, np.arange(layers), side="right") + 1
