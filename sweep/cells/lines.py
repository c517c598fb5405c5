"""Summaries of lines: the PE counts at one model, data set, system, strategy and other axes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernels.names.flags import Limit
from sweep.cube.variables import Arrays

# Columns of equal length, by name.
Columns = Arrays


@dataclass(frozen=True, eq=False)
class Lines:
    """A summary: statistics (`sweep.cube.statistics`) over labelled dimensions.

    coordinates: those of the cube, in its order, without pe.
    """

    coordinates: Arrays
    arrays: Arrays

    def list_columns(self) -> Columns:
        """The summary as a table with one row for each line that can exist."""
        # nonzero is in C order, so the rows of a strategy are adjacent, as `split_groups` needs.
        at = np.nonzero(self.arrays["forbidden_by"] != Limit.INCOMPATIBLE)
        places = zip(self.coordinates.items(), at, strict=True)
        return {
            **{axis: values[position] for (axis, values), position in places},
            **{name: values[at] for name, values in self.arrays.items()},
        }


def split_groups(columns: Columns, keys: Sequence[str]) -> Iterator[Columns]:
    """Yield the runs of adjacent rows with equal values of `keys`, from top to bottom."""
    rows = len(columns[keys[0]])
    if not rows:
        return
    changes = [columns[key][1:] != columns[key][:-1] for key in keys]
    starts = np.flatnonzero(np.any(changes, axis=0)) + 1
    for first, last in zip([0, *starts], [*starts, rows], strict=True):
        yield {name: values[first:last] for name, values in columns.items()}
