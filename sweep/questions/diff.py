"""Diff: which inputs and answers of two cubes differ, by how much, and where.

The shared cells are compared one part at a time, so memory does not grow with the cubes.
"""

from dataclasses import dataclass
from itertools import groupby, product, starmap
from math import prod
from operator import eq, itemgetter, lt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.answers.mapping import AnswerMapping, name_arguments
from paradl.sweep.answers.types.cubes import (
    ChangedAxis,
    ChangedInput,
    ChangedLimits,
    ChangedVariable,
    ChangedWinner,
    ChangeFields,
    Difference,
)
from paradl.sweep.cells.parts import Part, find_positions
from paradl.sweep.cells.reader import Places, Reader
from paradl.sweep.cells.selection import Selection, join_selection, write_choice
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.cells.space import list_given, write_axis
from paradl.sweep.cube.difference import list_differences
from paradl.sweep.cube.plan import SERIAL
from paradl.sweep.cube.variables import Arrays, Columns

SHOWN = 3  # most values listed of those that only one cube has
NEEDED = {"comp_time", "comm_time", "limit"}  # variables that determine the fastest strategy
# Ratios are binned by the first 20 bits of a positive float32, 8 of the exponent and 12 of the
# fraction: that gives the median to 2**-13 (0.012 %) with 8 MB for any number of cells.
BINS, SHIFT = 2**20, 11


@name_arguments
def diff(
    first: Source,
    second: Source,
    selection: Selection | None = None,
    *,
    tolerance: float = 0.0,
    **axes: object,
) -> AnswerMapping[Difference]:
    """Differences of two cubes (Datasets, or paths of stores) as plain data.

    inputs, versions, axes; numbers of shared cells; by variable how many answers changed, and their
    ratios; ranges of PE counts in which the fastest strategy differs (`paradl schema diff`).
    tolerance: relative difference up to which answers agree.

    InputError: no shared cell; several values along an axis that only one cube has.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "strategy": "data", "pe": 64, "batch": 32}
    >>> space |= {"model": "alexnet", "system": "abci"}
    >>> now = paradl.compute_space(**space)
    >>> then = paradl.compute_space(**space, parameters={"inter_bandwidth": 25e9})
    >>> answers = paradl.diff(now, then)["answers"]
    >>> {row["variable"]: round(row["median_ratio"], 3) for row in answers if row["changed"]}
    {'comm_time': 0.534}
    """
    selection = join_selection(selection, axes)
    cubes = open_source(first), open_source(second)
    # Counted before cells are read: a sweep that is running may finish further blocks.
    notes = [
        f"{cube.place} is not finished: run the same paradl sweep again"
        for cube in cubes
        if lt(*cube.count_blocks())
    ]
    shared = share_cells(cubes, selection or {})
    mine, others = (set(cube.variables) for cube in cubes)
    names = [name for name in cubes[0].variables if name in others and name != SERIAL]
    comparison = CubeComparison(shared, names, tolerance)
    # With misfits: samples may fit a model in one cube, and not in the other.
    for part in cubes[0].read_parts(names, shared.places[0], misfits=True):
        for other in cubes[1].read_parts(names, shared.find_same(part), misfits=True):
            comparison.add(part.pick(other.coordinates), other.arrange(part.coordinates))
    is_whole = comparison.compared == shared.cells and not shared.differences and mine == others
    answer: Difference = {
        "same": is_whole and comparison.is_same,
        "cells": shared.cells,
        "compared": comparison.compared,
        "inputs": [
            {"key": key, "first": mine, "second": other}
            for key, mine, other in list_differences(cubes[0].grid, cubes[1].grid)
        ],
        "versions": _list_versions(cubes),
        "axes": shared.differences,
        "variables": {"only_first": sorted(mine - others), "only_second": sorted(others - mine)},
        "answers": comparison.list_answers(),
        "feasibility": comparison.flips,
        "winners": list_changed_winners(*comparison.winners) if comparison.winners else [],
        "notes": notes,
    }
    return AnswerMapping(answer)


