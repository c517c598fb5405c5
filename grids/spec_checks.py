"""Checks of a spec against what it names: ranges, rows, strategies, and references of a store.

A store's spec spells out its entries, so that the sender of a store cannot choose files to open.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.layout_words import expect_pes
from paradl.grids.entries.names import is_path
from paradl.grids.entries.parameters import PARAMETERS, SLOPED
from paradl.grids.entries.precision import NARROW
from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import find_peaks, find_recipe
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import LayerTable
from paradl.grids.outputs import OUTPUTS, list_sloped
from paradl.grids.reading.errors import InputError, ShapeError, add_place, shorten
from paradl.grids.reading.yamlfile import Where
from paradl.grids.rows import Rows, read_file
from paradl.grids.spec import REFUSED, Spec
from paradl.kernels.names.parallelisms import DATA, LAYOUT_DEGREES, NEEDS, TRANSFORMERS, WRITTEN
from paradl.kernels.options import OracleName

AXIS_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Names that arrays of a cube, and keys of answers, have beside outputs and parameters.
RESERVED = {
    *("along", "at", "bottleneck", "change", "computing", "cost", "degrees", "elasticity"),
    *(
        "epoch_time",
        "faster_than_next",
        "feasible",
        "first",
        "fits",
        "forbidden_by",
        "global_batch",
    ),
    *("hfu", "holds", "infeasible_at", "iteration_time", "kind", "largest_pe", "losers", "marks"),
    *("mean_loss", "memory_parts", "mfu", "needed", "notes", "over", "over_system", "own"),
    *("parameter", "pe_hours", "pe_part", "precision", "progress", "rank", "reason", "rejection"),
    *("remarks", "runs_with", "samples_per_pe_second", "samples_per_second", "sentence"),
    *("serial_time", "share", "shares", "software"),
    *("statistic", "summary", "tokens_per_pe_second", "tokens_per_second", "upgrade", "value"),
}
# Statistics, percentiles and probabilities of a cube's variables.
PARTS = re.compile(r"(efficient|fastest|soonest|worst|elasticity)_.*|.*_(p\d+|probability)")


def settle_rows(spec: Spec, base: Path, where: Where) -> Spec:
    """The spec with rows of files, and without those that their condition leaves out.

    InputError: a file that cannot be read, a parameter that has values elsewhere, too.
    """
    settled: dict[str, Rows] = {}
    for name, rows in spec.axes.rows.items():
        place = f"{where(('axes', name))}: {name}"
        with add_place(place):
            taken = name in (*OUTPUTS, *RESERVED) or PARTS.fullmatch(name)
            if taken or not AXIS_NAME.fullmatch(name):
                what = f"{shorten(name)} cannot name rows of parameters"
                raise InputError(what, advice="use a word of small letters, such as 'layout'")
            if rows.file:
                rows = read_file(base / rows.file)
            for column in rows.columns:
                _check_column(spec, column, settled)
            settled[name] = rows = rows if rows.condition is None else _keep_dividing(spec, rows)
    return spec.model_copy(update={"axes": spec.axes.model_copy(update=settled)})


def _check_column(spec: Spec, name: str, others: Mapping[str, Rows]) -> None:
    """InputError: a parameter that has values elsewhere, or that the oracle does not know."""
    owner = PARAMETERS[name].oracle
    if owner not in (None, spec.oracle):
        reason = REFUSED.get(name, f"only 'oracle: {owner}' knows it: write that, or omit")
        raise InputError(f"{name!r} is no parameter of 'oracle: {spec.oracle}'; {reason}")
    # Others are those settled before, so that two are compared once.
    in_rows = any(name in rows.columns for rows in others.values())
    if in_rows or name in {*spec.axes.numeric, *spec.axes.ranges}:
        raise InputError(f"{name!r} is an axis too, by itself or in other rows", advice="keep one")
    if name in spec.parameters:
        raise InputError(f"{name!r} is under 'parameters' too", advice="keep one")


def _keep_dividing(spec: Spec, rows: Rows) -> Rows:
    """Return the rows whose degrees divide a PE count, and whose pieces divide a batch.

    Degrees: `group`, or the product of `tensor`, `context` and `pipeline`. Pieces: `micro`, and
    `segments`, which under strong scaling are multiplied with the passes that `accumulate` adds up.
    InputError: rows of none of these, or none that stays.
    """
    columns, axes = rows.columns, spec.axes.numeric
    degrees = [columns[name] for name in LAYOUT_DEGREES if name in columns]
    divisors = {"pe": [columns["group"]] if "group" in columns else [], "batch": []}
    if degrees:
        divisors["pe"].append(np.prod(degrees, axis=0))
    if "segments" in columns:
        strong = spec.scaling == "strong"
        passes = columns.get("accumulate", 1.0) if strong else 1.0
        divisors["batch"].append(columns["segments"] * passes)
    if "micro" in columns:
        divisors["batch"].append(columns["micro"])
    if not any(divisors.values()):
        raise InputError("'divides' compares group, degrees, segments or micro, which no row has")
    # Where a row that stays does not divide, its cells are marked.
    kept = np.ones(len(rows), bool)
    for name, listed in divisors.items():
        for column in listed:
            # By distinct divisors: of a hundred thousand rows there are few.
            distinct, position = np.unique(column, return_inverse=True)
            divides = [(axes[name].values % divisor == 0).any() for divisor in distinct]
            kept &= np.array(divides)[position]
    if not kept.any():
        raise InputError("no row is left: none divides both a PE count and a batch")
    return rows.take(kept)


def refuse_ranges(spec: Spec, where: Where) -> None:
    """Raise InputError for an axis that is a range: a grid has listed values."""
    for name, drawn in spec.axes.ranges.items():
        what = f"expected listed values, got the range {shorten(drawn.form)}"
        advice = "draw from it with 'paradl sample', or list values, as {geomspace: [..., 50]}"
        raise InputError(what, where=where(("axes", name)), advice=advice)


def refuse_twins(labels: tuple[str, ...]) -> None:
    """Raise InputError for a repeated label, which would name two cells of the cube."""
    # Quadratic, but an axis has at most 1,000 labels.
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError(f"{twice!r} is repeated", advice="keep one")


def check_self_contained(spec: Spec) -> None:
    """Raise InputError for a name or a file in a store's spec."""
    axes = spec.axes
    # Strategies are our own words and open no file.
    references = {"model": axes.model, "dataset": axes.dataset or (), "system": axes.system}
    for key in ("calibration", "convergence"):
        if (entries := getattr(spec, key)) != ("none",):
            references[key] = entries
    found = [
        (key, reference)
        for key, listed in references.items()
        for reference in listed
        if isinstance(reference, str) or _names_file(reference)
    ]
    found += [(name, rows.file) for name, rows in axes.rows.items() if rows.file]
    for key, reference in found[:1]:
        raise InputError(
            f"expected a whole definition, as sweeps write it, got {shorten(reference)}",
            where=f"the store's spec: {key}",
            advice="do not trust this store",
        )


