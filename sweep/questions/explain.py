"""Explain: one configuration's formulas with their numbers, term by term and layer by layer.

And its memory part by part, what the symbols mean, and what people launch.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from grids.grid import Grid
from kernels.configuration.case import Case
from kernels.names.terms import TERMS
from kernels.options import Algorithm
from kernels.oracle.exchanges import count_sent
from kernels.parallelism.layout import count_steps
from kernels.work.group import GroupWork
from sweep.answers.numbers import finite, number
from sweep.cases.fits import find_smallest_group
from sweep.cells.configuration import ONLY, Configuration
from sweep.explanation.launch import describe_launch
from sweep.explanation.layer_rows import list_layers
from sweep.explanation.memory_formulas import list_memory_formulas
from sweep.explanation.symbols import list_symbols
from sweep.explanation.time_formulas import Formula, describe_largest, select_formulas
from sweep.questions.predict import choose_case, describe_case

Row = dict[str, Any]

# The answer where there is no time.
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
    """One configuration's terms and layers, with formulas; arguments as `sweep.predict`'s."""
    wanted = Configuration(model, strategy, pe, batch, system, dataset, parameters, settings)
    return explain_grid(wanted.grid())


def explain_grid(grid: Grid) -> Row:
    """The prediction, its largest term in a `sentence`, `formulas` by term, `memory_formulas` by
    part of the memory, `symbols` of both, how to `launch` it, and a row for each of the `layers`.

    `hidden` has a row for communication that passes while PEs compute: no part of the whole.
    """
    case = choose_case(grid)
    predicted = describe_case(grid, case)
    predicted |= {"smallest_group": find_smallest_group(grid, ONLY)}
    if case is None or predicted["epoch_time"] is None:
        return predicted | NOTHING
    # The case has sums over layers alone: layers are divided once more, with the choices settled.
    strategy = grid.strategies[0].settle(predicted | predicted["degrees"])
    groups = grid.groups(ONLY, strategy=strategy)
    assert groups is not None  # it has a time
    rows = _list_formulas(grid, case, predicted)
    hidden = [row for row in rows if TERMS[row["term"]].part == "hidden"]
    shares = {row["term"]: row["part"] for row in rows if row not in hidden}
    memory = list_memory_formulas(grid, case, groups, predicted)
    written = {row["term"]: row["formula"] for row in rows}
    written |= {row["part"]: row["formula"] for row in memory}
    return predicted | {
        "sentence": describe_largest(shares)["sentence"],
        "formulas": [row for row in rows if row not in hidden],
        "hidden": hidden,
        "memory_formulas": memory,
        "symbols": list_symbols(written, _list_named(case, predicted), grid.spec.oracle),
        "launch": describe_launch(grid, case, groups, predicted),
        "layers": list_layers(groups, predicted["batch"], _find_gamma(case)),
    }


def _find_gamma(case: Case) -> float:
    """The share of Table III's memory that buffer reuse leaves; the machine knows tensors."""
    return number(case.run.gamma) if case.options.oracle == "paper" else 1.0


def _list_named(case: Case, predicted: Row) -> dict[str, Any]:
    """The values that symbols may have, by their names."""
    software = {name: finite(number(value)) for name, value in vars(case.software).items()}
    through_hosts = {"staging_bandwidth": finite(number(case.network.staging_bandwidth))}
    degrees: Row = predicted["degrees"]
    return predicted | software | through_hosts | degrees | _list_values(case, predicted)


def _list_formulas(grid: Grid, case: Case, predicted: Row) -> list[Row]:
    """A row for each term that takes time."""
    values = _list_values(case, predicted)
    strategy = grid.strategies[0]
    formulas = select_formulas(strategy.parts, strategy.zero, oracle=grid.spec.oracle)
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
    # The numbers of several passes are those of one.
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
    """Iterations that pay a term in an epoch: D/B for samples, I for the rest."""
    per_sample = TERMS[term].per == "sample"
    exactly: float = predicted["samples"] / predicted["global_batch"]
    return exactly if per_sample else float(predicted["iterations"])


def _list_values(case: Case, predicted: Row) -> dict[str, float]:
    """Every number in a formula."""
    is_machine = case.options.oracle == "machine"
    parameters: dict[str, float] = predicted["parameters"]
    b, delta, p2 = predicted["batch"], parameters["delta"], predicted["group"]
    sums = _add_up(case)
    return parameters | {
        "b": b,
        "p2": p2,
        "p": predicted["pe"],
        "across": (1 / parameters.get("accumulate", 1)) if predicted["replicas"] > 1 else 0.0,
        "work": sums["forward_backward"],
        "update": sums["update"],
        "gradient_bytes": delta * sums["gradient"],
        "halos": sums["halo_exchanges"],
        "halo_bytes": b * delta * sums["halo_items"],
        "split_bytes": b * delta * sums["split_items"],
        "stage_bytes": b / predicted["parameters"]["segments"] * delta * sums["stage_items"],
        **(_list_machine_values if is_machine else _list_table_values)(case, sums, predicted),
    }


# Numbers of a work that are no sums, or not of this kind.
APART = ("sent", "touched", "row_states", "gathered_weights")


def _add_up(case: Case) -> Mapping[str, float]:
    """The sum of each number of a case's work, over stages and messages; 0 of what is not sent."""
    work = case.work
    parts = [work, *work.sent.values()] if isinstance(work, GroupWork) else [work]
    values = {name: each for part in parts for name, each in vars(part).items()}
    numbers = {
        name: float(np.sum(np.asarray(each))) for name, each in values.items() if name not in APART
    }
    return defaultdict(float, numbers)


def _list_table_values(case: Case, sums: Mapping[str, float], predicted: Row) -> dict[str, float]:
    """The numbers that formulas of Table III alone name."""
    # Weights that each PE of a group holds are reduced over all PEs, parts of weights over
    # replicas.
    ring = predicted["pe"] if sums["replicated"] else predicted["replicas"]
    items = predicted["batch"] * predicted["parameters"]["delta"] * sums["gathered"]
    return {"ring": ring, "gathers": sums["gathers"], "gathered_bytes": items}


def _list_machine_values(case: Case, sums: Mapping[str, float], predicted: Row) -> dict[str, float]:
    """The numbers that formulas of the machine oracle alone name."""
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
