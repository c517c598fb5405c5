"""Elasticities of layouts: differences of times, with a parameter of the machine changed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grids.inputs.layout_machine import find_reserved
from grids.inputs.layout_space import MACHINE, LayoutSpace, Numbers
from grids.inputs.layouts import read_layouts
from kernels.arrays import use_numpy
from kernels.configuration.answers import LayoutCase
from kernels.derivatives.differences import STEPS, find_elasticity, round_elasticity
from kernels.layouts.answers import MOST, add_seconds
from kernels.layouts.transformer import Layouts
from kernels.names.arrays import Floats
from kernels.names.stored import name_elasticity

Step = tuple[str, float]  # a parameter of MACHINE, and a factor on it


def add_slopes(space: LayoutSpace, case: LayoutCase) -> LayoutCase:
    """Return a case with the elasticities of its times and memory, by output [cells].

    NaN where a layout cannot exist, and of a time of 0. Elasticities of the time to the target are
    those of an epoch's: epochs do not depend on the machine.
    """
    layouts = read_layouts(case)
    memory = np.ravel(case.answer.memory)
    names = [name for name in space.settings.slopes if name in MACHINE]
    steps = [(name, step) for step in STEPS for name in names]
    computing, communicating = time_steps(space, layouts, np.arange(memory.size), steps)
    times = {
        "comp_time": computing,
        "comm_time": communicating,
        "epoch_time": computing + communicating,
        "train_time": computing + communicating,
    }
    reserved = space.flatten("reserved", find_reserved(space.system))
    slopes = {}
    for name in space.settings.slopes:
        of_memory = reserved / memory if name == "reserved" else 0 * memory
        slopes[name_elasticity("memory", name)] = of_memory
        for time, (before, *after) in times.items():
            # Two steps of each parameter; of others, on which times do not depend, none.
            near, far = after[names.index(name) :: len(names)] if name in names else [before] * 2
            defined = np.where(before > 0, before, np.nan)
            slope = find_elasticity(near / defined, far / defined)
            slopes[name_elasticity(time, name)] = slope
    with use_numpy():
        shaped = {
            name: round_elasticity(slope.reshape(space.shape)) for name, slope in slopes.items()
        }
    return replace(case, slopes=shaped)


def time_steps(
    space: LayoutSpace, layouts: Layouts, cell: Numbers, steps: Sequence[Step]
) -> tuple[Floats, Floats]:
    """Return seconds computing and communicating, before and after each step [step, layouts]."""
    number = len(steps) + 1
    parts = [np.empty((2, number, 0))]
    some = max(MOST // number, 1)
    for start in range(0, cell.size, some):
        rows = np.arange(start, min(start + some, cell.size))
        factors = {name: np.ones((number, rows.size)) for name, _ in steps}
        for at, (name, factor) in enumerate(steps, 1):
            factors[name][at] = factor
        alike = np.tile(rows, number)
        columns = {name: column.ravel() for name, column in factors.items()}
        answers = space.answer(layouts.select(alike), cell[alike], columns)
        parts.append(np.reshape(add_seconds(answers.seconds), (2, number, rows.size)))
    computing, communicating = np.concatenate(parts, axis=2)
    return computing, communicating
