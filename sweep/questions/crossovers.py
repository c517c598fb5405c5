"""Crossovers: the values of a parameter from which one strategy beats another.

PE counts and batches are compared at every whole number. Bandwidths, latencies and other continuous
parameters are compared on a geometric grid, and each crossover is then refined to a relative 1e-9;
two crossovers within one step of the grid (a factor of 1.06) go unnoticed.
"""

from collections.abc import Iterator
from itertools import groupby, permutations, product
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import Index
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.statistics import Objective
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.numbers import pick_ends
from paradl.sweep.answers.objectives import Aim, expect_objective
from paradl.sweep.answers.reasons import write_commonest
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import CrossoverRanges, CrossoverRow
from paradl.sweep.boundaries.curves import Curves, TimeCurve, is_ahead
from paradl.sweep.cells.selection import Selection, join_selection, write_place
from paradl.sweep.cells.source import Source, open_space
from paradl.sweep.cells.space import Space, write_cell
from paradl.sweep.cube.dimensions import expect_laws

Pair = tuple[Index, Index]

# Most combinations of the other axes; every pair of strategies is compared in each.
MOST_CELLS = 256
# Most values, over all strategies and cells, for which times are drawn.
MOST_DRAWN = 2**14


def list_crossovers(
    cube: Source,
    along: str = "pe",
    selection: Selection | None = None,
    *,
    objective: Objective = "epoch_time",
    max_global_batch: int | None = None,
    **axes: object,
) -> list[CrossoverRow]:
    """One row for each ordered pair of strategies in each place of the slice, crossovers first.

    `at`: values of `along` from which `strategy` takes less time per epoch than `over`; `reason` if
    there is none. Counts are tried from the least to the most of the slice, or from 1 if it has
    only one; other parameters along the slice's axis, or from a thousandth to a thousand times the
    system's value. The machine oracle adds percentiles if there are at most 16,384 times to draw.
    objective: train_time compares times to the target.

    InputError: an unknown parameter or objective, too many counts, no convergence law.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> pair = ["data+filter:group=4", "data+pipeline:group=4,segments=4"]
    >>> space = {"dataset": "imagenet", "system": "abci", "pe": [4, 1024], "batch": 4}
    >>> ds = paradl.compute_space("vgg16", strategy=pair, **space)
    >>> paradl.crossovers(ds)[["strategy", "at"]].to_numpy().tolist()
    [['data+filter:group=4', [8]], ['data+pipeline:group=4,segments=4', [316]]]
    """
    selection = join_selection(selection, axes)
    _check_parameter(along)
    expect_objective(objective)
    space = open_space(cube, selection, max_global_batch).ask_intervals()
    space.expect_few(MOST_CELLS, along)
    space.expect_one_kind()
    if objective == "train_time":
        expect_laws(space.grid, "objective")
    if len(space.places["strategy"]) < 2:
        raise InputError(
            "crossovers need two strategies or more, got one",
            where="strategy",
            advice="add another, such as data,data+filter",
        )
    aim = Aim(objective)
    rows = [row for pairs in _list_pairs(space) for row in _compare(space, pairs, along, aim)]
    # Crossovers first, and strategies that are feasible nowhere last.
    rows.sort(key=lambda row: (row["first"] is None, "infeasible" in str(row["reason"])))
    completed = complete_rows(space, rows)
    # A row of parameters may state a value of `along`, which does not apply: drop it. Nor does the
    # number of a row of layouts: both strategies have its columns, each as its own layout.
    for row in completed:
        for name in (along, LAYOUT):
            cast(dict[str, object], row).pop(name, None)
    return completed


crossovers = tabulate("crossovers", list_crossovers)


def _check_parameter(along: str) -> None:
    if along not in PARAMETERS:
        raise InputError.unknown("parameter", along, PARAMETERS, where="along")
    if PARAMETERS[along].whole and along not in ("pe", "batch"):
        raise InputError(
            f"no crossovers along {along!r}",
            where="along",
            advice="choose pe, batch, or a continuous parameter, such as inter_bandwidth",
        )


def _list_pairs(space: Space) -> list[list[Pair]]:
    """Ordered pairs to compare, by model, data set and system."""
    # Strategies vary fastest, so those of a place follow each other.
    places = groupby(space.list_indices(), lambda index: index[:3])
    return [[*permutations(indices, 2)] for _, indices in places]