@dataclass(frozen=True)
class Shared:
    """Cells that two cubes share.

    axes: their values along the dimensions of the first cube. given: axes that a planner cannot
    choose. places: their positions along the dimensions of each cube. differences: rows of `axes`.
    """

    axes: Arrays
    given: list[str]
    places: tuple[Places, Places]
    differences: list[ChangedAxis]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(map(len, self.axes.values()))

    def find_same(self, part: Part) -> Places:
        """Positions in the second cube of the cells of a part of the first."""
        # `places` has shared values in the order of the first cube; readers take ascending ones.
        return {
            dim: np.sort(at[find_positions(self.axes[dim], part.coordinates[dim])])
            if dim in part.coordinates
            else at
            for dim, at in self.places[1].items()
        }


class CubeComparison:
    """Differences between all parts compared so far."""

    def __init__(self, shared: Shared, names: list[str], tolerance: float) -> None:
        self.changes = {name: Changes(tolerance) for name in names if name != "limit"}
        none: ChangedLimits = {"changed": 0, "became_feasible": 0, "became_infeasible": 0}
        self.flips = none if "limit" in names else None
        # Without these variables no winner is known, and the loop over them is empty.
        both = range(2 if set(names) >= NEEDED else 0)
        self.winners = [Winners(shared.axes, shared.given) for _ in both]
        self.compared = 0

    def add(self, first: Part, second: Part) -> None:
        """Compare the same cells of both cubes."""
        self.compared += first.size
        for name, changes in self.changes.items():
            changes.add(first.coordinates, first.arrays[name], second.arrays[name])
        if self.flips is not None:
            _add_flips(self.flips, first, second)
        for winners, part in zip(self.winners, (first, second), strict=False):
            winners.add(part)

    @property
    def is_same(self) -> bool:
        """True if no answer differs so far."""
        changed = self.flips is not None and self.flips["changed"]
        return not changed and all(changes.is_same for changes in self.changes.values())

    def list_answers(self) -> list[ChangedVariable]:
        """One row for each variable."""
        return [{"variable": name, **changes.describe()} for name, changes in self.changes.items()]


def share_cells(cubes: tuple[Reader, Reader], selection: Selection) -> Shared:
    """Find the cells of a slice that both cubes have. InputError: none, or unmatched axes."""
    slices = []
    for cube in cubes:
        # An axis that only the other cube has is checked below.
        names = {*cube.coordinates, *cube.columns}
        slices.append(cube.list_values({n: of for n, of in selection.items() if n in names}))
    _check_selection(slices, selection, {**cubes[0].columns, **cubes[1].columns})
    _expect_same_rows(cubes[0].grid, cubes[1].grid)
    axes = {
        dim: values[find_positions(slices[1][dim], values) >= 0] if dim in slices[1] else values
        for dim, values in slices[0].items()
    }
    empty = [dim for dim, values in axes.items() if not len(values)]
    if empty:
        raise InputError(
            f"the cubes have no value of {empty[0]!r} in common",
            advice=f"the first has {_shorten(slices[0][empty[0]])}, "
            f"the second {_shorten(slices[1][empty[0]])}",
        )
    first, second = (
        {
            dim: find_positions(cube.coordinates[dim], axes.get(dim, values))
            for dim, values in chosen.items()
        }
        for cube, chosen in zip(cubes, slices, strict=True)
    )
    return Shared(axes, list_given(cubes[0].grid, axes), (first, second), _list_axes(slices, axes))


def _expect_same_rows(first: Grid, second: Grid) -> None:
    """Raise InputError if rows of parameters with the same number have different values."""
    for name in first.rows.keys() & second.rows.keys():
        mine, others = first.rows[name], second.rows[name]
        # Rows are matched by their numbers, so one table may only be longer than the other.
        same = [*mine.columns] == [*others.columns] and all(
            starmap(eq, zip(mine.list_tuples(), others.list_tuples(), strict=False))
        )
        if not same:
            raise InputError(
                f"the cubes have different rows of {name!r}, so their numbers do not match",
                advice="list the shared rows first, in the same order",
            )


