"""Explain: one configuration's formulas with their numbers, by term, memory part and layer.

The answer also has the meaning of the symbols, and how to launch the training.
"""

from collections.abc import Mapping
from typing import Any, Unpack

from paradl.grids.design_space import ONLY, Configuration
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.shorthands import Words, expect_words
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.terms import Term
from paradl.sweep.answers.mapping import AnswerMapping
from paradl.sweep.answers.types.prediction import (
    Explanation,
    ExplanationFields,
    ExplanationOfLayouts,
    MemoryRow,
    Prediction,
    TermRow,
)
from paradl.sweep.boundaries.fits import find_smallest_group
from paradl.sweep.configurations.layout_cells import find_cell
from paradl.sweep.explanation.formulas import WorkFacts, describe_largest
from paradl.sweep.explanation.kinds import find_facts
from paradl.sweep.explanation.launch import describe_launch
from paradl.sweep.explanation.layout_changes import list_changes
from paradl.sweep.explanation.symbols import list_symbols
from paradl.sweep.launching.run import LayoutRun
from paradl.sweep.launching.writing import write_launch
from paradl.sweep.questions.predict import choose_case, describe_case

# Answer for a configuration without a time.
NOTHING: ExplanationFields = {
    "sentence": None,
    "formulas": [],
    "hidden": [],
    "memory_formulas": [],
    "symbols": [],
    "launch": None,
    "layers": [],
}


def explain(
    model: str | dict[str, object],
    strategy: str,
    pe: int,
    batch: int | None = None,
    *,
    system: str | None = None,
    dataset: str | None = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    launch: str | None = None,
    **words: Unpack[Words],
) -> AnswerMapping[Explanation]:
    """One configuration's terms and layers, with formulas; arguments as for `paradl.predict`.

    launch: of a layout, the framework to write launch lines for.

    >>> import paradl
    >>> answer = paradl.explain("alexnet", "data", 64, 32, system="abci", dataset="imagenet-226")
    >>> slowest = max(answer["layers"], key=lambda layer: layer["seconds_per_sample"])
    >>> slowest["layer"], f"{slowest['seconds_per_sample']:.3g} s"
    ('conv2', '0.000309 s')
    """
    expect_words(explain, words)
    wanted = Configuration(
        model, strategy, pe, batch, system, dataset, parameters, settings, **words
    )
    return AnswerMapping(explain_grid(wanted.grid(), launch))


def explain_grid(grid: Grid, launch: str | None = None) -> Explanation:
    """The prediction, with a `sentence` about its largest term, `formulas` by term,
    `memory_formulas` by part, their `symbols`, how to `launch` it, and a row for each of `layers`.

    `hidden`: rows for communication that overlaps compute and so is not part of the time. launch: a
    framework, whose `launch_files` are added. InputError: it does not run the configuration.
    """
    case = choose_case(grid)
    predicted = describe_case(grid, case)
    predicted["smallest_group"] = find_smallest_group(grid, ONLY)
    if case is None or predicted["epoch_time"] is None:
        return {**predicted, **NOTHING, **ExplanationOfLayouts()}
    explained = _explain(grid, case, predicted)
    return {**predicted, **explained, **_explain_layout(grid, case, launch)}


def _explain_layout(grid: Grid, case: Case, launch: str | None) -> ExplanationOfLayouts:
    """Explain what only a layout has: others near it, and launch lines for a framework."""
    if not grid.find_blocks(ONLY):
        if launch is not None:
            raise InputError("launch lines are written for transformers", where="launch")
        return {}
    cell = find_cell(grid, case, ONLY)
    run = LayoutRun.from_cell(cell, grid.systems[0], grid.models[0])
    files = write_launch(launch, run) if launch else []
    return {"changes": list_changes(cell), "launch_files": files}


def _explain(grid: Grid, case: Case, predicted: Prediction) -> ExplanationFields:
    """Explain the prediction of a case that has a time."""
    facts = find_facts(grid, case, {**predicted})
    values = {**predicted, **predicted["parameters"], **predicted["degrees"], **facts.values}
    rows = [
        (term.part, _describe_term(name, term, seconds, facts, values))
        for name, term, seconds in facts.terms
        if seconds
    ]
    shown = [row for part, row in rows if part != "hidden"]
    hidden = [row for part, row in rows if part == "hidden"]
    memory = _describe_memory(facts, predicted)
    texts = [row["formula"] for row in (*shown, *hidden, *memory)]
    names = [row["term"] for row in (*shown, *hidden)]
    return {
        "sentence": describe_largest({row["term"]: row["part"] for row in shown})["sentence"],
        "formulas": shown,
        "hidden": hidden,
        "memory_formulas": memory,
        "symbols": list_symbols(texts, names, values, grid.spec.oracle),
        "launch": describe_launch(grid, case, predicted),
        "layers": [*facts.layers],
    }


def _describe_term(
    name: str, term: Term, seconds: float, facts: WorkFacts, values: Mapping[str, Any]
) -> TermRow:
    """Row of a term: its formula with the numbers of one iteration, and its part of the time."""
    # Terms per sample are paid D / B times an epoch, others in every iteration.
    exactly = values["samples"] / values["global_batch"]
    once = seconds / (exactly if term.per == "sample" else values["iterations"])
    # Formulas are written for one pass; several take that many times as long.
    passes = 1.0 if term.once else facts.passes
    numbers = term.numbers.format(**values, seconds=once / passes)
    # Only terms with an all-reduce or all-gather depend on the collective algorithm.
    collective = "AR" in term.symbols or "AG" in term.symbols
    prefix = f"[{facts.algorithm}] " if collective and facts.algorithm else ""
    return {
        "term": name,
        "formula": prefix + (term.symbols if passes == 1 else f"A ({term.symbols})"),
        "numbers": numbers if passes == 1 else f"{passes:g} x ({numbers})",
        "seconds_per_iteration": once,
        "seconds_per_epoch": seconds,
        "part": seconds / values["epoch_time"],
    }


def _describe_memory(facts: WorkFacts, predicted: Prediction) -> list[MemoryRow]:
    """One row per part of the memory that has a formula."""
    # What has a time has memory.
    parts = {name: size or 0.0 for name, size in predicted["memory_parts"].items()}
    # The sum of the answer's parts, so that shares add up to 1.
    whole = sum(parts.values())
    return [
        {
            "part": name,
            "formula": facts.memory[name][0],
            "numbers": facts.memory[name][1],
            "bytes": size,
            "share": size / whole,
        }
        for name, size in parts.items()
        if name in facts.memory
    ]