def _names_file(reference: Mapping[str, object]) -> bool:
    family = reference.get("family")
    return isinstance(family, Mapping) and is_path(str(family.get("name")))


def read_strategies(spec: Spec) -> tuple[Strategy, ...]:
    """Return the strategies of a spec. InputError: one leaves open how it divides PEs."""
    strategies = tuple(map(parse_strategy, spec.axes.strategy))
    for strategy in strategies:
        _expect_degrees(strategy, spec)
        if strategy.written and "pe" in spec.axes.numeric:  # a layout in short words
            columns = {name: n for name, n in strategy.degrees if isinstance(n, int)}
            columns |= {DATA: strategy.replicas} if strategy.replicas else {}
            counts = spec.axes.numeric["pe"].values.astype(int).tolist()
            expect_pes(columns, counts, shorten(strategy.label))
    return strategies


def refuse_idle_settings(strategies: Iterable[Strategy], spec: Spec) -> None:
    """Raise InputError for a setting of a layout that divides nothing, whatever the axes say."""
    for strategy, (name, (need, none)) in product(strategies, NEEDS.items()):
        stated = dict(strategy.degrees)
        number = stated.get(
            need, None if need in spec.axes.swept else spec.parameters.get(need, none)
        )
        if stated.get(name) and number == none:
            raise InputError(
                f"{shorten(strategy.label)}: {name} divides nothing with {need} {none}",
                advice=f"write '{need}={none + 1}', or leave {name} out",
            )


def refuse_zero_axis(strategies: Iterable[Strategy], spec: Spec) -> None:
    """Raise InputError for an axis of stages of ZeRO if networks of layers have to take it."""
    layered = (strategy.undo_layout() for strategy in strategies)
    takers = (one for one in layered if one.takes_zero and one.zero is None)
    if "zero" in spec.axes.swept and (taker := next(takers, None)):
        what = f"{shorten(taker.label)} of a network without blocks takes one stage of ZeRO"
        raise InputError(what, advice=f"write each, such as '{taker.base}:zero=1'")


