"""Work of blocks: the network and the layout of each cell, with its times, memory and limits.

In numpy: degrees and settings are whole numbers, and answers are of lists of layouts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np

from paradl.kernels.arrays import Cells
from paradl.kernels.layouts.answers import find_limits, list_possible, sum_memory, time_layouts
from paradl.kernels.layouts.columns import Column
from paradl.kernels.layouts.rates import Rates, StackFacts, find_rates
from paradl.kernels.layouts.time import TERMS
from paradl.kernels.layouts.transformer import ALL_COLUMNS, Layouts, Training, Transformer
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.machine.software import Software

# Layouts per call: 2**16 makes some 60 arrays of 0.5 MB.
MOST = 2**16


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("columns",),
    meta_fields=("net", "training", "facts"),
)
@dataclass(frozen=True)
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
        whole = {name: np.broadcast_to(column, shape) for name, column in self.columns.items()}
        return Layouts(**{name: column.flat[part] for name, column in whole.items()})

    def flag(self) -> Column:
        """Flags that follow from the layout of each cell [cells]."""
        parts = [self._find_limits(layouts) for _, layouts in self._list_parts(self.shape)]
        return np.concatenate(parts).reshape(self.shape)

    def measure(self) -> Column:
        """Bytes of tensors on the fullest PE [cells]; NaN where a degree divides nothing."""
        return self._answer(
            self.shape, lambda layouts, _: sum_memory(self.net, layouts, self.training)
        )

    def time(self, machines: "Machines") -> Column:
        """Seconds of an iteration by TERMS [terms, cells]; NaN where a degree divides nothing."""
        place = machines.place if machines.number > 1 else np.zeros(1, int)
        shape = np.broadcast_shapes(self.shape, place.shape)
        of_cells = np.broadcast_to(place, shape)

        def find(layouts: Layouts, rows: Column) -> Column:
            if machines.number > 1:
                layouts = replace(layouts, machine=of_cells.flat[rows])
            return time_layouts(self.net, layouts, self.training, machines.rates, machines.fabric)

        return self._answer(shape, find, len(TERMS))

    def _answer(
        self,
        shape: tuple[int, ...],
        find: Callable[[Layouts, Column], Column],
        *leading: int,
    ) -> Column:
        """Answer cells of this shape [*leading, cells]; NaN where a degree divides nothing.

        find: answers layouts, given their positions.
        """
        answers = np.full((*leading, prod(shape)), np.nan)
        for start, layouts in self._list_parts(shape):
            rows = list_possible(self._find_limits(layouts))
            if rows.size:
                answers[..., start + rows] = find(layouts.select(rows), start + rows)
        return answers.reshape(*leading, *shape)

    def _list_parts(self, shape: tuple[int, ...]) -> Iterator[tuple[int, Layouts]]:
        """Yield lists of at most MOST layouts of cells of this shape, with the first's position."""
        for start in range(0, prod(shape), MOST):
            yield start, self.list_layouts(shape, slice(start, start + MOST))

    def _find_limits(self, layouts: Layouts) -> Column:
        return find_limits(self.net, layouts.round_batch(), self.training)


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


class Machines(NamedTuple):
    """The machines among the cells of a case.

    rates, fabric: columns [machines], numbers for a single one. place: number of each cell's
    machine, of size 1 along dimensions where it does not vary.
    """

    rates: Rates
    fabric: Fabric
    place: Column

    @property
    def number(self) -> int:
        """Number of machines."""
        return self.place.size

    @classmethod
    def from_parts(
        cls, pe: PE, network: Network, software: Software, facts: StackFacts, rank: int
    ) -> "Machines":
        """Find the machines among cells of `rank` dimensions."""
        rates = {name: np.asarray(v) for name, v in vars(find_rates(pe, software, facts)).items()}
        fabric = Fabric.from_network(_trim_levels(network), software)
        parts = vars(fabric).values()
        links = (part for net in parts for part in (net.latency, net.bandwidth, net.flow))
        varied = [*rates.values(), *links]
        # Constants have fewer dimensions than the cells.
        shapes = (np.shape(values)[-rank:] for values in varied if np.ndim(values) >= rank)
        shape = np.broadcast_shapes((1,) * rank, *shapes)

        def list_values(values: Cells) -> Column:
            """Return values [..., cells] as [..., machines], or [...] of a single machine."""
            whole = np.asarray(values)
            if whole.ndim < rank:
                return whole
            leading = whole.shape[: whole.ndim - rank]
            if whole.size == prod(leading):
                return whole.reshape(leading)
            return np.broadcast_to(whole, (*leading, *shape)).reshape(*leading, -1)

        def list_links(part: Network) -> Network:
            latency, bandwidth, flow = map(list_values, (part.latency, part.bandwidth, part.flow))
            return replace(part, latency=latency, bandwidth=bandwidth, flow=flow)

        columns = {name: list_values(column) for name, column in rates.items()}
        single = {name: column.item() for name, column in columns.items() if column.ndim == 0}
        return cls(
            rates=Rates(**columns | single),
            fabric=Fabric(**{name: list_links(part) for name, part in vars(fabric).items()}),
            place=np.arange(prod(shape)).reshape(shape),
        )


def _trim_levels(network: Network) -> Network:
    """Return the network without the levels that pad it, whose spans repeat the last one's.

    Constants [level] lose the dimensions of cells, if they have any.
    """
    levels = np.unique(network.span).size

    def trim(values: Any) -> Column:
        return np.reshape(values, len(values))[:levels]

    return replace(
        network,
        span=trim(network.span),
        latency=network.latency[:levels],
        bandwidth=network.bandwidth[:levels],
        oversubscription=jax.tree.map(trim, network.oversubscription),
        measured=jax.tree.map(trim, network.measured),
    )
