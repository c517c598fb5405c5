"""Parts, the cells of a slice that lie in one block, and lines, the summaries of PE counts.

Questions that no summary answers read one part after another, so memory does not grow with the
cube. A line has the PE counts at one model, data set, system, strategy and other axes.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS
from paradl.kernels.names.flags import Limit
from paradl.sweep.cube.plan import SERIAL
from paradl.sweep.cube.variables import VARIABLES, Arrays, Positions, find_allowed

# A cell cannot exist if all its times and bytes are NaN.
MEASURED = frozenset(
    name for name, variable in VARIABLES.items() if variable.units in ("s", "byte")
)


@dataclass(frozen=True, eq=False)
class Part:
    """Cells with their labels.

    coordinates: values along each dimension, in the cube's order. arrays: variables over all
    dimensions, of size 1 where a variable does not vary.
    """

    coordinates: Arrays
    arrays: Arrays

    def split_strategies(self) -> "Iterator[Part]":
        """Yield the part of each model, data set, system and strategy."""
        for labels in product(*(self.coordinates[dim] for dim in LABELS)):
            yield self.pick(
                {dim: np.array([label], object) for dim, label in zip(LABELS, labels, strict=True)}
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each dimension."""
        return tuple(map(len, self.coordinates.values()))

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @cached_property
    def epoch_time(self) -> NDArray[np.float32]:
        """Time per epoch [s]; NaN where the configuration cannot exist."""
        total: NDArray[np.float32] = self.arrays["comp_time"] + self.arrays["comm_time"]
        return total

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        """True where a cell is feasible."""
        return find_allowed(self.arrays["limit"])

    @cached_property
    def defined(self) -> NDArray[np.bool_]:
        """True where a cell can exist: a time or the memory is a number."""
        # The time on one PE is known of cells that cannot exist, too.
        numbers = [array for name, array in self.arrays.items() if name in MEASURED - {SERIAL}]
        if not numbers:  # nothing says that a cell cannot exist
            return np.ones(self.shape, bool)
        known = np.zeros(self.shape, bool)
        for array in numbers:
            known |= ~np.isnan(array)
        return known

    def along(self, dim: str) -> NDArray[Any]:
        """Values of a dimension, shaped to broadcast with the arrays."""
        shape = [1] * len(self.coordinates)
        shape[list(self.coordinates).index(dim)] = -1
        return self.coordinates[dim].reshape(shape)

    def pick(self, values: Mapping[str, NDArray[Any]]) -> "Part":
        """Cells with these values along some dimensions; the part has all of them."""
        at = [
            find_positions(known, values[dim]) if dim in values else np.arange(len(known))
            for dim, known in self.coordinates.items()
        ]
        # Indexing with positions copies: skip it for the whole part.
        if all(np.array_equal(i, np.arange(n)) for i, n in zip(at, self.shape, strict=True)):
            return self
        named = zip(self.coordinates.items(), at, strict=True)
        chosen = {dim: known[i] for (dim, known), i in named}
        return Part(chosen, {name: _pick(array, at) for name, array in self.arrays.items()})

    def arrange(self, coordinates: Arrays) -> "Part":
        """The same cells over other dimensions; those that only one side has are of size 1."""
        gone = tuple(at for at, dim in enumerate(self.coordinates) if dim not in coordinates)
        new = tuple(at for at, dim in enumerate(coordinates) if dim not in self.coordinates)
        arrays = {
            name: np.expand_dims(np.squeeze(array, gone), new)
            for name, array in self.arrays.items()
        }
        arranged = {dim: self.coordinates.get(dim, values) for dim, values in coordinates.items()}
        return Part(arranged, arrays)


def _pick(array: NDArray[Any], at: list[Positions]) -> NDArray[Any]:
    """Values at positions along each dimension; dimensions of size 1 stay whole."""
    sizes = zip(at, array.shape, strict=True)
    picked: NDArray[Any] = array[np.ix_(*(i if size > 1 else [0] for i, size in sizes))]
    return picked


def find_positions(known: NDArray[Any], values: NDArray[Any]) -> Positions:
    """Position of each value in `known`, or -1."""
    # Python values are equal whatever their arrays' types, such as 8 and 8.0.
    positions = {value: at for at, value in enumerate(known.tolist())}
    return np.array([positions.get(value, -1) for value in values.tolist()], np.int64)


# Columns of equal length, by name.
Table = Arrays


@dataclass(frozen=True, eq=False)
class Lines:
    """A summary: statistics (`sweep.cube.variables`) over labelled dimensions.

    coordinates: those of the cube, in its order, without pe.
    """

    coordinates: Arrays
    arrays: Arrays

    def list_columns(self) -> Table:
        """The summary as a table with one row for each line that can exist."""
        at = np.nonzero(self.arrays["forbidden_by"] != Limit.INCOMPATIBLE)
        places = zip(self.coordinates.items(), at, strict=True)
        return {
            **{axis: values[position] for (axis, values), position in places},
            **{name: values[at] for name, values in self.arrays.items()},
        }
