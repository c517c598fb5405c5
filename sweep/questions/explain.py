"""Explain: one configuration's formulas with their numbers, term by term and layer by layer."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from grids.grid import Grid
from grids.problem import Problem
from grids.spec import TERMS
from kernels import GroupWork, layer_times
from kernels.filter_channel import exchanged
from kernels.group import share
from kernels.spatial import layer_halo
from sweep.evaluate import group_work
from sweep.questions.predict import Configuration, prediction

Row = dict[str, Any]


@dataclass(frozen=True)
class Formula:
    """A term in symbols, and the same with numbers filled in."""

    symbols: str
    numbers: str


SPLIT = Formula("b sum (FW+BW) (s/p2 + 1-s)", "{b:g} x {work:.6g} s")

FORWARD_BACKWARD = {
    "none": Formula("b sum (FW+BW)", "{b:g} x {work:.6g} s"),
    "pipeline": Formula("b (max FW_Gi + max BW_Gi)", "{b:g} x {work:.6g} s"),
}

# Ring collectives; the name of another algorithm is put before them.
FORMULAS = {
    "pipeline_bubble": Formula(
        "(p2-1)/S b (max FW_Gi + max BW_Gi)", "({p2:g}-1)/{segments:g} x {b:g} x {work:.6g} s"
    ),
    "weight_update": Formula("sum WU, as far as weights are split", "{update:.6g} s"),
    "gradient_exchange": Formula(
        "AR(q, m) = 2 (q-1) (alpha + m/q phi beta), m = delta |w|",
        "2 x ({ring:g}-1) x ({replica_latency:.4g} s + {gradient_bytes:.6g} B / {ring:g}"
        " x {phi:g} / {replica_bandwidth:.4g} B/s)",
    ),
    "layer_collectives": Formula(
        "sum over split layers of AG + AR = 3 (p2-1) (n alpha + b delta sum |y| / p2 beta)",
        "3 x ({p2:g}-1) x ({gathers:g} x {group_latency:.4g} s + {gathered_bytes:.6g} B / {p2:g}"
        " / {group_bandwidth:.4g} B/s)",
    ),
    "halo_exchange": Formula(
        "4 n alpha + 2 b delta sum (halo(x) + halo(dL/dy)) phi beta",
        "4 x {halos:g} x {halo_latency:.4g} s + 2 x {halo_bytes:.6g} B x {phi_halo:g}"
        " / {halo_bandwidth:.4g} B/s",
    ),
    "split_gather": Formula(
        "2 AG(p2, m) = 2 (p2-1) (alpha + m/p2 phi beta), m = b delta |y_split|",
        "2 x ({p2:g}-1) x ({halo_latency:.4g} s + {split_bytes:.6g} B / {p2:g} x {phi_gather:g}"
        " / {halo_bandwidth:.4g} B/s)",
    ),
    "point_to_point": Formula(
        "2 (p2+S-2) (alpha + b/S delta max |y_Gi| beta)",
        "2 x ({p2:g}+{segments:g}-2) x ({group_latency:.4g} s + {stage_bytes:.6g} B"
        " / {group_bandwidth:.4g} B/s)",
    ),
}


def explain(model: str | dict[str, object], strategy: str, pe: int, batch: int, **more: Any) -> Row:
    """One configuration's terms and layers, with formulas; arguments as `sweep.predict`'s."""
    return explanation(Configuration(model, strategy, pe, batch, **more).grid())


def explanation(grid: Grid) -> Row:
    """The prediction, with `formulas` a term and `layers` a row each."""
    predicted = prediction(grid)
    strategy = grid.strategies[0]
    if strategy.group == "best":
        strategy = replace(strategy, group=predicted["group"])
    problem = grid.problem((0, 0, 0, 0), strategy=strategy)
    if problem is None or predicted["epoch_time"] is None:
        return predicted | {"formulas": [], "layers": []}
    work = group_work(problem, grid.options)
    return predicted | {
        "formulas": _formulas(grid, problem, work, predicted),
        "layers": _layers(grid, problem),
    }


def _formulas(grid: Grid, problem: Problem, work: GroupWork, predicted: Row) -> list[Row]:
    """A row for each term that takes time."""
    values = _values(problem, work, predicted)
    first = FORWARD_BACKWARD.get(problem.group, SPLIT)
    algorithm = grid.options.algorithm
    rows = []
    for name, formula in ({"forward_backward": first} | FORMULAS).items():
        seconds = predicted["terms"][name]
        if seconds:
            ring = "AR" not in formula.symbols and "AG" not in formula.symbols
            prefix = "" if ring or algorithm == "ring" else f"[{algorithm}] "
            rows.append(
                {
                    "term": name,
                    "formula": prefix + formula.symbols,
                    "numbers": formula.numbers.format(**values),
                    "seconds_per_iteration": seconds / _passes(name, predicted),
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
    table = grid.table(0, 0)
    assert table is not None
    with jax.enable_x64(True):
        times = layer_times(problem.layers, problem.pe, problem.run.delta, grid.options.optimizer)
        part = share(problem.placement.split, problem.run.p2)
        halo = problem.placement.split * layer_halo(problem.layers, problem.placement.factors)
        sent = exchanged(problem.placement.split) * problem.layers.y
        columns = {
            "split": problem.placement.split,
            "seconds": (times.forward + times.backward) * part,
            "halo_items": halo * float(problem.group == "spatial"),
            "gathered_items": sent * float(problem.group in ("filter", "channel")),
        }
        flat = {name: np.asarray(each).reshape(len(table)) for name, each in columns.items()}
    stage = _stage(problem, len(table))
    return [
        {
            "layer": table.names[n],
            "kind": table.kinds[n],
            "x": table.x[n],
            "y": table.y[n],
            "weights": table.w[n],
            "biases": table.bias[n],
            **({"stage": int(stage[n])} if problem.group == "pipeline" else {}),
            "split": bool(flat["split"][n]),
            "seconds_per_sample": float(flat["seconds"][n]),
            "gathered_items": float(flat["gathered_items"][n]),
            "halo_items": float(flat["halo_items"][n]),
        }
        for n in range(len(table))
    ]


def _stage(problem: Problem, layers: int) -> Any:
    """The pipeline stage of each layer, from 1."""
    ends = np.asarray(problem.placement.ends).reshape(len(problem.placement.ends), -1)[:, 0]
    return np.searchsorted(ends, np.arange(layers), side="right") + 1
