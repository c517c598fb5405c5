"""Explain: one configuration's formulas with their numbers, term by term and layer by layer.

And its memory part by part, what the symbols mean, and what people launch.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from grids.grid import Grid
from kernels.case import Case
from kernels.collectives import Algorithm
from kernels.exchanges import count_sent
from kernels.terms import TERMS
from sweep.answers.fits import find_smallest_group
from sweep.answers.numbers import finite, number
from sweep.cells.configuration import ONLY, Configuration
from sweep.explanation.launch import describe_launch
from sweep.explanation.layer_rows import list_layers
from sweep.explanation.memory_formulas import list_memory_formulas
from sweep.explanation.symbols import list_symbols
from sweep.explanation.time_formulas import Formula, select_formulas
from sweep.questions.bottleneck import tell_what_binds
from sweep.questions.predict import choose_case, describe_case

Row = dict[str, Any]

# Of what has no time.
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
    asked = Configuration(model, strategy, pe, batch, system, dataset, parameters, settings)
    return explain_grid(asked.grid())


def explain_grid(grid: Grid) -> Row:
    """The prediction, with what binds in a `sentence`, `formulas` a term, `memory_formulas` a part
    of the memory, `symbols` of both, how to `launch` it, and `layers` a row each.

    `hidden` has a row for what passes while PEs compute: it is no part of the whole.
    """
    case = choose_case(grid)
    predicted = describe_case(grid, case)
    predicted |= {"smallest_group": find_smallest_group(grid, ONLY)}
    if case is None or predicted["epoch_time"] is None:
        return predicted | NOTHING
    # The case has sums over layers alone: layers are divided once more, by what was chosen.
    strategy = grid.strategies[0].settle(predicted)
    groups = grid.groups(ONLY, strategy=strategy)
    assert groups is not None  # it has a time
    rows = _list_formulas(grid, case, predicted)
    hidden = [row for row in rows if TERMS[row["term"]].part == "hidden"]
    shares = {row["term"]: row["part"] for row in rows if row not in hidden}
    memory = list_memory_formulas(grid, case, groups, predicted)
    told = {row["term"]: row["formula"] for row in rows}
    told |= {row["part"]: row["formula"] for row in memory}
    return predicted | {
        "sentence": tell_what_binds(shares)["sentence"],
        "formulas": [row for row in rows if row not in hidden],
        "hidden": hidden,
        "memory_formulas": memory,
        "symbols": list_symbols(told, _list_named(case, predicted), grid.spec.oracle),
        "launch": describe_launch(grid, case, groups, predicted),
        "layers": list_layers(groups, predicted["batch"], _find_gamma(case)),
    }


def _find_gamma(case: Case) -> float:
    """What buffer reuse leaves of Table III's memory; the machine oracle knows tensors."""
    return number(case.run.gamma) if case.options.oracle == "paper" else 1.0


def _list_named(case: Case, predicted: Row) -> dict[str, Any]:
    """The values that symbols may have, by their names."""
    software = {name: finite(number(each)) for name, each in vars(case.software).items()}
    through_hosts = {"staging_bandwidth": finite(number(case.network.staging_bandwidth))}
    return predicted | software | through_hosts | _list_values(case, predicted)


def _list_formulas(grid: Grid, case: Case, predicted: Row) -> list[Row]:
    """A row for each term that takes time."""
    values = _list_values(case, predicted)
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


def _list_values(case: Case, predicted: Row) -> dict[str, float]:
    """Every number that a formula names."""
    work = case.work
    parameters: dict[str, float] = predicted["parameters"]
    b, delta, p2 = predicted["batch"], parameters["delta"], predicted["group"]
    number = {
        name: float(np.sum(np.asarray(getattr(work, name))))
        for name in work.__dataclass_fields__
        if name not in ("touched", "row_states")
    }
    # Weights that each PE of a group holds are reduced over all PEs, parts of weights over
    # replicas.
    ring = predicted["pe"] if number["replicated"] else predicted["replicas"]
    several = number["pipelined"] and p2 > 1
    is_machine = case.options.oracle == "machine"
    return parameters | {
        "b": b,
        "p2": p2,
        "steps": p2 + parameters["segments"] - 1 if several else 1,
        "p": predicted["pe"],
        "across": (1 / parameters.get("accumulate", 1)) if predicted["replicas"] > 1 else 0.0,
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
        **(_list_machine_values(case, number, predicted) if is_machine else {}),
    }


def _list_machine_values(
    case: Case, number: Mapping[str, float], predicted: Row
) -> dict[str, float]:
    """The numbers that formulas of the machine oracle alone name."""
    return {
        "fixed": number["fixed"],
        "launches": number["launches"],
        "logged": number["logged"] if predicted["group"] > 1 else 0.0,
        "gradient_bytes": predicted["parameters"]["gradient_delta"] * count_sent(case),
        "path_messages": number["path_messages"],
        "path_bytes": predicted["batch"] * predicted["parameters"]["delta"] * number["path_items"],
    }
