"""Summaries of lines of PE counts, one per model, data set, system, strategy and other axes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernels.names.flags import Limit
from sweep.cube.variables import Arrays

# Arrays of one length, a row for each position along them.
Columns = Arrays


@dataclass(frozen=True, eq=False)
class Lines:
    """A summary: the statistics of `sweep.cube.statistics` over labelled dimensions.

    coordinates: the cube's in their order, but for pe.
    """

    coordinates: Arrays
    arrays: Arrays

    def list_columns(self) -> Columns:
        """A row for each line that can exist."""
        # In C order, so that rows of one strategy follow one another, as `split_groups` needs.
        at = np.nonzero(self.arrays["forbidden_by"] != Limit.INCOMPATIBLE)
        places = zip(self.coordinates.items(), at, strict=True)
        return {
            **{axis: values[position] for (axis, values), position in places},
            **{name: values[at] for name, values in self.arrays.items()},
        }


def split_groups(columns: Columns, keys: Sequence[str]) -> Iterator[Columns]:
    """The parts of a table over which `keys` keep their values, from top to bottom."""
    rows = len(columns[keys[0]])
    if not rows:
        return
    changes = [columns[key][1:] != columns[key][:-1] for key in keys]
    starts = np.flatnonzero(np.any(changes, axis=0)) + 1
    for first, last in zip([0, *starts], [*starts, rows], strict=True):
        yield {name: values[first:last] for name, values in columns.items()}
