"""Facts of a transformer's layout: its terms, numbers and groups, and its memory by part."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from paradl.grids.design_space import ONLY
from paradl.grids.grid import Grid
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.names.terms import Term
from paradl.kernels.parallelism.alignment import count_level_pes
from paradl.kernels.work.block_memory import (
    hold_parameters,
    measure_blocks,
    measure_memory,
    sum_tensors,
)
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import Stage, count_in_flight, make_stage
from paradl.kernels.work.transformer import Training, Transformer
from paradl.sweep.answers.mapping import Row
from paradl.sweep.configurations.layout_cells import LayoutCell, find_cell
from paradl.sweep.explanation.formulas import RESERVED, Formula, WorkFacts

SHARDED = {"weights": 3, "gradients": 2, "states": 1}  # first ZeRO stage that shards them
WORDS = {
    "gathered": "bytes of a weight x parameters of two blocks, or of more by software",
    "unreduced": "bytes of a gradient x parameters of a block, or of more by software",
    "activations": "what a PE keeps of blocks at a time",
    "recomputed": "what one block computes again",
    "embedding": "in flight x what embeddings keep",
    "logits": "inputs of the last norm and matrix, and logits, of a micro-batch",
    "reserved": RESERVED,
}


def measure_parts(net: Transformer, layout: Layouts, training: Training) -> dict[str, float]:
    """Measure the parts of a layout's fullest stage that are not empty [B]."""
    parts, _ = measure_memory(net, layout, training)
    return {name: float(part[0]) for name, part in parts.items() if part[0]}


def write_memory(cell: LayoutCell, parts: Mapping[str, float]) -> dict[str, Formula]:
    """Write each part of a layout's fullest stage as a product of numbers; parts: sizes [B]."""
    net, layout, training = cell.net, cell.layout, cell.training
    _, fullest = measure_memory(net, layout, training)
    stage = make_stage(net, layout.pipeline, layout.chunks, training, fullest)
    written = _write_states(cell, stage) | _write_activations(cell, stage)
    return {
        name: written.get(name, (WORDS.get(name, ""), _write(size))) for name, size in parts.items()
    }


def _write(number: float) -> str:
    """Write a whole number in full, and others with three decimals."""
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.3f}"


def _write_states(cell: LayoutCell, stage: Stage) -> dict[str, Formula]:
    """Write states: bytes per parameter times parameters; experts apart if shared by others."""
    net, layout, training = cell.net, cell.layout, cell.training
    blocks = measure_blocks(net, layout, training)
    held = hold_parameters(net, layout, blocks.parameters, stage)
    formulas = {}
    # A recipe starts with the bytes of these three.
    parts = (held.stored, held.trained, held.trained)
    for (name, least), size, part in zip(SHARDED.items(), training.recipe[:3], parts, strict=True):
        dense, experts = float(part.dense[0]), float(part.experts[0])
        words = "bytes x trained parameters" if part is not held.stored else "bytes x parameters"
        whole = (f"{words} on a PE", _write(dense + experts))
        shared = f"({_write(dense)} / {layout.shards[0]}"
        shared += f" + {_write(experts)} / {layout.expert_shards[0]})" if experts else ")"
        divided = (f"{whole[0]} / ranks of ZeRO", shared)
        words, count = whole if layout.zero[0] < least else divided
        formulas[name] = (words, f"{size} x {count}")
    return formulas


def _write_activations(cell: LayoutCell, stage: Stage) -> dict[str, Formula]:
    """Write activations: micro-batches in flight times what blocks and embeddings keep of one."""
    net, layout, training = cell.net, cell.layout, cell.training
    flying = _write(float(count_in_flight(layout, training, stage.number)[0]))
    front = sum_tensors(net.front.tensors, layout, training)[0]
    formulas = {"embedding": (WORDS["embedding"], f"{flying} x {_write(float(front[0]))}")}
    # Blocks that are run again in square-root parts, or offloaded, keep no fixed sum per block.
    if layout.recompute[0] & RECOMPUTE["full"] or not training.keeps_activations:
        return formulas
    counts, kept = stage.counts[:, 0], measure_blocks(net, layout, training).kept
    numbers = zip(counts.tolist(), kept, strict=True)
    terms = [f"{number} x {_write(float(size[0]))}" for number, size in numbers if number]
    if net.memory:
        reads = np.array([block.reads_memory for block in net.kinds])
        if np.any(counts[reads] > 0):
            terms.append(_write(float(sum_tensors([net.memory], layout, training)[0][0])))
    words = "in flight x blocks x bytes that a block keeps of a micro-batch"
    return formulas | {"activations": (words, f"{flying} x ({' + '.join(terms)})")}


def find_block_facts(grid: Grid, case: Case, predicted: Row) -> WorkFacts:
    """Find the facts of a layout. It has no rows of layers."""
    cell = find_cell(grid, case, ONLY)
    return WorkFacts(
        terms=[*_list_terms(predicted)],
        memory=write_memory(cell, predicted["memory_parts"]),
        values=_list_values(cell),
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


def _list_values(cell: LayoutCell) -> Row:
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
