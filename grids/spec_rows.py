"""The rows of a spec: checked against its other axes, and thinned by their condition."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from paradl.grids.entries.choices import REFUSED
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.outputs import OUTPUTS
from paradl.grids.reading.errors import InputError, add_place, shorten
from paradl.grids.reading.yamlfile import Where
from paradl.grids.rows import Rows, read_file
from paradl.grids.spec import Spec
from paradl.kernels.names.arrays import Flags, Floats
from paradl.kernels.names.parallelisms import LAYOUT_DEGREES

AXIS_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Names that arrays of a cube, and keys of answers, have beside outputs and parameters.
RESERVED = {
    *("along", "at", "bottleneck", "change", "computing", "cost", "degrees", "elasticity"),
    *("epoch_time", "faster_than_next", "feasible", "first", "forbidden_by", "global_batch"),
    *("hfu", "holds", "infeasible_at", "iteration_time", "kind", "largest_pe", "losers", "marks"),
    *("mean_loss", "memory_parts", "mfu", "needed", "notes", "over", "own"),
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
            _check_axis_name(name)
            if rows.file:
                rows = read_file(base / rows.file)
            for column in rows.columns:
                _check_column(spec, column, settled)
            settled[name] = rows = rows if rows.condition is None else _keep_dividing(spec, rows)
    return spec.model_copy(update={"axes": spec.axes.model_copy(update=settled)})


def _check_axis_name(name: str) -> None:
    """InputError: a name that no dimension may have, as a variable of the cube has it."""
    taken = name in (*OUTPUTS, *RESERVED) or PARTS.fullmatch(name)
    if taken or not AXIS_NAME.fullmatch(name):
        raise InputError(
            f"{shorten(name)} cannot name rows of parameters",
            advice="use a word of small letters, such as 'layout', that names nothing in a cube",
        )


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
        raise InputError(
            "'divides' compares group, degrees, segments or micro, and none is in the rows",
            advice="leave 'where' out",
        )
    # Where a row that stays does not divide, its cells are marked.
    kept = np.ones(len(rows), bool)
    for name, listed in divisors.items():
        for column in listed:
            kept &= _divides_any(column, axes[name].values)
    if not kept.any():
        raise InputError(
            "no row is left: none divides both a PE count and a batch",
            advice="change 'product', or the values of pe and batch",
        )
    return rows.take(kept)


def _divides_any(divisors: Floats, values: Floats) -> Flags:
    """True if each divides one of the values at least."""
    # By distinct divisors: of a hundred thousand rows there are few.
    distinct, position = np.unique(divisors, return_inverse=True)
    divides = np.array([(values % divisor == 0).any() for divisor in distinct])
    return np.asarray(divides[position])
