"""Diff: which inputs and answers of two cubes differ, by how much, and where.

The shared cells are compared one part at a time, so memory does not grow with the cubes.
"""

from dataclasses import dataclass
from itertools import starmap
from math import prod
from operator import eq, lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.answers.mapping import AnswerMapping, name_arguments
from paradl.sweep.answers.types.cubes import (
    ChangedAxis,
    ChangedInput,
    ChangedVariable,
    Difference,
)
from paradl.sweep.cells.parts import Part, find_positions
from paradl.sweep.cells.reader import Places, Reader
from paradl.sweep.cells.selection import Selection, join_selection
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.cells.space import list_given
from paradl.sweep.cube.difference import list_differences
from paradl.sweep.cube.plan import SERIAL
from paradl.sweep.cube.variables import Arrays
from paradl.sweep.questions.changes import Changes, Flips, Winners, list_changed_winners

SHOWN = 3  # most values listed of those that only one cube has
NEEDED = {"comp_time", "comm_time", "limit"}  # variables that determine the fastest strategy


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
        "feasibility": comparison.flips.counts if comparison.flips else None,
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
        self.flips = Flips() if "limit" in names else None
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
            self.flips.add(first, second)
        for winners, part in zip(self.winners, (first, second), strict=False):
            winners.add(part)

    @property
    def is_same(self) -> bool:
        """True if no answer differs so far."""
        changed = self.flips is not None and self.flips.counts["changed"]
        return not changed and all(changes.is_same for changes in self.changes.values())

    def list_answers(self) -> list[ChangedVariable]:
        """One row for each variable."""
        return [{"variable": name, **changes.describe()} for name, changes in self.changes.items()]


def share_cells(cubes: tuple[Reader, Reader], selection: Selection) -> Shared:
    """Find the cells of a slice that both cubes have. InputError: none, or unmatched axes."""
    slices = []
    for cube in cubes:
        names = {*cube.coordinates, *cube.columns}
        # An axis that only the other cube has is checked below.
        known = {name: values for name, values in selection.items() if name in names}
        slices.append(cube.list_values(known))
    _check_selection(slices, selection, {*cubes[0].columns, *cubes[1].columns})
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
    places = []
    for cube, chosen in zip(cubes, slices, strict=True):
        places.append(
            {
                dim: find_positions(cube.coordinates[dim], axes.get(dim, values))
                for dim, values in chosen.items()
            }
        )
    given = list_given(cubes[0].grid, axes)
    return Shared(axes, given, (places[0], places[1]), _list_axes(slices, axes))


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


def _check_selection(slices: list[Arrays], selection: Selection, columns: set[str]) -> None:
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
                    advice=f"choose one, such as {dim}={values[0]}",
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
