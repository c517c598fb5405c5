"""Work of blocks: the network and the layout of each cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import jax
import numpy as np

from paradl.kernels.arrays import STATIC, Cells
from paradl.kernels.columns import Column
from paradl.kernels.machine.rates import StackFacts
from paradl.kernels.work.layouts import ALL_COLUMNS, Layouts
from paradl.kernels.work.schedules import Stage
from paradl.kernels.work.transformer import Training, Transformer


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class BlockWork:
    """Blocks of a transformer as the layout of each cell divides them.

    columns [cells]: those of `Layouts`, by name. training: apart from batch and reserved memory,
    which cells have. facts: of the device and its software. stages: those that may be the fullest
    or the slowest. levels: of the network. spans [level, cells]: PEs of each that whole groups use;
    None: all.
    """

    net: Transformer = field(metadata=STATIC)
    training: Training = field(metadata=STATIC)
    facts: StackFacts = field(metadata=STATIC)
    columns: Mapping[str, Cells]
    stages: tuple[Stage, ...]
    levels: int = field(metadata=STATIC)
    spans: Cells | None = None

    def settle(
        self, batch: Cells, flushes: Cells, segments: Cells, *, whole: bool = False
    ) -> "BlockWork":
        """Return the work with the batch of each cell.

        batch: B, flushes: A, of an iteration. A `micro` of 0 is all of a flush or, with stages, one
        of its segments. whole: round it up where it is no whole number, for rules that divide it.
        """
        layouts, (batch, flushes, cuts) = self.divided, map(np.asarray, (batch, flushes, segments))
        usual = batch / (layouts.data * flushes * np.where(layouts.pipeline > 1, cuts, 1))
        usual = np.maximum(np.ceil(usual) if whole else usual, 1)
        micro = np.where(layouts.micro > 0, layouts.micro, usual)
        layouts = replace(layouts, micro=micro, batch=batch, flushes=flushes)
        named = ((name, getattr(layouts, name)) for name in ALL_COLUMNS)
        return replace(self, columns={name: col for name, col in named if col is not None})

    @property
    def passes(self) -> Column:
        """Micro-batches of a flush [cells], once settled."""
        return self.training.count_micro_batches(self.divided)

    @property
    def divided(self) -> Layouts:
        """The layouts of cells as columns that broadcast."""
        return Layouts(**{name: np.asarray(column) for name, column in self.columns.items()})

    @property
    def layouts(self) -> Layouts:
        """The layouts of all cells, as a list."""
        whole = np.broadcast_arrays(*self.columns.values())
        rows = (np.rint(column).astype(int).ravel() for column in whole)
        return Layouts(**dict(zip(self.columns, rows, strict=True)))