def _check_selection(slices: list[Arrays], selection: Selection, columns: Columns) -> None:
    """Raise InputError for unknown axes, and for several values along an unshared axis."""
    for dim in selection:
        if dim not in columns and not any(dim in known for known in slices):
            raise InputError(f"no axis {dim!r} in these cubes", where="selection")
    # One value along an axis that the other cube lacks may be compared: it is a slice.
    for known, other in (slices, slices[::-1]):
        for dim, values in known.items():
            if dim not in other and len(values) > 1:
                raise InputError(
                    f"only one of the cubes has the axis {dim!r}, with {len(values):,} values",
                    where="selection",
                    advice=f"choose one, such as {dim}={write_choice(dim, values[0], columns)}",
                )


def _list_axes(slices: list[Arrays], shared: Arrays) -> list[ChangedAxis]:
    """One row for each axis that differs."""
    rows: list[ChangedAxis] = []
    for dim in dict.fromkeys([*slices[0], *slices[1]]):
        first, second = (known.get(dim, np.array([])) for known in slices)
        both = dim in slices[0] and dim in slices[1]
        common = shared[dim] if both else np.array([])
        only = [values[find_positions(common, values) < 0] for values in (first, second)]
        if any(map(len, only)):
            rows.append(
                {
                    "axis": dim,
                    "shared": len(common),
                    "only_first": _shorten(only[0]),
                    "only_second": _shorten(only[1]),
                }
            )
    return rows


def _shorten(values: NDArray[Any]) -> list[str | float]:
    """List values: the first of many, and how many more there are."""
    listed: list[str | float] = values.tolist()
    rest = len(listed) - SHOWN
    return listed if rest <= 0 else [*listed[:SHOWN], f"... {rest:,} more"]