def expect_slopes(layouts: Sequence[Strategy], outputs: Sequence[str]) -> None:
    """Raise InputError if an elasticity is in a parameter that layouts do not have."""
    unknown = [name for name in list_sloped(outputs) if name not in SLOPED]
    if unknown and layouts:
        what = f"no elasticity in {unknown[0]} is computed of {shorten(layouts[0].label)}"
        raise InputError(what, advice=f"known: {', '.join(SLOPED)}")


def expect_rates(
    layouts: Sequence[Strategy], strategies: Iterable[Strategy], systems: Iterable[System]
) -> None:
    """Raise InputError if a strategy is not answered in a system's precision."""
    other = next((strategy for strategy in strategies if strategy not in layouts), None)
    for system in systems:
        if layouts:
            find_peaks(system, find_recipe(system))
        if other and system.precision in NARROW:
            what = f"only layouts of transformers compute in {system.precision}, not {other.label}"
            raise InputError(
                f"{system.name}: {what}", advice="write 'precision=bf16' behind its name"
            )


def expect_blocks(
    strategies: Sequence[Strategy],
    models: Sequence[Architecture],
    datasets: Sequence[Dataset],
    oracle: OracleName,
) -> None:
    """Raise InputError if a strategy is a layout, as fine-tuning needs it, without blocks."""
    names = [one.name for one in models if one.tuning] + [d.name for d in datasets if d.packed]
    if names and (oracle == "paper" or any(one.divides_layers for one in strategies)):
        raise InputError(
            f"{shorten(names[0])}: only layouts of transformers have frozen weights or documents",
            advice="write 'oracle: machine', and strategies of data, tensor, pipeline, ...",
        )
    layout = next((strategy for strategy in strategies if strategy.needs_blocks), None)
    if layout is None and not names:
        return
    from paradl.grids.models.transformers import find_blocks  # late: few specs have layouts

    for model, dataset in product(models, datasets):
        if model.rank != len(dataset.shape) - 1:
            continue  # a pair that does not fit
        # Samples that do not fit are told by a warning, or marked.
        with suppress(ShapeError), add_place(shorten(layout.label) if layout else names[0]):
            find_blocks(model, dataset)


def _expect_degrees(strategy: Strategy, spec: Spec) -> None:
    """Raise InputError if a strategy leaves open how PEs divide, or lacks a given parallelism.

    A degree is a setting of the strategy, a parameter or an axis. Without data parallelism one may
    be left open, and gets the remaining PEs.
    """
    if strategy.several and spec.oracle == "paper":
        raise InputError(
            f"{shorten(strategy.label)} is no strategy of Table III, which divides a replica in "
            "one way; write 'oracle: machine'"
        )
    stated, given = dict(strategy.degrees), {*spec.parameters, *spec.axes.swept}
    missing = [name for name in strategy.parts if name not in {*stated, *given}]
    # Groups of a node are the usual ones of a single parallelism.
    is_open = strategy.several or strategy.in_layout_words
    if is_open and len(missing) > (0 if strategy.replicated else 1):
        degrees = ((name, stated.get(name, 2)) for name in strategy.parts)
        example = replace(strategy, degrees=tuple(degrees))
        raise InputError(
            f"{shorten(strategy.label)}: no degree of {' and '.join(missing)}",
            advice=f"write {example.label!r}, '{missing[0]}=best', or a parameter or an axis",
        )
    more = [name for name in TRANSFORMERS if name in given and name not in strategy.parts]
    if strategy.in_layout_words and more:
        parts = [name for name in WRITTEN if name in (*strategy.parts, more[0])]
        raise InputError(
            f"{shorten(strategy.label)} has no {more[0]} parallelism, of which a degree is given",
            advice=f"write {'+'.join([DATA, *parts])!r}, or leave {more[0]} out",
        )


def expect_divisible(strategies: Iterable[Strategy], table: LayerTable) -> None:
    """Raise InputError if a strategy should split all layers, but one cannot be split."""
    all_split = [strategy for strategy in strategies if strategy.layers == "all"]
    by_weights = (strategy for strategy in all_split if strategy.splits("weights"))
    layers = zip(table.names, table.kinds, strict=True)
    for strategy, (name, kind) in product(by_weights, layers):
        if KINDS[kind].whole:
            what = f"layer {shorten(name)} cannot be split: {KINDS[kind].whole}"
            raise InputError(
                what, where=f"strategy {strategy.label}", advice="leave out 'split=all'"
            )
