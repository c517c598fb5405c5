"""Layouts of single cells: their degrees in words, memory by part, rates, and what forbids them."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paradl.grids.entries.layout_parameters import SLOPED
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid, Index
from paradl.kernels.arrays import use_numpy
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import read_parameter
from paradl.kernels.machine.speeds import Speeds
from paradl.kernels.oracle.blocks import total_exchanges
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.parallelism.layout import explain_broken
from paradl.kernels.search.stacks import find_unsupported
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Transformer
from paradl.sweep.answers.numbers import number
from paradl.sweep.cases.layout_words import list_layouts, write_layout


@dataclass(frozen=True)
class LayoutCell:
    """The layout of a case of one cell, and how it trains. stack: of the system's software."""

    case: Case
    strategy: Strategy
    stack: str | None

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
        (columns,) = list_layouts(self.layout)
        return write_layout(columns)

    @property
    def degrees(self) -> dict[str, int]:
        """Degree of each parallelism of the strategy, the outermost first."""
        names = ("pipeline", "data", "context", "tensor", "expert")
        parts = ("data", *self.strategy.parts)
        return {name: int(getattr(self.layout, name)[0]) for name in names if name in parts}

    def find_times(self) -> dict[str, float]:
        """Seconds of an iteration: total, compute and communication."""
        with use_numpy():
            times = time_iteration(self.case)
        compute, communication = map(number, (times.compute, times.communication))
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

    def list_parameters(self) -> dict[str, float]:
        """Parameter values that the times were evaluated with, in SI units."""
        return {name: float(np.ravel(read_parameter(self.case, name))[0]) for name in SLOPED}


def find_cell(grid: Grid, case: Case, index: Index) -> LayoutCell:
    """The layout of a case of one cell."""
    stack = grid.systems[index[2]].software_facts.layouts.stack
    return LayoutCell(case, grid.strategy(index), stack)