def _list_versions(cubes: tuple[Reader, Reader]) -> list[ChangedInput]:
    first, second = (cube.versions for cube in cubes)
    return [
        {"key": name, "first": first.get(name), "second": second.get(name)}
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


class Changes:
    """Differences between the values of one variable, accumulated over parts."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.changed = self.only_first = self.only_second = 0
        self.largest = 1.0
        self.where: dict[str, str | float] = {}
        self.counts = np.zeros(BINS, np.int64)

    def add(self, coordinates: Arrays, first: NDArray[Any], second: NDArray[Any]) -> None:
        """Count the differences of two parts; NaN in both is none."""
        has_first, has_second = ~np.isnan(first), ~np.isnan(second)
        self.only_first += int((has_first & ~has_second).sum())
        self.only_second += int((has_second & ~has_first).sum())
        a, b = first.astype(float), second.astype(float)
        # NaN compares as False: cells that only one cube has are counted above.
        differs = np.abs(a - b) > self.tolerance * np.maximum(np.abs(a), np.abs(b))
        self.changed += int(differs.sum())
        # Zeros have no ratio, such as the communication of one PE.
        at = np.flatnonzero(differs & (a > 0) & (b > 0))
        if at.size:
            self._add_ratios(coordinates, b.reshape(-1)[at] / a.reshape(-1)[at], at, first.shape)

    def _add_ratios(
        self, coordinates: Arrays, ratios: NDArray[Any], at: NDArray[Any], shape: tuple[int, ...]
    ) -> None:
        bits = ratios.astype(np.float32).view(np.uint32) >> SHIFT
        self.counts += np.bincount(bits, minlength=BINS)
        farthest = int(np.abs(np.log(ratios)).argmax())
        if not self.where or abs(np.log(ratios[farthest])) > abs(np.log(self.largest)):
            self.largest = float(ratios[farthest])
            place = np.unravel_index(at[farthest], shape)
            # Labels are Python objects, other values NumPy's, which JSON cannot write.
            self.where = {
                dim: values[i].item() if hasattr(values[i], "item") else str(values[i])
                for (dim, values), i in zip(coordinates.items(), place, strict=True)
            }

    def describe(self) -> ChangeFields:
        """Counts, median and largest ratio (None if no cell has a ratio), and where that is."""
        return {
            "changed": self.changed,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "median_ratio": self._find_median(),
            "largest_ratio": self.largest if self.where else None,
            "where": self.where or None,
        }

    def _find_median(self) -> float | None:
        """Median to half a bin, of two in the middle their mean; None without any ratio."""
        total = int(self.counts.sum())
        if not total:
            return None
        places = [(total + 1) // 2, total // 2 + 1]  # the same one if the number is odd
        bins = np.searchsorted(np.cumsum(self.counts), places).astype(np.uint32)
        return float((bins << SHIFT | 1 << (SHIFT - 1)).view(np.float32).mean(dtype=float))

    @property
    def is_same(self) -> bool:
        """True if no value differs."""
        return not (self.changed or self.only_first or self.only_second)


def _add_flips(counts: ChangedLimits, first: Part, second: Part) -> None:
    """Count the differences between the limits of two parts."""
    counts["changed"] += int((first.arrays["limit"] != second.arrays["limit"]).sum())
    counts["became_feasible"] += int((second.feasible & ~first.feasible).sum())
    counts["became_infeasible"] += int((first.feasible & ~second.feasible).sum())


class Winners:
    """Least epoch time [model, dataset, system, *given, pe], and the position of its strategy, or
    -1 where no strategy is feasible.

    axes: values along all dimensions of the compared cells. given: names of the swept parameters of
    the machine or its software.
    """

    def __init__(self, axes: Arrays, given: list[str]) -> None:
        self.axes = axes
        self.place = (*LABELS[:3], *given, "pe")
        shape = tuple(len(axes[dim]) for dim in self.place)
        self.times, self.strategies = np.full(shape, np.inf), np.full(shape, -1)

    def add(self, part: Part) -> None:
        """Update the winners with the feasible cells of a part."""
        times = np.where(part.feasible & ~np.isnan(part.epoch_time), part.epoch_time, np.inf)
        dims = list(part.coordinates)
        kept = ("strategy", *self.place)
        # A planner chooses along the other axes, so the least time counts.
        rest = tuple(at for at, dim in enumerate(dims) if dim not in kept)
        order = [dim for dim in dims if dim in kept]
        least = times.min(axis=rest).transpose([order.index(dim) for dim in kept])
        at = {dim: find_positions(self.axes[dim], part.coordinates[dim]) for dim in dims}
        place = np.ix_(*(at[dim] for dim in self.place))
        # Strategies come first, and the earlier one keeps a tie.
        for times, strategy in zip(least, at["strategy"], strict=True):
            wins = times < self.times[place]
            self.times[place] = np.where(wins, times, self.times[place])
            self.strategies[place] = np.where(wins, strategy, self.strategies[place])


def list_changed_winners(first: Winners, second: Winners) -> list[ChangedWinner]:
    """One row for each range of PE counts over which the winners differ, in each place."""
    axes = first.axes
    rows: list[ChangedWinner] = []
    for place in product(*(range(len(axes[dim])) for dim in first.place[:-1])):
        labels = {
            dim: str(axes[dim][at]) if dim in LABELS else write_axis(dim, axes[dim][at])
            for dim, at in zip(first.place, place, strict=False)
        }
        pairs = zip(
            first.strategies[place].tolist(), second.strategies[place].tolist(), strict=True
        )
        runs = groupby(zip(axes["pe"].tolist(), pairs, strict=True), key=itemgetter(1))
        for (ours, theirs), run in runs:
            if ours != theirs:
                counts = [pe for pe, _ in run]
                row = {
                    **labels,
                    "from_pe": counts[0],
                    "to_pe": counts[-1],
                    "first": _name(axes, ours),
                    "second": _name(axes, theirs),
                }
                rows.append(cast(ChangedWinner, row))
    return rows


def _name(axes: Arrays, strategy: int) -> str | None:
    return None if strategy < 0 else str(axes["strategy"][strategy])
