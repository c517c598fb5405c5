"""Spaces: the design space of a question, or a slice of one.

Questions that call the kernels read no cells: they only need the design space of a store, Dataset
or slice, and the selected values.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np

from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.grid import LABELS, Grid, Index
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.names.arrays import Floats
from paradl.sweep.cells.selection import look_up_parameter, read_axis

if TYPE_CHECKING:
    from paradl.kernels.configuration.case import Case


class Labels(TypedDict):
    """Labels of a cell."""

    model: str
    dataset: str
    system: str
    strategy: str


def name_labels(model: str, dataset: str, system: str, strategy: str) -> Labels:
    """Labels by dimension, in the order of LABELS."""
    return {"model": model, "dataset": dataset, "system": system, "strategy": strategy}


class CellAxes(TypedDict):
    """Values of a cell along the axes: those of every cube, and others that it names."""

    pe: int
    batch: int


class CellLabels(Labels, CellAxes):
    """Labels and values of a cell along the axes."""


@dataclass(frozen=True)
class Space:
    """A design space, and the slice of it that a question is about.

    places: positions along each labelled dimension. axes: values along each numeric dimension.
    """

    grid: Grid
    places: Mapping[str, tuple[int, ...]]
    axes: Mapping[str, Floats]

    def list_indices(self) -> Iterator[Index]:
        """Yield each model, data set, system and strategy whose samples fit, in grid order."""
        for model, dataset, system, strategy in product(*(self.places[dim] for dim in LABELS)):
            if self.grid.table(model, dataset) is not None:
                yield model, dataset, system, strategy

    def list_cells(self) -> Iterator[dict[str, float]]:
        """Yield every combination of the axes' values; PE counts vary slowest."""
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, map(float, values), strict=True))

    def split_given(self) -> Iterator["Space"]:
        """Yield the spaces with one value of each parameter that is given, such as a bandwidth."""
        given = list_given(self.grid, self.axes)
        for place in product(*(self.axes[name] for name in given)):
            fixed = {name: np.array([value]) for name, value in zip(given, place, strict=True)}
            yield replace(self, axes={**self.axes, **fixed})

    def build_case(
        self,
        index: Index,
        values: Mapping[str, float | Floats],
        strategy: Strategy | None = None,
    ) -> "Case":
        """Case of an index whose samples fit, over values of parameters, whether axes or not.

        strategy: replaces that of the index.
        """
        # Axes are in the order of the table of parameters, even if the grid lacks them; rows last.
        known = self.grid.parameters
        axes = {name: np.atleast_1d(values[name]) for name in known if name in values}
        case = self.grid.case(index, axes, strategy)
        assert case is not None  # its samples fit
        return case

    def expect_few(self, most: int, *along: str) -> None:
        """Raise InputError if a strategy has more cells than can be evaluated one by one.

        along: axes that do not count.
        """
        count = prod(values.size for name, values in self.axes.items() if name not in along)
        if count > most:
            raise InputError(
                f"{count:,} cells are too many for this question, which evaluates them one by one",
                advice=f"select at most {most:,}, such as one PE count and one batch",
            )

    def describe_mix(self) -> tuple[str, str] | None:
        """Describe a network with both layouts and other strategies, and name one of the others.

        None: no network of the space has both.
        """
        labels, places = self.grid.labels, self.places
        for model in places["model"]:
            layouts, others = list[str](), list[str]()
            for at in places["strategy"]:
                kind = layouts if self.grid.find_blocks((model, 0, 0, at)) else others
                kind.append(labels["strategy"][at])
            tables = (self.grid.table(model, dataset) for dataset in places["dataset"])
            if layouts and others and any(table is not None for table in tables):
                return (
                    f"{labels['model'][model]}: times of {shorten(', '.join(others))} and of "
                    f"layouts {shorten(', '.join(layouts))} rest on different rates, and do not "
                    "compare (docs/transformers.md)",
                    others[0],
                )
        return None

    def expect_one_kind(self) -> None:
        """Raise InputError if layouts of a network would be ranked with other strategies."""
        if mix := self.describe_mix():
            advice = f"rank one kind at a time, such as strategy={mix[1]}"
            raise InputError(mix[0], where="selection", advice=advice)

    @property
    def systems(self) -> list[System]:
        """Systems of the slice."""
        return [self.grid.systems[at] for at in self.places["system"]]

    def name(self, index: Index) -> Labels:
        """Labels of an index."""
        labels = self.grid.labels
        return name_labels(*(labels[dim][at] for dim, at in zip(LABELS, index, strict=True)))

    def ask_intervals(self) -> "Space":
        """The space whose cases have draws of uncertain parameters; unchanged for Table III."""
        return replace(self, grid=self.grid.ask_intervals())


def list_given(grid: Grid, axes: Iterable[str]) -> list[str]:
    """Axes that a planner cannot choose: parameters of a machine or its software, and rows."""
    known = grid.parameters
    return [name for name in axes if name in known and not known[name].chosen]


def list_row_values(grid: Grid, row: Mapping[str, object]) -> dict[str, int | float | None]:
    """Values of the parameters that change together, looked up by an answer's row numbers."""
    return {
        name: None if row[dim] is None else write_axis(name, values[int(read_axis(row, dim))])
        for dim, rows in grid.rows.items()
        if dim in row
        for name, values in rows.columns.items()
    }


def look_up_value(grid: Grid, cell: Mapping[str, object], name: str) -> float | None:
    """A parameter of a cell: the value of its axis or row, or that fixed by the spec, or None."""
    if name in grid.axes and name in cell:
        return read_axis(cell, name)
    return list_row_values(grid, cell).get(name, grid.spec.parameters.get(name))


def look_up_capacity(grid: Grid, index: Index, cell: Mapping[str, object]) -> float:
    """Memory of a PE [B], from an axis, the spec or the system."""
    given = look_up_value(grid, cell, "memory_capacity")
    return grid.systems[index[2]].pe.memory_capacity if given is None else given


def write_axis(name: str, value: float) -> int | float:
    """A value of an axis as answers state it: an int for counts and row numbers."""
    return int(value) if look_up_parameter(name).whole else float(value)


def write_axes(values: Mapping[str, float]) -> dict[str, int | float]:
    """Values along some axes, as answers state them."""
    return {name: write_axis(name, value) for name, value in values.items()}


def write_cell(cell: Mapping[str, float]) -> CellAxes:
    """Values of a cell along all axes, as answers state them."""
    return cast(CellAxes, write_axes(cell))


def take_cell(axes: Mapping[str, Floats], at: Iterable[int]) -> dict[str, float]:
    """Values of the cell at a position along each axis."""
    positions = zip(axes.items(), at, strict=True)
    return {name: float(values[n]) for (name, values), n in positions}


def thin_values(values: Floats, most: int) -> Floats:
    """At most `most` values of an axis, evenly spaced by position, including both ends."""
    if values.size <= most:
        return values
    at = np.unique(np.linspace(0, values.size - 1, most).round().astype(int))
    return np.asarray(values[at], float)


def thin_axis(values: Floats, most: int) -> Floats:
    """Thin the values of an axis evenly; of many, keep powers of two if there are enough."""
    if values.size <= most:
        return values
    # An axis may have 0, which has no logarithm.
    powers = values[np.log2(np.maximum(values, 1e-300)) % 1 == 0]
    return thin_values(powers if powers.size > 2 else values, most)
