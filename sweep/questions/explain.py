"""Explain: one configuration's formulas with their numbers, by term, memory part and layer.

The answer also has the meaning of the symbols, and how to launch the training.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from paradl.grids.grid import Grid
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.terms import TERMS
from paradl.kernels.options import Algorithm
from paradl.kernels.oracle.exchanges import count_sent
from paradl.kernels.parallelism.layout import count_steps
from paradl.kernels.work.group import GroupWork
from paradl.sweep.answers.numbers import finite, number
from paradl.sweep.cases.fits import find_smallest_group
from paradl.sweep.cases.layout_cells import find_cell
from paradl.sweep.cells.design_space import ONLY, Configuration
from paradl.sweep.explanation.formulas import (
    Formula,
    describe_largest,
    list_symbols,
    select_formulas,
)
from paradl.sweep.explanation.launch import describe_launch
from paradl.sweep.explanation.layer_rows import list_layers
from paradl.sweep.explanation.layout_formulas import explain_layout
from paradl.sweep.explanation.memory_formulas import list_memory_formulas
from paradl.sweep.questions.predict import choose_case, describe_case

Row = dict[str, Any]

# Answer for a configuration without a time.
NOTHING: Row = {
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
    batch: int,
    *,
    system: str = "abci",
    dataset: str | None = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Row:
    """One configuration's terms and layers, with formulas; arguments as for `paradl.predict`.

    >>> import paradl
    >>> answer = paradl.explain("alexnet", "data", 64, 32, dataset="imagenet-226")
    >>> slowest = max(answer["layers"], key=lambda layer: layer["seconds_per_sample"])
    >>> slowest["layer"], f"{slowest['seconds_per_sample']:.3g} s"
    ('conv2', '0.000309 s')
    """
    wanted = Configuration(model, strategy, pe, batch, system, dataset, parameters, settings)
    return explain_grid(wanted.grid())


def explain_grid(grid: Grid) -> Row:
    """The prediction, with a `sentence` about its largest term, `formulas` by term,
    `memory_formulas` by part, their `symbols`, how to `launch` it, and a row for each of `layers`.

    `hidden`: rows for communication that overlaps compute and so is not part of the time.
    """
    case = choose_case(grid)
    predicted = describe_case(grid, case)
    predicted |= {"smallest_group": find_smallest_group(grid, ONLY)}
    if case is None or predicted["epoch_time"] is None:
        return predicted | NOTHING
    if case.in_numpy:
        return predicted | explain_layout(find_cell(grid, case, ONLY), predicted)
    # A case only has sums over layers: divide the layers again, with the choices settled.
    strategy = grid.strategy(ONLY).settle(predicted | predicted["degrees"])
    groups = grid.groups(ONLY, strategy=strategy)
    assert groups is not None  # it has a time
    values = _list_values(case, predicted)
    rows = _list_formulas(grid, values, predicted)
    hidden = [row for row in rows if TERMS[row["term"]].part == "hidden"]
    shown = [row for row in rows if row not in hidden]
    shares = {row["term"]: row["part"] for row in shown}
    memory = list_memory_formulas(grid, case, groups, predicted)
    written = {row["term"]: row["formula"] for row in rows}
    written |= {row["part"]: row["formula"] for row in memory}
    machine = vars(case.software) | {"staging_bandwidth": case.network.staging_bandwidth}
    named = predicted | {name: finite(number(value)) for name, value in machine.items()}
    named |= predicted["degrees"] | values
    # Only Table III has a factor for buffer reuse; the machine counts tensors.
    gamma = number(case.run.gamma) if case.options.oracle == "paper" else 1.0
    return predicted | {
        "sentence": describe_largest(shares)["sentence"],
        "formulas": shown,
        "hidden": hidden,
        "memory_formulas": memory,
        "symbols": list_symbols(written, named, grid.spec.oracle),
        "launch": describe_launch(grid, case, groups, predicted),
        "layers": list_layers(groups, predicted["batch"], gamma),
    }


def _list_formulas(grid: Grid, values: Mapping[str, float], predicted: Row) -> list[Row]:
    """One row for each term that takes time."""
    strategy = grid.strategy(ONLY)
    zero = strategy.find_zero(grid.spec.parameters)
    formulas = select_formulas(strategy.parts, zero, oracle=grid.spec.oracle)
    return [
        _describe_term(name, formula, values, predicted, grid.options.algorithm)
        for name, formula in formulas.items()
        if predicted["terms"][name]
    ]


def _describe_term(
    name: str,
    formula: Formula,
    values: Mapping[str, float],
    predicted: Row,
    algorithm: Algorithm,
) -> Row:
    """Row of a term: its formula with the numbers of one iteration, and its part of the time."""
    seconds = predicted["terms"][name]
    # Terms per sample are paid D / B times an epoch, others in every iteration.
    exactly: float = predicted["samples"] / predicted["global_batch"]
    once = seconds / (exactly if TERMS[name].per == "sample" else predicted["iterations"])
    # Formulas are written for one pass; several take that many times as long.
    passes = 1.0 if TERMS[name].once else predicted["parameters"]["accumulate"]
    numbers = formula.numbers.format(**values, seconds=once / passes)
    # Only terms with an all-reduce or all-gather depend on the collective algorithm.
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


def _list_values(case: Case, predicted: Row) -> dict[str, float]:
    """All numbers that formulas name."""
    parameters: dict[str, float] = predicted["parameters"]
    b, delta, p2 = predicted["batch"], parameters["delta"], predicted["group"]
    sums = _add_up(case)
    if case.options.oracle == "machine":
        named = _list_machine_values(case, sums, predicted)
    else:
        named = _list_table_values(sums, predicted)
    return parameters | {
        "b": b,
        "p2": p2,
        "p": predicted["pe"],
        # Gradients cross replicas once in all passes, and a formula is for one pass.
        "across": 1 / parameters["accumulate"] if predicted["replicas"] > 1 else 0.0,
        "work": sums["forward_backward"],
        "update": sums["update"],
        "gradient_bytes": delta * sums["gradient"],
        "halos": sums["halo_exchanges"],
        "halo_bytes": b * delta * sums["halo_items"],
        "split_bytes": b * delta * sums["split_items"],
        "stage_bytes": b / parameters["segments"] * delta * sums["stage_items"],
        **named,
    }


# Fields of a case's work that are not numbers to be summed.
APART = ("sent", "touched", "row_states", "gathered_weights")


def _add_up(case: Case) -> Mapping[str, float]:
    """Sums of the numbers in a case's work over stages and messages; 0 for absent ones."""
    work = case.work
    parts = [work, *work.sent.values()] if isinstance(work, GroupWork) else [work]
    fields = {name: values for part in parts for name, values in vars(part).items()}
    numbers = {
        name: float(np.sum(np.asarray(values)))
        for name, values in fields.items()
        if name not in APART
    }
    return defaultdict(float, numbers)


def _list_table_values(sums: Mapping[str, float], predicted: Row) -> dict[str, float]:
    """Numbers that only formulas of Table III name."""
    # Weights that all PEs of a group hold are reduced over all PEs, divided ones over replicas.
    ring = predicted["pe"] if sums["replicated"] else predicted["replicas"]
    items = predicted["batch"] * predicted["parameters"]["delta"] * sums["gathered"]
    return {"ring": ring, "gathers": sums["gathers"], "gathered_bytes": items}


def _list_machine_values(case: Case, sums: Mapping[str, float], predicted: Row) -> dict[str, float]:
    """Numbers that only formulas of the machine oracle name."""
    parameters = predicted["parameters"]
    item_bytes = predicted["batch"] * parameters["delta"]
    return {
        "steps": number(count_steps(case)),
        "gathers": sums["messages"],
        "gathered_bytes": item_bytes * sums["items"],
        "fixed": sums["fixed"],
        "launches": sums["launches"],
        "logged": sums["logged"] if predicted["group"] > 1 else 0.0,
        "gradient_bytes": parameters["gradient_delta"] * count_sent(case),
        "path_messages": sums["path_messages"],
        "path_bytes": item_bytes * sums["path_items"],
    }
