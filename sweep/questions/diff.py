"""Diff: which inputs and answers of two cubes differ, by how much, and where.

The shared cells are compared one part at a time, so memory does not grow with the cubes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, starmap
from math import prod
from operator import itemgetter, lt, ne
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
    Difference,
)
from paradl.sweep.cells.parts import Part, find_positions
from paradl.sweep.cells.reader import Reader
from paradl.sweep.cells.selection import Selection, join_selection, write_choice
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.cells.space import list_given, write_axis
from paradl.sweep.cube.difference import list_differences
from paradl.sweep.cube.plan import SERIAL
from paradl.sweep.cube.variables import Arrays

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
    cubes = open_source(first), open_source(second)
    # Counted before cells are read: a sweep that is running may finish further blocks.
    notes = [
        f"{cube.place} is not finished: run the same paradl sweep again"
        for cube in cubes
        if lt(*cube.count_blocks())
    ]
    slices = _slice_axes(cubes, join_selection(selection, axes) or {})
    _expect_same_rows(cubes[0].grid, cubes[1].grid)
    shared, differences = _share_axes(*slices), _list_axes(*slices)
    cells = prod(map(len, shared.values()))
    mine, others = (set(cube.variables) for cube in cubes)
    names = [name for name in cubes[0].variables if name in others and name != SERIAL]
    changes = {name: Changes(tolerance) for name in names if name != "limit"}
    given = list_given(cubes[0].grid, shared)
    # Without some variables no winner is known, and the loop over them is empty.
    winners = [Winners(shared, given) for _ in cubes if set(names) >= NEEDED]
    none: ChangedLimits = {"changed": 0, "became_feasible": 0, "became_infeasible": 0}
    flips = none if "limit" in names else None
    compared = 0
    for pair in _read_pairs(cubes, slices, shared, names):
        one, other = pair
        compared += one.size
        for name, change in changes.items():
            change.add(one.coordinates, one.arrays[name], other.arrays[name])
        if flips:
            _add_flips(flips, one, other)
        for winner, part in zip(winners, pair, strict=False):
            winner.add(part)
    answers = [change.describe(name) for name, change in changes.items()]
    is_same = not (flips and flips["changed"]) and not any(
        row["changed"] or row["only_first"] or row["only_second"] for row in answers
    )
    is_whole = compared == cells and not differences and mine == others
    answer: Difference = {
        "same": is_whole and is_same,
        "cells": cells,
        "compared": compared,
        "inputs": [
            {"key": key, "first": mine, "second": other}
            for key, mine, other in list_differences(cubes[0].grid, cubes[1].grid)
        ],
        "versions": _list_versions(cubes),
        "axes": differences,
        "variables": {"only_first": sorted(mine - others), "only_second": sorted(others - mine)},
        "answers": answers,
        "feasibility": flips,
        "winners": list_changed_winners(*winners) if winners else [],
        "notes": notes,
    }
    return AnswerMapping(answer)


def _slice_axes(cubes: tuple[Reader, Reader], selection: Selection) -> tuple[Arrays, Arrays]:
    """Values along the dimensions of a slice of both cubes.

    InputError: an unknown axis, or several values along one that only one cube has.
    """
    names = [{*cube.coordinates, *cube.columns} for cube in cubes]
    first, second = (
        # Without the axes that only the other cube has.
        cube.list_values({n: of for n, of in selection.items() if n in own or n not in foreign})
        for cube, own, foreign in zip(cubes, names, names[::-1], strict=True)
    )
    # One value along an axis that the other cube lacks may be compared: it is a slice.
    for dim, values in {**first, **second}.items():
        if (dim not in first or dim not in second) and len(values) > 1:
            choice = write_choice(dim, values[0], {**cubes[0].columns, **cubes[1].columns})
            raise InputError(
                f"only one of the cubes has the axis {dim!r}, with {len(values):,} values",
                where="selection",
                advice=f"choose one, such as {dim}={choice}",
            )
    return first, second


def _share_axes(first: Arrays, second: Arrays) -> Arrays:
    """Values that both cubes have along the dimensions of the first. InputError: none."""
    axes = {
        dim: values[np.isin(values, second[dim])] if dim in second else values
        for dim, values in first.items()
    }
    for dim, values in axes.items():
        if not len(values):
            raise InputError(
                f"the cubes have no value of {dim!r} in common",
                advice=f"the first has {_shorten(first[dim])}, the second {_shorten(second[dim])}",
            )
    return axes


def _expect_same_rows(first: Grid, second: Grid) -> None:
    """Raise InputError if rows of parameters with the same number have different values."""
    for name in first.rows.keys() & second.rows.keys():
        mine, others = first.rows[name], second.rows[name]
        # Rows are matched by their numbers, so one table may only be longer than the other.
        pairs = zip(mine.list_tuples(), others.list_tuples(), strict=False)
        if [*mine.columns] != [*others.columns] or any(starmap(ne, pairs)):
            raise InputError(
                f"the cubes have different rows of {name!r}, so their numbers do not match",
                advice="list the shared rows first, in the same order",
            )


def _list_axes(mine: Arrays, others: Arrays) -> list[ChangedAxis]:
    """One row for each axis that differs."""
    rows: list[ChangedAxis] = []
    for dim in {**mine, **others}:
        first, second = (axes.get(dim, np.array([])) for axes in (mine, others))
        only_first, only_second = first[~np.isin(first, second)], second[~np.isin(second, first)]
        if len(only_first) or len(only_second):
            rows.append(
                {
                    "axis": dim,
                    "shared": len(first) - len(only_first),
                    "only_first": _shorten(only_first),
                    "only_second": _shorten(only_second),
                }
            )
    return rows


def _shorten(values: NDArray[Any]) -> list[str | float]:
    """List values: the first of many, and how many more there are."""
    rest = len(values) - SHOWN
    return [*values[:SHOWN].tolist(), *([f"... {rest:,} more"] if rest > 0 else [])]


def _list_versions(cubes: tuple[Reader, Reader]) -> list[ChangedInput]:
    first, second = (cube.versions for cube in cubes)
    return [
        {"key": name, "first": first.get(name), "second": second.get(name)}
        for name in {**first, **second}
        if first.get(name) != second.get(name)
    ]


def _read_pairs(
    cubes: tuple[Reader, Reader], slices: tuple[Arrays, Arrays], axes: Arrays, names: list[str]
) -> Iterator[tuple[Part, Part]]:
    """Yield the shared cells as parts of both cubes, over the dimensions of the first."""
    first, second = (
        {
            dim: find_positions(cube.coordinates[dim], axes.get(dim, values))
            for dim, values in chosen.items()
        }
        for cube, chosen in zip(cubes, slices, strict=True)
    )
    # With misfits: samples may fit a model in one cube, and not in the other.
    for part in cubes[0].read_parts(names, first, misfits=True):
        # Positions have shared values in the order of the first cube; readers take ascending ones.
        places = {
            dim: np.sort(at[find_positions(axes[dim], part.coordinates[dim])])
            if dim in part.coordinates
            else at
            for dim, at in second.items()
        }
        for other in cubes[1].read_parts(names, places, misfits=True):
            yield part.pick(other.coordinates), other.arrange(part.coordinates)


@dataclass
class Changes:
    """Differences between the values of one variable, accumulated over parts.

    largest, where: the ratio farthest from 1, and its cell. counts: ratios in each bin.
    """

    tolerance: float
    changed: int = 0
    only_first: int = 0
    only_second: int = 0
    largest: float = 1.0
    where: dict[str, str | float] = field(default_factory=dict)
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, coordinates: Arrays, first: NDArray[Any], second: NDArray[Any]) -> None:
        """Count the differences of two parts; NaN in both is none."""
        a, b = np.broadcast_arrays(first.astype(float), second.astype(float))
        self.only_first += int((np.isnan(b) & ~np.isnan(a)).sum())
        self.only_second += int((np.isnan(a) & ~np.isnan(b)).sum())
        # NaN compares as False: cells that only one cube has are counted above.
        differs = np.abs(a - b) > self.tolerance * np.maximum(np.abs(a), np.abs(b))
        self.changed += int(differs.sum())
        # Zeros have no ratio, such as the communication of one PE.
        at = np.flatnonzero(differs & (a > 0) & (b > 0))
        if not at.size:
            return
        ratios = b.flat[at] / a.flat[at]
        bits = ratios.astype(np.float32).view(np.uint32) >> SHIFT
        self.counts += np.bincount(bits, minlength=BINS)
        farthest = int(np.abs(np.log(ratios)).argmax())
        if not self.where or abs(np.log(ratios[farthest])) > abs(np.log(self.largest)):
            self.largest = float(ratios[farthest])
            place = np.unravel_index(at[farthest], differs.shape)
            self.where = {
                dim: values.tolist()[position]
                for (dim, values), position in zip(coordinates.items(), place, strict=True)
            }

    def describe(self, variable: str) -> ChangedVariable:
        """Counts, median and largest ratio (None if no cell has a ratio), and where that is."""
        return {
            "variable": variable,
            "changed": self.changed,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "median_ratio": self._find_median() if self.where else None,
            "largest_ratio": self.largest if self.where else None,
            "where": self.where or None,
        }

    def _find_median(self) -> float:
        """Median to half a bin, of two in the middle their mean."""
        total = int(self.counts.sum())
        places = [(total + 1) // 2, total // 2 + 1]  # the same one if the number is odd
        bins = np.searchsorted(np.cumsum(self.counts), places).astype(np.uint32)
        return float((bins << SHIFT | 1 << (SHIFT - 1)).view(np.float32).mean(dtype=float))


def _add_flips(counts: ChangedLimits, first: Part, second: Part) -> None:
    """Count the differences between the limits of two parts."""
    counts["changed"] += int((first.arrays["limit"] != second.arrays["limit"]).sum())
    counts["became_feasible"] += int((second.feasible & ~first.feasible).sum())
    counts["became_infeasible"] += int((first.feasible & ~second.feasible).sum())


class Winners:
    """Least epoch time of each strategy in each place, and so the fastest one.

    axes: values along all dimensions of the compared cells. given: names of the swept parameters of
    the machine or its software, which are part of the place.
    """

    def __init__(self, axes: Arrays, given: list[str]) -> None:
        self.axes = axes
        self.place = (*LABELS[:3], *given, "pe")
        # A planner chooses along the other axes, so the least time counts.
        self.kept = [dim for dim in axes if dim in ("strategy", *self.place)]
        self.times = np.full([len(axes[dim]) for dim in self.kept], np.inf, np.float32)

    def add(self, part: Part) -> None:
        """Update the least times with the feasible cells of a part."""
        times = np.where(part.feasible & ~np.isnan(part.epoch_time), part.epoch_time, np.inf)
        rest = tuple(at for at, dim in enumerate(part.coordinates) if dim not in self.kept)
        positions = (find_positions(self.axes[dim], part.coordinates[dim]) for dim in self.kept)
        at = np.ix_(*positions)
        self.times[at] = np.minimum(self.times[at], times.min(axis=rest))

    def name(self) -> NDArray[np.object_]:
        """Name the fastest strategy of each place, of a tie the earlier; None: none is feasible."""
        times = self.times.transpose([self.kept.index(dim) for dim in ("strategy", *self.place)])
        names = np.array([*map(str, self.axes["strategy"]), None], object)
        return names[np.where(np.isfinite(times).any(axis=0), times.argmin(axis=0), -1)]


def list_changed_winners(first: Winners, second: Winners) -> list[ChangedWinner]:
    """One row for each range of PE counts over which the winners differ, in each place."""
    axes, mine, others = first.axes, first.name(), second.name()
    rows: list[ChangedWinner] = []
    for place in np.ndindex(*mine.shape[:-1]):
        labels = {
            dim: str(axes[dim][at]) if dim in LABELS else write_axis(dim, axes[dim][at])
            for dim, at in zip(first.place, place, strict=False)
        }
        winners = zip(axes["pe"].tolist(), mine[place], others[place], strict=True)
        for (ours, theirs), run in groupby(winners, key=itemgetter(1, 2)):
            if ours != theirs:
                counts = [pe for pe, *_ in run]
                ends = {"from_pe": counts[0], "to_pe": counts[-1]}
                rows.append(
                    cast(ChangedWinner, {**labels, **ends, "first": ours, "second": theirs})
                )
    return rows
