"""Cells of a transformer's strategy: the layouts that each is answered from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.calibration import LayoutTime
from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.layout_parameters import KNOWN
from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import find_recipe, read_facts
from paradl.grids.inputs import values as cells
from paradl.grids.inputs.layout_machine import keep_logits
from paradl.grids.inputs.machine import Machine
from paradl.kernels.batches import global_batch
from paradl.kernels.machine.rates import StackFacts
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS, LAYOUT_PARTS, NODE, RECOMPUTE
from paradl.kernels.parallelism.alignment import count_ranks_in_node
from paradl.kernels.search.candidates import count_candidates, list_candidates
from paradl.kernels.work.block_work import settle_micro
from paradl.kernels.work.layouts import COLUMNS, Layouts
from paradl.kernels.work.transformer import Training, Transformer

Numbers = NDArray[np.int64]
# Values of columns that a strategy does not name; data takes the PEs that are left. A `micro` of 0
# is that of the batch and of `segments`.
USUAL = {name: row.usual for name, row in LAYOUT_COLUMNS.items()} | {"micro": 0}


@dataclass(frozen=True)
class LayoutSpace:
    """Cells of a strategy, for one network on one system: their layouts, and how they train."""

    net: Transformer
    data: Dataset
    machine: Machine
    strategy: Strategy
    values: cells.Values
    settings: cells.Settings
    calibrated: LayoutTime | None = None

    @property
    def system(self) -> System:
        """The system of the machine."""
        return self.machine.system

    @property
    def length(self) -> int:
        """Tokens of a sequence, or extents of an image."""
        return self.data.shape[1]

    @property
    def samples(self) -> int:
        """Samples of an epoch."""
        return self.data.samples

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the cells, by the parameters in which their layouts differ."""
        of_run = ("batch", "accumulate", "segments", "max_global_batch", "memory_capacity")
        names = ("pe", *USUAL, *((*of_run, *KNOWN) if self.open else ()))
        given = [self.values.get(name).shape for name in names if name in self.values]
        return np.broadcast_shapes(*given)

    def flatten(self, name: str, default: float | None = None) -> Floats:
        """Return a parameter's values [cells]."""
        return np.broadcast_to(self.values.get(name, default), self.shape).ravel()

    @cached_property
    def fixed(self) -> dict[str, Numbers]:
        """Columns of a layout that the strategy or a parameter states [cells]."""
        stated = self.strategy.stated
        usual = {name: number for name, number in USUAL.items() if name != "data"}
        if self.settings.options.recompute == "full":
            usual["recompute"] = RECOMPUTE["full"]
        columns, stages = {}, () if self.strategy.in_layout_words else self.strategy.parts
        for name, number in usual.items():
            size = stated.get(name)
            if size is None and name in stages:
                columns[name] = self._find_stages(name).astype(int)
            # An axis of a degree that the strategy lacks belongs to other strategies of the grid.
            elif size is None and name in self.values and self.has(name):
                columns[name] = self.flatten(name).astype(int)
            elif size != "best":
                columns[name] = np.full(prod(self.shape), number if size is None else int(size))
        return columns

    @property
    def segments(self) -> Floats:
        """Segments that cut a flush where no micro-batch is stated."""
        stated = self.strategy.segments
        if isinstance(stated, int):
            return np.full((1,) * self.values.rank, float(stated))
        return self.values.get("segments")

    def _find_stages(self, name: str) -> Floats:
        """Return the stages that a strategy leaves open [cells]: as those of other networks."""
        if not self.strategy.replicated:
            return self.flatten("pe")
        for given in (name, "group"):
            if given in self.values:
                return self.flatten(given)
        return np.minimum(self.system.pes_per_node, self.flatten("pe"))

    def has(self, name: str) -> bool:
        """True if the strategy has a setting: degrees only of the parallelisms that it names."""
        # In other words than those of layouts, a group is what shares a replica.
        lacking = LAYOUT_PARTS if self.strategy.in_layout_words else (*LAYOUT_PARTS, "group")
        return name in self.strategy.parts or name not in lacking

    @property
    def open(self) -> tuple[str, ...]:
        """Columns that are chosen for each cell."""
        return tuple(name for name in USUAL if self.strategy.stated.get(name) == "best")

    def complete(self, layouts: Layouts, data: Numbers, cell: Numbers) -> Layouts:
        """Return layouts with their replicas; candidates to choose from with their batches, too."""
        layouts = replace(layouts, data=data)
        if not self.open:
            return layouts
        batch, flushes = (self.flatten(n).astype(int)[cell] for n in ("batch", "accumulate"))
        segments = np.broadcast_to(self.segments, self.shape).ravel()[cell].astype(int)
        whole = np.asarray(global_batch(batch, data * flushes, self.settings.scaling))
        settled = settle_micro(layouts, whole, flushes, segments, whole=True)
        return replace(settled, micro=settled.micro.astype(int))

    def list_candidates(self, most: int) -> Iterator[tuple[Layouts, Numbers, NDArray[np.bool_]]]:
        """Yield all candidates, in parts of at most `most`: layouts, the cell of each, and whether
        its degrees divide its PEs.
        """
        pe = self.flatten("pe").astype(int)
        for rows, cell in _join_lists(self._expand(pe, most), most):
            layouts = Layouts.from_rows(rows)
            group = layouts.replica
            ranks = pe[cell] if self.strategy.replicated else group  # one PE, whatever p is
            exists = (ranks % group == 0) & (ranks >= group)
            data = np.where(exists, ranks // group, 1)
            layouts = self.complete(layouts, data, cell)
            in_node = count_ranks_in_node(layouts, self.system.pes_per_node)
            ranks = np.where(layouts.shard == NODE, in_node, layouts.shard)
            yield layouts.shard_over(ranks), cell, exists

    def _make_rows(self, pe: Numbers, columns: Mapping[str, Numbers]) -> Numbers:
        """Stack the columns in the order of layouts; data is filled in later."""
        rows = [columns.get(name, np.ones_like(pe)) for name in COLUMNS]
        return np.stack([row[: pe.size] for row in rows], axis=1)

    def count_candidates(self) -> int:
        """Count the candidates of all cells."""
        pe = self.flatten("pe").astype(int)
        if not self.open:
            return pe.size
        return sum(
            cells_of.size * max(count_candidates(self.net, pes, most, lists), 1)
            for pes, most, lists, cells_of in self._list_sets(pe)
        )

    def _expand(self, pe: Numbers, size: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield lists of at most `size` candidates as rows, and the cell of each."""
        if not self.open:
            for part in cut(np.arange(pe.size), size):
                fixed = {name: column[part] for name, column in self.fixed.items()}
                yield self._make_rows(pe[part], fixed), part
            return
        for pes, most, lists, cells_of in self._list_sets(pe):
            rows = list_candidates(self.net, pes, most, lists).to_rows()
            if not len(rows):  # the stated layout alone, so that its flags say what forbids it
                rows = self._make_rows(np.ones(1, int), {n: np.array(v) for n, v in lists.items()})
            for some in cut(rows, size):
                for part in cut(cells_of, size // len(some)):
                    yield np.tile(some, (part.size, 1)), np.repeat(part, len(some))

    def _list_sets(
        self, pe: Numbers
    ) -> Iterator[tuple[int, int, dict[str, Sequence[int]], Numbers]]:
        """Yield the PEs, the largest global batch and the values of columns that candidates depend
        on, with the cells that share them, so that these candidates are listed or counted once.
        """
        batch, weak = self.flatten("batch").astype(int), self.settings.scaling == "weak"
        # Micro-batches are powers of two: batches of as many bits have the same.
        bits = np.frexp(batch.astype(float))[1]
        known = np.stack([bits, pe, *self.fixed.values()], axis=1)
        distinct, place = np.unique(known, axis=0, return_inverse=True)
        order = np.argsort(place.reshape(-1), kind="stable")
        counts = np.bincount(place.reshape(-1), minlength=len(distinct))
        for values, cells_of in zip(distinct, np.split(order, np.cumsum(counts)[:-1]), strict=True):
            length, pes, *columns = values.tolist()
            lists: dict[str, Sequence[int]] = {"micro": [1 << bit for bit in range(length)]} | {
                name: (n,) for name, n in zip(self.fixed, columns, strict=True)
            }
            # Under weak scaling a batch is that of a replica, of which there are at most `pes`.
            most = int(batch[cells_of].max())
            yield pes, pes * most if weak else most, lists, cells_of

    @property
    def facts(self) -> StackFacts:
        """Facts of the system and its software, with the factor of a calibration."""
        facts = read_facts(self.system, find_recipe(self.system))
        return replace(facts, slowdown=self.calibrated.factor if self.calibrated else 1.0)

    @cached_property
    def training(self) -> Training:
        """How the layouts train; batch and reserved memory are those of cells."""
        training = Training(
            batch=0,
            length=self.net.length or self.length,
            recipe=RECIPES[find_recipe(self.system)],
            schedule=self.strategy.schedule,
        )
        return keep_logits(training, self.system.software_facts.layouts.loss)


def _join_lists(
    lists: Iterator[tuple[Numbers, Numbers]], most: int
) -> Iterator[tuple[Numbers, Numbers]]:
    """Join lists of rows and their cells as long as these are at most `most`."""
    held, count = list[tuple[Numbers, Numbers]](), 0
    for rows, cell in lists:
        if count and count + len(rows) > most:
            yield _stack(held)
            held, count = [], 0
        held.append((rows, cell))
        count += len(rows)
    yield _stack(held)


def _stack(lists: list[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    rows, cells = zip(*lists, strict=True)
    return np.concatenate(rows), np.concatenate(cells)


def cut(values: Numbers, size: int) -> Iterator[Numbers]:
    """Cut an array into parts of at most this size."""
    return (values[start : start + size] for start in range(0, len(values), size))
