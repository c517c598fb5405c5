"""Layouts of single cells: their degrees in words, memory by part, rates, and what forbids them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from paradl.grids.entries.layout_parameters import KNOWN, SLOPED
from paradl.grids.grid import Grid, Index
from paradl.grids.inputs import values as inputs
from paradl.grids.inputs.layout_machine import read_fabric
from paradl.grids.inputs.layout_space import MACHINE, LayoutSpace, read_layouts
from paradl.grids.inputs.layouts import Step, lay_out, time_steps
from paradl.kernels.configuration.answers import LayoutCase
from paradl.kernels.layouts.answers import add_seconds, answer_layouts, total_exchanges
from paradl.kernels.layouts.dimensions import find_reasons
from paradl.kernels.layouts.memory import measure_memory
from paradl.kernels.layouts.rates import Rates
from paradl.kernels.layouts.stacks import find_unsupported
from paradl.kernels.layouts.transformer import Layouts, Training
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS
from paradl.sweep.cases.layout_words import describe_reason, list_layouts, write_layout


@dataclass(frozen=True)
class LayoutCell:
    """The layout of one cell, and how it trains."""

    space: LayoutSpace
    layout: Layouts
    training: Training
    rates: Rates
    fabric: Fabric
    limit: int

    # Parameters in which times are differentiated.
    SLOPED: ClassVar = MACHINE

    @property
    def is_forbidden(self) -> bool:
        """True if anything forbids it."""
        return bool(self.limit & FORBIDS)

    @property
    def is_unsupported(self) -> bool:
        """True if the system's software does not run it."""
        stack = self.space.system.software_facts.layouts.stack
        return bool(find_unsupported(stack, self.space.net, self.layout, self.training)[0])

    @property
    def words(self) -> str:
        """The layout as people write it."""
        (columns,) = list_layouts(self.layout)
        return write_layout(columns)

    @property
    def degrees(self) -> dict[str, int]:
        """Degree of each parallelism of the strategy, the outermost first."""
        names = ("pipeline", "data", "context", "tensor", "expert")
        parts = ("data", *self.space.strategy.parts)
        return {name: int(getattr(self.layout, name)[0]) for name in names if name in parts}

    def measure_parts(self) -> dict[str, float]:
        """Memory of the fullest PE by part [B]."""
        parts, _ = measure_memory(self.space.net, self.layout, self.training)
        return {name: float(part[0]) for name, part in parts.items() if part[0]}

    def find_times(self) -> dict[str, float]:
        """Seconds of an iteration: total, compute and communication."""
        answers = answer_layouts(
            self.space.net, self.layout, self.training, self.rates, self.fabric
        )
        compute, communication = (float(part[0]) for part in add_seconds(answers.seconds))
        return {
            "iteration_time": compute + communication,
            "iteration_comp_time": compute,
            "iteration_comm_time": communication,
        }

    def measure_exchanges(self) -> dict[str, float]:
        """Seconds of an iteration's communication by term, hidden or not; none without a time."""
        if self.list_obstacles():  # a layout that does not divide has no time
            return {}
        totals = total_exchanges(
            self.space.net, self.layout, self.training, self.rates, self.fabric
        )
        return {name: float(seconds[0]) for name, seconds in totals.items()}

    def list_obstacles(self) -> list[str]:
        """Rules of divisibility that the layout breaks, in words."""
        reasons = find_reasons(self.space.net, self.layout, self.training)
        (columns,) = list_layouts(self.layout)
        names = [name for name, mask in reasons.items() if np.any(mask)]
        return [describe_reason(name, self.space.net, columns, self.training) for name in names]

    def list_parameters(self) -> dict[str, float]:
        """Parameter values that the times were evaluated with, in SI units."""
        return {name: self.read_parameter(name) for name in SLOPED}

    def read_parameter(self, name: str) -> float:
        """A parameter's value; the first of several network levels."""
        return float(np.ravel(self.space.read_parameter(name))[0])

    def find_ratios(self, steps: Sequence[Step]) -> Floats:
        """The time of an iteration after each step over that before [step]."""
        computing, communicating = time_steps(self.space, self.layout, np.zeros(1, int), steps)
        times = (computing + communicating)[:, 0]
        ratios: Floats = times[1:] / times[0]
        return ratios


def find_cell(
    grid: Grid, case: LayoutCase, index: Index, axes: Mapping[str, Floats] | None = None
) -> LayoutCell:
    """The layout of a case of one cell. axes: values of the cell that replace those of the grid."""
    space = grid.build(lay_out, index, axes, None)
    assert space is not None  # its samples fit
    given = {name: float(space.flatten(name)[0]) for name in KNOWN if name in space.values}
    layout = read_layouts(case)
    training = space.describe_training(given.get("reserved"))
    # Layouts have their global batch in a column; of a single one it is a number.
    training = replace(training, batch=int(layout.batch[0]) if layout.batch is not None else 0)
    values = inputs.RowValues(given)
    limit = int(np.ravel(case.answer.limit)[0])
    fabric = read_fabric(space.machine, values)
    return LayoutCell(space, layout, training, space.read_rates(values), fabric, limit)
