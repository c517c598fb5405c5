"""Memory of layouts of transformers against what published runs took, by stack.

Nothing is fitted. What is predicted is what a framework's allocator hands out; what it keeps in
reserve, and what the card itself shows, is more: the kind of each number stands beside it.
"""

import csv
from itertools import groupby
from operator import itemgetter

import numpy as np
import yaml

from benchmarks.effort import Effort
from benchmarks.report import Report, Row
from grids.entries.precision import RECIPES
from grids.models.architecture import Architecture
from grids.models.transformers import read_transformer
from grids.names import CATALOGUE
from kernels.layouts.memory import measure_memory
from kernels.layouts.transformer import RECOMPUTE, Layouts, Training

RUNS = CATALOGUE / "measured" / "layouts.csv"
DEGREES = ("tensor", "context", "pipeline", "data", "expert", "chunks", "micro")


def read_runs() -> list[dict[str, str]]:
    """The published rows, as text by column."""
    with RUNS.open(newline="") as file:
        return list(csv.DictReader(file))


def predict(run: dict[str, str]) -> float:
    """Bytes on a PE of the fullest stage."""
    recompute = RECOMPUTE.get(run["recompute"], 0)
    row = [*(int(run[name]) for name in DEGREES), recompute, int(run["zero"])]
    training = Training(
        int(run["global_batch"]),
        int(run["sequence"]),
        RECIPES[run["precision"]],
        context_by="all_to_all",
        fused_attention=run["attention"] == "fused",
    )
    net = read_transformer(
        Architecture(
            name="published",
            title=run["model"],
            source=(run["source"],),
            rank=1,
            family=yaml.safe_load(run["network"]),
        )
    )
    layout = Layouts.from_rows(np.array([[*row, int(run["sequence_parallel"])]]))
    parts, _ = measure_memory(net, layout, training)
    return float(sum(part[0] for part in parts.values()))


def measure(effort: Effort) -> Report:
    """The median of predicted / measured of each stack, and its range: the same at any effort."""
    rows = []
    by_stack = itemgetter("stack", "kind")
    for (stack, kind), runs in groupby(sorted(read_runs(), key=by_stack), by_stack):
        ratios = np.array([predict(run) / (float(run["memory_gib"]) * 2**30) for run in runs])
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        note = f"{kind}; eight of ten from {low:.2f} to {high:.2f}"
        rows.append(Row(stack, len(ratios), "", float(middle), "measured", note=note))
    note = "Predicted bytes are allocated ones; nothing is fitted. Measured: number of runs."
    return Report("layouts", "memory of transformers against published runs", tuple(rows), note)