def _compare(space: Space, pairs: list[Pair], along: str, aim: Aim) -> Iterator[CrossoverRow]:
    """Yield the rows of all pairs, for every combination of the other axes."""
    others = {name: values for name, values in space.axes.items() if name != along}
    cells = prod(values.size for values in others.values())
    for values in product(*others.values()):
        cell = dict(zip(others, values, strict=True))
        curves = Curves(space, cell, along, aim)
        axes = write_cell(cell)
        for first, second in pairs:
            at, reason = _find_crossovers(curves, first, second)
            yield {
                **space.name(first),
                "over": space.name(second)["strategy"],
                **axes,
                "along": along,
                "first": at[0] if at else None,
                "at": at,
                "reason": reason,
                **_find_ranges(curves, first, second, cells),
            }


def _find_crossovers(curves: Curves, first: Index, second: Index) -> tuple[list[float], str | None]:
    """Values from which the first is faster than the second, or why it never is."""
    values = curves.span(first)
    ours, theirs = curves.find(first, values), curves.find(second, values)
    both = np.flatnonzero(~np.isnan(ours.time) & ~np.isnan(theirs.time))
    ahead = is_ahead(ours.time[both], theirs.time[both])
    changes = np.flatnonzero(ahead[1:] & ~ahead[:-1])
    at = [curves.close_in(first, second, values[both[n]], values[both[n + 1]]) for n in changes]
    return at, None if at else _explain_never(curves, values, ours, theirs, both)


def _explain_never(
    curves: Curves, values: Floats, ours: TimeCurve, theirs: TimeCurve, both: NDArray[np.intp]
) -> str:
    """Reason why one strategy overtakes another nowhere."""
    for curve, who in ((ours, "this one"), (theirs, "the other")):
        if np.isnan(curve.time).all():
            return f"never: {who} is infeasible throughout ({write_commonest(curve.limit)})"
    if not both.size:
        return f"never: no {curves.along} at which both are feasible"
    ahead = is_ahead(ours.time[both], theirs.time[both])
    if ahead.any():
        return "faster throughout" if ahead.all() else "faster up to the crossover"
    ratio = ours.time[both] / theirs.time[both]
    at = both[int(ratio.argmin())]
    place = write_place(curves.along, float(values[at]))
    # As it would be printed: "1 times as long" reads like a mistake.
    if f"{ratio.min():.3g}" == "1":
        return f"never: at best equal, at {place}"
    reason = f"never: at best {ratio.min():.3g} times as long, at {place}"
    if ours.communication[at] <= theirs.time[at]:
        return reason
    return f"{reason}; its communication alone takes longer"


def _find_ranges(curves: Curves, first: Index, second: Index, cells: int) -> CrossoverRanges:
    """Percentiles of the first crossover over draws, if there are few enough to draw."""
    space, values = curves.space, curves.span(first)
    # Each strategy is drawn once, in however many pairs it is.
    compared = sum(index[:2] == first[:2] for index in space.list_indices())
    drawn = values.size * compared * cells
    if space.grid.spec.oracle == "paper" or drawn > MOST_DRAWN:
        return {}
    whole = PARAMETERS[curves.along].whole
    return find_crossing_ranges(*curves.draw_pair(first, second, values), whole)


def find_crossing_ranges(
    values: Floats, ours: Floats, theirs: Floats, whole: bool
) -> CrossoverRanges:
    """`first_p10` and `first_p90`, None if there is no crossover, and `crosses_probability`.

    values: ascending, where both are feasible. ours, theirs: times [value, draw]. In a draw in
    which ours is always ahead, the first value counts. For a continuous parameter, crossovers are
    interpolated linearly in logarithms between two values.
    """
    draws = ours.shape[-1]
    first = np.full(draws, np.inf)
    crossed = 0
    with np.errstate(divide="ignore"):  # a parameter may be 0
        axis = values if whole else np.log(values)
    for draw in range(draws) if values.size else ():
        apart = np.log(ours[:, draw] / theirs[:, draw])
        ahead = apart < 0
        changes = np.flatnonzero(ahead[1:] & ~ahead[:-1])
        crossed += bool(changes.size)
        if changes.size:
            first[draw] = _find_root(values, axis, apart, int(changes[0]), whole)
        elif ahead.all():
            first[draw] = values[0]
    kind = int if whole else float
    low, high = pick_ends(first, lambda end: None if np.isinf(end) else kind(end))
    return {"first_p10": low, "first_p90": high, "crosses_probability": crossed / draws}


def _find_root(values: Floats, axis: Floats, apart: Floats, at: int, whole: bool) -> float:
    """Value between two at which the logarithm of a ratio falls below 0."""
    # Counts have nothing in between, and the logarithm of 0 is infinite.
    if whole or np.isinf(axis[at]):
        return float(values[at + 1])
    part = apart[at] / (apart[at] - apart[at + 1])
    return float(np.exp(axis[at] + part * (axis[at + 1] - axis[at])))
