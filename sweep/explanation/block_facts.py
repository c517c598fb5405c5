"""Facts of a transformer's layout: its terms and hidden communication, numbers and groups."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from paradl.grids.grid import Grid
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.names.terms import Term
from paradl.kernels.parallelism.alignment import count_level_pes
from paradl.kernels.search.stacks import find_zero_stage
from paradl.sweep.answers.mapping import Row
from paradl.sweep.cases.layout_cells import LayoutCell, find_cell
from paradl.sweep.cells.design_space import ONLY
from paradl.sweep.explanation.block_memory import explain_memory
from paradl.sweep.explanation.facts import WorkFacts

TASKS = {
    "tensor": "some columns, then rows, of each matrix",
    "context": "part of each sequence",
    "expert": "some of the routed experts",
    "expert_tensor": "part of each of its experts",
}


def find_block_facts(grid: Grid, case: Case, predicted: Row) -> WorkFacts:
    """Find the facts of a layout. It has no rows of layers."""
    cell = find_cell(grid, case, ONLY)
    layout = cell.layout
    chunks = int(layout.chunks[0])
    stage = f"{chunks} chunks of blocks" if chunks > 1 else "a stage of contiguous blocks"
    memory = explain_memory(cell.net, layout, cell.training)
    return WorkFacts(
        terms=[*_list_terms(predicted)],
        memory={row["part"]: (row["formula"], row["numbers"]) for row in memory},
        values=_list_values(cell),
        tasks=TASKS | {"pipeline": stage},
        zero=int(find_zero_stage(layout)[0]),
        shard=int(layout.shard[0]),
        experts=_divide_experts(cell),
    )


def _list_terms(predicted: Row) -> Iterator[tuple[str, Term, float]]:
    """Yield what PEs wait for by term, then communication that overlaps compute."""
    for name, seconds in predicted["terms"].items():
        yield name, LAYOUT_TERMS[name], seconds
    iterations = predicted["iterations"]
    for name, total in predicted["exchanges"].items():
        exposed = predicted["terms"][name]
        numbers = f"{total / iterations:.6g} s - {exposed / iterations:.6g} s"
        symbols = "all of its communication - exposed"
        term = replace(LAYOUT_TERMS[name], part="hidden", symbols=symbols, numbers=numbers)
        yield name, term, max(total - exposed, 0.0)


def _list_values(cell: LayoutCell) -> dict[str, Any]:
    """Return the numbers of symbols that answers lack."""
    layout, training, recipe = cell.layout, cell.training, cell.training.recipe
    names = ("pipeline", "tensor", "context", "expert", "chunks", "sigma")
    return {
        **{name: int(getattr(layout, name)[0]) for name in names},
        "accumulate": int(np.ravel(training.count_flushes(layout))[0]),
        "shards": int(layout.shards[0]) if layout.zero[0] else 1,
        "tokens": float(training.count_tokens(layout)[0]),
        "length": training.length,
        "features": cell.net.hidden,
        "vocabulary": cell.net.vocabulary,
        "delta": recipe.item,
        "gradient_delta": recipe.gradients,
        "mean_item": (2 * recipe.read + recipe.item) / 3,
        **{name: getattr(cell.speeds.rates, name) for name in ("peak", "wide_peak", "reach")},
        "used": float(np.ravel(count_level_pes(cell.speeds.fabric.stated, layout)[0])[0]),
    }


def _divide_experts(cell: LayoutCell) -> dict[str, int]:
    """Return the degrees that divide PEs anew among experts, the outermost first; else none."""
    layout = cell.layout
    if not cell.net.experts or (layout.expert[0] == 1 and layout.etp[0] == layout.tensor[0]):
        return {}
    degrees = {
        "pipeline": layout.pipeline,
        "data": layout.expert_replicas,
        "expert": layout.expert,
        "expert_tensor": layout.etp,
    }
    return {name: int(degree[0]) for name, degree in degrees.items()}
