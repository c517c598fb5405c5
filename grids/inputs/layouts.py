"""Layouts of a strategy's cells: those that it states, or the best of all allowed candidates.

Settings that a strategy leaves open (`best`) are chosen for each cell. Candidates are answered as
cells of a case.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from math import prod
from typing import Any

import numpy as np

from paradl.grids.entries.parameters import KNOWN
from paradl.grids.entries.precision import RECIPES, narrow_states
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import find_recipe
from paradl.grids.inputs.blocks import BlockTraining, keep_logits
from paradl.grids.inputs.machine import Stack
from paradl.grids.inputs.runs import find_group_size
from paradl.grids.inputs.values import Settings, Values
from paradl.grids.inputs.workload import Workload
from paradl.kernels.configuration.case import Case
from paradl.kernels.derivatives.slopes import STEPS
from paradl.kernels.names.arrays import Flags, Floats, Integers
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS, LAYOUT_PARTS, NODE, RECOMPUTE
from paradl.kernels.oracle.answer import SAME, answer_case, find_fit
from paradl.kernels.parallelism.alignment import count_ranks_in_node
from paradl.kernels.parallelism.layout import list_rules
from paradl.kernels.search.candidates import (
    Candidates,
    count_candidates,
    find_candidates,
    join_candidates,
)
from paradl.kernels.search.ranking import Ranked, Tally, find_likely
from paradl.kernels.search.stacks import find_unsupported
from paradl.kernels.work.layouts import COLUMNS, Layouts
from paradl.kernels.work.transformer import Training

# Candidates per case: 2**16 make some 60 arrays of 0.5 MB.
MOST = 2**16
# Values of columns that a strategy does not name; data takes the PEs that are left. A `micro` of 0
# is that of the batch and of `segments`.
USUAL = {name: row.usual for name, row in LAYOUT_COLUMNS.items()} | {"micro": 0}
# Parameters beside columns that the choice of a layout depends on.
READ = (
    *("pe", "batch", "accumulate", "segments", "max_global_batch", "memory_capacity", "headroom"),
    *("fit_chance", *KNOWN),
)
# Of these, those on which neither memory nor a limit depends. No layout's time both rises and falls
# along one: what a shorter pass hides less of an exchange is at most what it saves.
TIMING = {*KNOWN} - {"reserved"}


@dataclass(frozen=True)
class LayoutSpace:
    """Cells of a strategy, for one network on one system: their layouts, and how they train."""

    blocks: BlockTraining
    strategy: Strategy
    values: Values
    settings: Settings

    @classmethod
    def from_workload(
        cls, workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: Settings
    ) -> "LayoutSpace":
        """Find the cells of a workload. InputError: its network has no blocks."""
        assert workload.origin
        net, (_, data), machine = workload.transformer, workload.origin, workload.machine
        precision = find_recipe(machine.system)
        # Tokens of a sequence, or extents of an image.
        length = net.length or data.shape[1]
        recipe = narrow_states(RECIPES[precision], settings.options.states)
        options, facts = settings.options, machine.system.software_facts.layouts
        training = Training(
            *(0, length, recipe, strategy.schedule, options.context),
            fused_attention=options.attention == "fused",
            unsharded=facts.unsharded,
            document=data.packed or 0,
            keeps_states=options.offload not in ("states", "both"),
            keeps_activations=options.offload not in ("activations", "both"),
        )
        loss = facts.loss if options.loss == "auto" else options.loss
        fitted = workload.layout_time
        stack = Stack(machine.move_priors(fitted), precision, fitted)
        of_run = stack, data.samples, workload.convergence
        blocks = BlockTraining(net, keep_logits(training, loss), *of_run)
        return cls(blocks, strategy, Values(axes, settings, len(strategy.choices)), settings)

    def build_case(self, *, nearest: bool = False) -> Case:
        """Build the case of all cells; where settings are open, with the fastest allowed layouts.

        nearest: with those that least forbids instead, and of these with those of the least memory.
        """
        best = self._reduce(partial(Ranked.pick_best, most=1), by_memory=nearest)
        chosen = Layouts.from_rows(best.rows)
        layouts = chosen.map_columns(lambda column: column.reshape(self.shape))
        exists = best.exists.reshape(self.shape)
        return self._make_case(layouts, self.values, self.settings, exists)

    def search(self, most: int | None, tally: Tally, *, by_memory: bool = False) -> Ranked:
        """Find the fastest allowed layouts of each cell, at most this many, each at its best
        micro-batch.

        None: those that no other layout of the cell beats in both time and memory. tally: counts
        the candidates of all cells. by_memory: find those of the least memory instead.
        """
        pick = partial(Ranked.pick_best, most=most) if most else Ranked.pick_front
        return self._reduce(pick, by_memory=by_memory, tally=tally)

    def _reduce(
        self, pick: Callable[[Ranked], Ranked], *, by_memory: bool, tally: Tally | None = None
    ) -> Ranked:
        """Answer all candidates in parts, and keep what `pick` does; stated layouts as they are."""
        if not self.open:
            cell = np.arange(self._pe.size)
            columns = {name: self.fixed.get(name, np.ones_like(cell)) for name in COLUMNS}
            layouts, exists = self._complete(Layouts(**columns), cell)
            return Ranked(layouts.to_rows(), exists, cell, *[np.zeros(cell.size)] * 3)
        # In parts: 4.5 million candidates at once took 2.1 instead of 0.3 GB, and 15.4 instead of
        # 8.0 s of CPU (2026-11).
        order = None if by_memory or tally else self._sort_cells()
        listed = self.list_candidates(MOST, tally, one=order is not None)
        likely = (self._find_likely(part, tally) for part in join_candidates(listed, MOST))
        time = self._time if order is None else partial(self._time_along, order=order)
        answered = map(pick, likely if by_memory else map(time, likely))
        # Candidates of one cell may be in several parts.
        return reduce(lambda kept, more: pick(kept.join(more)), answered)

    def _make_case(
        self, layouts: Layouts, values: Values, settings: Settings, exists: Flags
    ) -> Case:
        stated = self.strategy.segments
        own = np.full((1,) * values.rank, float(stated)) if isinstance(stated, int) else None
        return self.blocks.make_case(layouts, values, settings, own, exists)

    def _find_likely(self, candidates: Candidates, tally: Tally | None) -> Ranked:
        """List the candidates that may be picked, by limits and memory; their values are unknown.

        Over the product, which takes a third of the time of a list (2026-11).
        """
        allowed, cell = candidates.allowed, candidates.cell
        layouts, exists = self._complete(candidates.layouts, cell)
        case = self._make_rows_case(layouts, cell, exists)
        limit, memory, exists = (
            np.broadcast_to(part, allowed.shape) for part in (*find_fit(case), exists)
        )
        asked = self.blocks.net, case.blocks.divided, self.blocks.training
        if tally is not None:
            tally.add(limit, memory, list_rules(*asked), allowed)
        software = self._system.software_facts.layouts.stack
        lacking = find_unsupported(software, *asked, self.fixed)
        forbidden = 2 * np.bitwise_count(limit & FORBIDS) + lacking
        # A search lists what is allowed; a case has what is least forbidden, in every cell.
        searches = tally is not None
        likely = allowed & (forbidden < 2) if searches else find_likely(forbidden, allowed, cell)
        at = np.nonzero(likely)
        rows = case.blocks.divided.list_rows(at).to_rows()
        listed = (part[at] for part in (forbidden, memory, memory))
        return Ranked(np.rint(rows).astype(int), exists[at], cell[at[-1]], *listed)

    def _time(self, found: Ranked) -> Ranked:
        """Answer what may be picked.

        Times take longest: 470,760 candidates of DeepSeek-V3 on 1,024 PEs take 1.7 instead of 3.7 s
        of CPU (2026-11).
        """
        case = self.build_rows(found, draws=0)
        value = np.broadcast_to(answer_case(case, found.memory).objective, found.cell.shape)
        return replace(found, value=value)

    def _sort_cells(self) -> Integers | None:
        """Sort the cells by the parameter of TIMING in which alone they differ; None if in more."""
        names = dict.fromkeys(("pe", *USUAL, *READ))
        varied = [name for name in names if name in self.values and self.values.get(name).size > 1]
        if len(varied) != 1 or varied[0] not in TIMING:
            return None
        return np.argsort(self.values.get(varied[0]), axis=None)

    def _time_along(self, found: Ranked, order: Integers) -> Ranked:
        """Answer the fastest of each cell, given what may be picked in one of them.

        Half-way between two cells only those are timed that may be as fast there: a layout takes no
        less than at its better end, the fastest no more than at its worse end. 241 bandwidths for
        Llama 3 70B on 1,024 PEs take 1.1 instead of 39.7 s of CPU (2026-11).
        """
        found = found.take(np.flatnonzero(found.forbidden == found.forbidden.min()))

        def time(rows: Integers, at: Integers) -> tuple[Ranked, Floats]:
            timed = self._time(replace(found.take(rows), cell=order[at]))
            return timed.pick_best(1), np.where(np.isnan(timed.value), np.inf, timed.value)

        rows: Integers = np.arange(found.cell.size)
        first: Integers = np.zeros_like(rows)
        last: Integers = np.full_like(rows, order.size - 1)
        (answered, low), (other, high) = time(rows, first), time(rows, last)
        while True:
            answered, middle = answered.join(other), (first + last) // 2
            least = np.full(order.size, np.inf)
            np.minimum.at(least, first, np.maximum(low, high))
            kept = (middle > first) & (np.minimum(low, high) <= SAME * least[first])
            if not kept.any():
                return answered
            rows, first, middle, last = (part[kept] for part in (rows, first, middle, last))
            low, high = low[kept], high[kept]
            other, between = time(rows, middle)
            rows, first, last = np.tile(rows, 2), np.append(first, middle), np.append(middle, last)
            low, high = np.append(low, between), np.append(between, high)

    def build_rows(self, listed: Ranked, draws: int) -> Case:
        """Build the case of listed layouts, a cell each. draws: of uncertain parameters."""
        layouts = Layouts.from_rows(listed.rows)
        return self._make_rows_case(layouts, listed.cell, listed.exists, draws)

    def _make_rows_case(
        self, layouts: Layouts, cell: Integers, exists: Flags, draws: int = 0
    ) -> Case:
        """Make the case of a list, or a product, of candidates; cell: along its last axis."""
        values = self.values.take(READ, self.shape, cell)
        return self._make_case(layouts, values, replace(self.settings, draws=draws), exists)

    def count_layouts(self, cells: int) -> int:
        """Count the layouts that the case of so many cells is answered from."""
        # Each parameter with slopes takes the chosen layouts again at its steps.
        slopes = self.settings.slopes
        moved = 1 + len(STEPS) * len(slopes) if slopes else 1
        if not self.open:
            return moved * cells
        return moved * cells + sum(
            cells_of.size * max(count_candidates(self.blocks.net, pes, most, lists), 1)
            for pes, most, lists, cells_of in self._list_sets()
        )

    @property
    def _system(self) -> System:
        return self.blocks.stack.machine.system

    @property
    def open(self) -> tuple[str, ...]:
        """Columns that are chosen for each cell."""
        return tuple(name for name in USUAL if self.strategy.stated.get(name) == "best")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the cells, by the parameters in which their layouts differ."""
        names = ("pe", *USUAL, *(READ if self.open else ()))
        given = [self.values.get(name).shape for name in names if name in self.values]
        return np.broadcast_shapes(*given)

    def _flatten(self, values: Floats | float) -> Integers:
        """Return whole numbers [cells]."""
        return np.broadcast_to(values, self.shape).ravel().astype(int)

    @cached_property
    def fixed(self) -> dict[str, Integers]:
        """Columns of a layout that the strategy or a parameter states [cells]."""
        strategy, values = self.strategy, self.values
        stated, in_words = strategy.stated, strategy.in_layout_words
        usual = {name: number for name, number in USUAL.items() if name != "data"}
        if self.settings.options.recompute == "full":
            usual["recompute"] = RECOMPUTE["full"]
        # An axis of a degree that the strategy lacks belongs to other strategies of the grid. In
        # other words than those of layouts, a group is what shares a replica.
        others = {*LAYOUT_PARTS, *(() if in_words else ("group",))} - {*strategy.parts}
        columns = {}
        for name, number in usual.items():
            size: Any = stated.get(name, number)
            if name in strategy.parts and not in_words and name not in stated:  # stages
                pe = values.get("pe")
                size = find_group_size(strategy, values, self._system, pe, "machine")
            elif name in values and name not in {*stated, *others}:
                size = values.get(name)
            if not isinstance(size, str):  # best
                columns[name] = self._flatten(size)
        return columns

    def list_candidates(
        self, most: int, tally: Tally | None = None, *, one: bool = False
    ) -> Iterator[Candidates]:
        """Yield candidates, in parts of at most `most`.

        tally: counts those that break a rule. one: for one of the cells that share candidates.
        """
        trained = self.blocks.net, self.blocks.training
        for pes, largest, lists, cells_of in self._list_sets():
            found, broken = find_candidates(*trained, pes, largest, lists)
            if tally:
                tally.join(broken, cells_of.size)
            *settings, width = found.allowed.shape
            size = max(most // prod(settings), 1)
            for some in _cut(np.arange(width), size):
                for part in _cut(cells_of[:1] if one else cells_of, max(size // some.size, 1)):
                    yield found.repeat(some, part)

    def _complete(self, layouts: Layouts, cell: Integers) -> tuple[Layouts, Flags]:
        """Fill in data, and the ranks of ZeRO; return whether degrees divide the PEs, too."""
        group, strategy, per_node = layouts.replica, self.strategy, self._system.pes_per_node
        ranks = self._pe[cell] if strategy.replicated else group  # one PE, whatever p is
        exists = (ranks % group == 0) & (ranks >= group)
        if strategy.replicas:
            exists = exists & (ranks // group == strategy.replicas)
        layouts = replace(layouts, data=np.where(exists, ranks // group, 1))
        ranks = layouts.data * layouts.context
        in_node = count_ranks_in_node(ranks, layouts.tensor, per_node)
        shard = np.where(layouts.shard == NODE, in_node, layouts.shard)
        is_part = (layouts.zero > 0) & (shard != ranks)
        return replace(layouts, shard=np.where(is_part, shard, 0)), exists

    @cached_property
    def _pe(self) -> Integers:
        """PEs [cells]."""
        return self._flatten(self.values.get("pe"))

    def _list_sets(self) -> Iterator[tuple[int, int, dict[str, Sequence[int]], Integers]]:
        """Yield the PEs, the largest global batch and the values of columns that candidates depend
        on, with the cells that share them, so that these candidates are listed or counted once.
        """
        pe, batch = self._pe, self._flatten(self.values.get("batch"))
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
            yield pes, pes * most if self.settings.scaling == "weak" else most, lists, cells_of


def _cut(values: Integers, size: int) -> Iterator[Integers]:
    """Cut an array into parts of at most this size."""
    return (values[start : start + size] for start in range(0, len(values), size))
