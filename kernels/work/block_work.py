"""Work of blocks: the network and the layout of each cell."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import jax
import numpy as np

from paradl.kernels.arrays import Cells
from paradl.kernels.columns import Column
from paradl.kernels.machine.rates import StackFacts
from paradl.kernels.work.layouts import ALL_COLUMNS, Layouts
from paradl.kernels.work.transformer import Training, Transformer

# Layouts per call: 2**16 makes some 60 arrays of 0.5 MB.
MOST = 2**16


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("columns",),
    meta_fields=("net", "training", "facts"),
)
@dataclass(frozen=True, eq=False)
class BlockWork:
    """Blocks of a transformer as the layout of each cell divides them.

    columns [cells]: those of `Layouts`, by name. training: apart from batch and reserved memory,
    which cells have. facts: of the device and its software.
    """

    net: Transformer
    training: Training
    facts: StackFacts
    columns: Mapping[str, Cells]

    def settle(self, batch: Cells, flushes: Cells, segments: Cells) -> "BlockWork":
        """Return the work with the batch of each cell.

        batch: B, flushes: A, of an iteration. A `micro` of 0 is all of a flush or, with stages, one
        of its segments.
        """
        settled = settle_micro(self._columns, *map(_count, (batch, flushes, segments)))
        named = ((name, getattr(settled, name)) for name in ALL_COLUMNS)
        return replace(self, columns={name: col for name, col in named if col is not None})

    @property
    def passes(self) -> Column:
        """Micro-batches of a flush [cells], once settled."""
        return self.training.count_micro_batches(self._columns)

    @property
    def _columns(self) -> Layouts:
        """The columns as they are, which broadcast."""
        return Layouts(**{name: np.asarray(column) for name, column in self.columns.items()})

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the cells, by the layouts in which they differ."""
        return np.broadcast_shapes(*map(np.shape, self.columns.values()))

    @property
    def layouts(self) -> Layouts:
        """The layouts of all cells, as a list."""
        return self.list_layouts(self.shape, slice(None))

    def list_layouts(self, shape: tuple[int, ...], part: slice) -> Layouts:
        """List the layouts of a part of cells of this shape (C order)."""
        # Of columns with all cells `ravel` copies nothing.
        whole = {name: np.broadcast_to(column, shape) for name, column in self.columns.items()}
        return Layouts(
            **{
                name: (column.ravel() if column.flags.c_contiguous else column.flat)[part]
                for name, column in whole.items()
            }
        )

    def list_parts(self, shape: tuple[int, ...]) -> Iterator[tuple[int, Layouts]]:
        """Yield lists of at most MOST layouts of cells of this shape, with the first's position."""
        for start in range(0, prod(shape), MOST):
            yield start, self.list_layouts(shape, slice(start, start + MOST))


def settle_micro(layouts: Layouts, batch: Column, flushes: Column, segments: Column) -> Layouts:
    """Return layouts with batch, flushes and micro-batches, as in `BlockWork.settle`."""
    parts = layouts.data * flushes * np.where(layouts.pipeline > 1, segments, 1)
    # A slope in the batch looks between whole numbers.
    usual = -(-batch // parts) if batch.dtype.kind == "i" else batch / parts
    micro = np.where(layouts.micro > 0, layouts.micro, np.maximum(usual, 1))
    return replace(layouts, micro=micro, batch=batch, flushes=flushes)


def _count(number: Cells) -> Column:
    """Return whole numbers as integers, and others as they are."""
    numbers = np.asarray(number)
    whole = numbers.astype(int)
    return whole if np.array_equal(whole, numbers) else numbers
