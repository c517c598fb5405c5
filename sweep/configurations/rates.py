"""Rates of a configuration: samples per second, and model FLOPs over the peak (MFU)."""

from collections.abc import Mapping
from math import isfinite

from paradl.grids.grid import Grid, Index
from paradl.kernels.batches import iterations

# A backward pass computes the gradients of inputs and of weights: two products for each forward.
PASSES = 3
RATES = ("samples_per_second", "samples_per_pe_second", "mfu")


def list_rates(
    grid: Grid, index: Index, cell: Mapping[str, float | None], global_batch: float, seconds: float
) -> dict[str, float | None]:
    """List samples per second, of all PEs and of one, and MFU; None without a time.

    cell: values of a cell by axis. seconds: of an iteration. MFU counts multiply-accumulates of
    layers that multiply by weights, as `list models` does, whatever is computed again.
    """
    table, pe = grid.table(*index[:2]), cell["pe"]
    if table is None or not pe or not isfinite(seconds) or not seconds:
        return dict.fromkeys(RATES)
    system = grid.systems[index[2]]
    usual = system.pe.peak_flops if grid.spec.oracle == "paper" else system.peak
    peak = {**grid.spec.parameters, **cell}.get("peak_flops") or usual
    rate = global_batch / seconds
    return dict(
        zip(RATES, (rate, rate / pe, 2 * PASSES * table.macs * rate / (pe * peak)), strict=True)
    )


def time_iteration(
    grid: Grid, index: Index, cell: Mapping[str, float | None], global_batch: float, seconds: float
) -> dict[str, float | None]:
    """Return the time of an iteration [s] and its rates. seconds: of an epoch."""
    count = iterations(grid.datasets[index[1]].samples, global_batch, grid.spec.iterations)
    seconds /= count
    return {"iteration_time": seconds, **list_rates(grid, index, cell, global_batch, seconds)}
