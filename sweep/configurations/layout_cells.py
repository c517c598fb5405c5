"""Layouts of single cells: their degrees in words, memory by part, rates, and what forbids them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypedDict

import numpy as np

from paradl.grids.entries.layout_words import write_layout
from paradl.grids.entries.parameters import SLOPED
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid, Index
from paradl.kernels.arrays import use_numpy
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import read_parameter
from paradl.kernels.machine.speeds import Speeds
from paradl.kernels.names.flags import TIGHT
from paradl.kernels.oracle.block_times import count_model_flops, count_recomputed_flops
from paradl.kernels.oracle.blocks import sum_memory, total_exchanges
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.parallelism.layout import explain_broken, find_marks
from paradl.kernels.search.stacks import STACKS, find_unsupported
from paradl.kernels.work.block_memory import measure_memory
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Transformer
from paradl.sweep.answers.numbers import number
from paradl.sweep.answers.types.words import LayoutRates

NO_RATES: LayoutRates = {
    "tokens_per_second": None,
    "tokens_per_pe_second": None,
    "mfu": None,
    "hfu": None,
}
# Probability that memory suffices below which a layout is tight, although formulas let it fit.
EVEN = 0.5


class LayoutTimes(TypedDict, total=False):
    """Seconds of an iteration; empty if it has none."""

    iteration_time: float
    iteration_comp_time: float
    iteration_comm_time: float


@dataclass(frozen=True)
class LayoutCell:
    """The layout of a case of one cell, and how it trains.

    stack: of the system's software. seconds: of computing and communicating in an iteration, if
    known.
    """

    case: Case
    strategy: Strategy
    stack: str | None
    seconds: tuple[float, float] | None = None

    @property
    def net(self) -> Transformer:
        """The network."""
        return self.case.blocks.net

    @cached_property
    def layout(self) -> Layouts:
        """The layout, in a list of its own."""
        return self.case.blocks.layouts

    @cached_property
    def training(self) -> Training:
        """How it trains."""
        batch, reserved = number(self.case.run.global_batch), number(self.case.pe.reserved)
        return replace(self.case.blocks.training, batch=int(batch), reserved=reserved)

    @cached_property
    def speeds(self) -> Speeds:
        """Rates of its PEs, and the network between them."""
        case = self.case
        parts = case.pe, case.network, case.software, case.blocks.facts
        return Speeds.from_parts(*parts)

    @property
    def is_unsupported(self) -> bool:
        """True if the system's software does not run it."""
        return bool(find_unsupported(self.stack, self.net, self.layout, self.training)[0])

    @property
    def words(self) -> str:
        """The layout as people write it."""
        (columns,) = self.layout.to_names()
        return write_layout(columns, self.training.schedule)

    @property
    def degrees(self) -> dict[str, int]:
        """Degree of each parallelism of the strategy, the outermost first."""
        names = ("pipeline", "data", "context", "tensor", "expert")
        parts = ("data", *self.strategy.parts)
        return {name: int(getattr(self.layout, name)[0]) for name in names if name in parts}

    @cached_property
    def fullest_stage(self) -> int:
        """The stage that needs most memory, from 0."""
        _, stages = measure_memory(self.net, self.layout, self.training)
        return int(stages[0])

    def describe(self, fits: float | None) -> LayoutRates:
        """Facts of the layout: rates, remarks, and the stacks that run it.

        fits: probability that its memory suffices, if known.
        """
        return {
            **self._list_rates(),
            "remarks": self._list_remarks(fits),
            "runs_with": self._list_stacks(),
        }

    def _list_rates(self) -> LayoutRates:
        """Tokens per second and FLOPs over the peak; None without a time."""
        if self.list_obstacles():  # a layout that does not divide has no time
            return NO_RATES
        seconds, pes = self.times["iteration_time"], int(self.layout.pes[0])
        tokens = self.training.batch * self.training.length / seconds
        flops = count_model_flops(self.net, self.training)
        again = float(count_recomputed_flops(self.net, self.layout, self.training)[0])
        peak = seconds * pes * number(self.speeds.rates.peak)
        return {
            "tokens_per_second": tokens,
            "tokens_per_pe_second": tokens / pes,
            "mfu": flops / peak,
            "hfu": (flops + again) / peak,
        }

    def _list_remarks(self, fits: float | None) -> list[str]:
        """Oddities of the layout, which forbid nothing."""
        asked = self.net, self.layout, self.training
        marks = find_marks(*asked, int(number(self.case.network.pes_per_node)))
        is_allowed = sum_memory(*asked)[0] <= number(self.case.pe.memory_capacity)
        tight = is_allowed and fits is not None and fits < EVEN
        return [*(name for name, mask in marks.items() if mask[0]), *([TIGHT] if tight else [])]

    def _list_stacks(self) -> list[str]:
        """Stacks that run such a layout, if they know the network."""
        asked = self.net, self.layout, self.training
        return [stack for stack in STACKS if not find_unsupported(stack, *asked)[0]]

    @cached_property
    def times(self) -> LayoutTimes:
        """Seconds of an iteration: total, compute and communication."""
        if self.seconds is None:
            with use_numpy():
                times = time_iteration(self.case)
            compute, communication = map(number, (times.compute, times.communication))
        else:
            compute, communication = self.seconds
        return {
            "iteration_time": compute + communication,
            "iteration_comp_time": compute,
            "iteration_comm_time": communication,
        }

    def measure_exchanges(self) -> dict[str, float]:
        """Seconds of an iteration's communication by term, hidden or not; none without a time."""
        if self.list_obstacles():  # a layout that does not divide has no time
            return {}
        totals = total_exchanges(self.net, self.layout, self.training, *self.speeds)
        return {name: float(seconds[0]) for name, seconds in totals.items()}

    def list_obstacles(self) -> list[str]:
        """Rules of divisibility that the layout breaks, in words."""
        return [*explain_broken(self.net, self.layout, self.training)]

    def list_parameters(self) -> dict[str, float | None]:
        """Parameter values that the times were evaluated with, in SI units."""
        return {name: float(np.ravel(read_parameter(self.case, name))[0]) for name in SLOPED}


def find_cell(grid: Grid, case: Case, index: Index) -> LayoutCell:
    """The layout of a case of one cell."""
    stack = grid.systems[index[2]].software_facts.layouts.stack
    return LayoutCell(case, grid.strategy(index), stack)
