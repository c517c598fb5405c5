"""Build the kernels' case for the cell of an answer's row, and read its parameters in SI units."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from paradl.grids.entries.parameters import GIVEN, PARAMETERS
from paradl.grids.grid import Grid, Index
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import PLACES, read_parameter
from paradl.kernels.machine.network import Cost
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.oracle.answer import answer_case, settle_choices
from paradl.kernels.oracle.formulas import find_links
from paradl.kernels.parallelism.layout import list_degrees
from paradl.sweep.answers.numbers import finite, number
from paradl.sweep.cells.selection import locate_row, read_axis
from paradl.sweep.cells.space import Space
from paradl.sweep.configurations.degrees import Row, list_layout_rows, settle_known


def build_row_case(grid: Grid, row: Row) -> Case:
    """Build the case of a row's labels and axes, with the choices of `best` settled.

    `group_size`, `degrees` and `segment_count` are taken from the row if it has them.
    """
    index = locate_row(grid, row)
    axes = {name: np.array([read_axis(row, name)]) for name in grid.axes}
    case = grid.case(index, axes, settle_known(grid.strategy(index), row))
    assert case is not None  # a row describes a cell of the cube
    return settle_choices(case)


def choose_row(grid: Grid, row: Row) -> dict[str, int]:
    """Group, degrees and segments that `best` chooses in a row's cell, by name."""
    strategy = grid.strategy(locate_row(grid, row))
    run = build_row_case(grid, {name: row[name] for name in grid.dims}).run
    degrees = list_degrees(strategy.parts, run)
    numbers = {"group": run.group, **degrees, "segments": run.segments}
    return {name: int(number(value)) for name, value in numbers.items()}


def answer_expected(case: Case) -> Answer:
    """Answer of the oracle without draws of uncertain parameters."""
    return answer_case(replace(case, uncertainty=None))


def keep_fastest_layouts(
    space: Space, index: Index, axes: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return the axes, and of those of layouts only rows that are the fastest somewhere.

    A planner chooses among layouts, so the slow ones do not matter.
    """
    kept = {**axes}
    for name in list_layout_rows(space.grid):
        answer = answer_expected(space.build_case(index, kept))
        times = np.where((answer.limit & FORBIDS) == 0, answer.epoch_time, np.inf)
        of_cells = np.broadcast_to(times, tuple(values.size for values in kept.values()))
        fastest = of_cells.argmin(axis=[*kept].index(name))
        kept[name] = kept[name][np.unique(fastest)]
    return kept


# Parameters on which no time depends.
TIMELESS = ("gamma", "memory_capacity", "reserved")
# Parameters of the machine oracle in an answer: all of a PE, and the main ones of the rest.
OF_PE = tuple(
    name for name, row in PARAMETERS.items() if row.prior is not None and PLACES[name].part == "pe"
)
OTHERS = ("layer_overhead", "input_rate", "bucket", "overlap", "jitter", "log_open")
UPGRADABLE = tuple(name for name in PLACES if name in GIVEN and name not in TIMELESS)


def read_value(case: Case, name: str) -> float:
    """Value of a parameter in a case of one cell; the first of several network levels."""
    return float(np.ravel(read_parameter(case, name))[0])


def parameters(case: Case) -> dict[str, float | None]:
    """Parameter values that the formulas were evaluated with, in SI units."""
    run, network, pe = case.run, case.network, case.pe
    in_group, across, staged = _find_links(case)
    values: dict[str, float | None] = {
        "group_latency": number(in_group.alpha),
        "group_bandwidth": _read_bandwidth(in_group),
        "replica_latency": number(across.alpha),
        "replica_bandwidth": _read_bandwidth(across),
        "halo_latency": number(staged.alpha),
        "halo_bandwidth": _read_bandwidth(staged),
        "phi": number(run.phi),
        "phi_halo": number(network.phi_halo),
        "phi_gather": number(network.phi_gather),
        "peak_flops": number(pe.peak_flops),
        "efficiency": number(pe.efficiency),
        "memory_bandwidth": number(pe.memory_bandwidth),
        "memory_capacity": number(pe.memory_capacity),
        "delta": number(run.delta),
        "segments": number(run.segments),
        "accumulate": number(run.accumulate),
    }
    if case.options.oracle == "paper":
        return values | {"gamma": number(run.gamma)}
    values["gradient_delta"] = number(run.gradient_delta)
    return values | {name: finite(read_value(case, name)) for name in (*OF_PE, *OTHERS)}


# In one program.
_find_links = compiled(numpy=True)(find_links)


def _read_bandwidth(path: Cost) -> float:
    """Bandwidth [B/s] to 14 digits, as users wrote it: inverting twice leaves rounding errors."""
    return float(f"{1 / number(path.beta):.14g}")
