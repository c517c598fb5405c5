"""Rates of a configuration: samples per second, and model FLOPs over the peak (MFU)."""

from collections.abc import Mapping
from math import isfinite

from paradl.grids.grid import Grid, Index
from paradl.kernels.batches import iterations
from paradl.sweep.answers.types.words import IterationRates, SampleRates
from paradl.sweep.cells.selection import read_axis
from paradl.sweep.cells.space import look_up_value

# A backward pass computes the gradients of inputs and of weights: two products for each forward.
PASSES = 3
NO_RATES: SampleRates = {"samples_per_second": None, "samples_per_pe_second": None, "mfu": None}


def list_rates(
    grid: Grid, index: Index, cell: Mapping[str, object], global_batch: float, seconds: float
) -> SampleRates:
    """List samples per second, of all PEs and of one, and MFU; None without a time.

    cell: values of a cell by axis. seconds: of an iteration. MFU counts multiply-accumulates of
    layers that multiply by weights, as `list models` does, whatever is computed again.
    """
    table, pe = grid.table(*index[:2]), read_axis(cell, "pe")
    if table is None or not isfinite(seconds) or not seconds:
        return NO_RATES
    system = grid.systems[index[2]]
    usual = system.pe.peak_flops if grid.spec.oracle == "paper" else system.peak
    peak = look_up_value(grid, cell, "peak_flops") or usual
    rate = global_batch / seconds
    return {
        "samples_per_second": rate,
        "samples_per_pe_second": rate / pe,
        "mfu": 2 * PASSES * table.macs * rate / (pe * peak),
    }


def time_iteration(
    grid: Grid, index: Index, cell: Mapping[str, object], global_batch: float, seconds: float
) -> IterationRates:
    """Return the time of an iteration [s] and its rates. seconds: of an epoch."""
    count = iterations(grid.datasets[index[1]].samples, global_batch, grid.spec.iterations)
    seconds /= count
    return {"iteration_time": seconds, **list_rates(grid, index, cell, global_batch, seconds)}
