"""Percentiles of an iteration's times, from the spread of calibrated or prior parameters."""

from typing import Any

import numpy as np

from grids.grid import Grid
from kernels.configuration.answers import Answer
from kernels.names.stored import PERCENTILES
from kernels.oracle.uncertainty import percentiles
from sweep.answers.numbers import number
from sweep.cells.design_space import ONLY


def list_intervals(grid: Grid, answer: Answer) -> dict[str, Any]:
    """Name of the calibration, 10th, 50th and 90th percentiles of the times [s per iteration], and
    notes on how the configuration exceeds the calibrated runs.
    """
    if answer.spread is None:
        return {"calibration": None, "intervals": None, "extrapolation": []}
    calibration = grid.calibrations.get(grid.systems[0].name)
    laid = grid.strategy(ONLY).laid
    if calibration and not (calibration.layouts if laid else calibration.parameters):
        calibration = None  # its runs were of the other kind
    compute, communication = answer.compute, answer.communication
    times = {
        "iteration_time": (compute + communication, answer.spread.total),
        "iteration_comp_time": (compute, answer.spread.compute),
        "iteration_comm_time": (communication, answer.spread.communication),
    }
    return {
        "calibration": calibration.name if calibration else None,
        "intervals": {
            name: _list_percentiles(number(time) / number(answer.iterations), number(sigma))
            for name, (time, sigma) in times.items()
        }
        | _list_training(answer),
        "extrapolation": [*_list_extrapolation(grid, answer), *_list_far_batches(grid, answer)],
    }


def _list_extrapolation(grid: Grid, answer: Answer) -> list[str]:
    """Notes on how a configuration exceeds the calibrated runs."""
    workload = grid.workload(0, 0, 0)
    if workload is None or grid.strategy(ONLY).laid:  # whose rates hold for any machine
        return []
    system = grid.systems[0]
    if workload.calibrated is None:
        return [
            f"no calibrated run of {system.machine} in {system.precision} with software "
            f"{system.software}: intervals come from priors"
        ]
    return workload.calibrated.extrapolation(
        grid.strategy(ONLY), float(grid.axes["pe"][0]), number(answer.batch)
    )


def _list_training(answer: Answer) -> dict[str, dict[str, float | None]]:
    """Percentiles of the epochs and of the time to the target [s], if a law is known."""
    if answer.epochs is None or answer.epochs_spread is None or answer.train_spread is None:
        return {}
    epochs = number(answer.epochs)
    time = epochs * number(answer.epoch_time)
    return {
        "epochs": _list_percentiles(epochs, number(answer.epochs_spread)),
        "train_time": _list_percentiles(time, number(answer.train_spread)),
    }


def _list_far_batches(grid: Grid, answer: Answer) -> list[str]:
    """A note if the global batch lies outside the measured range; else empty."""
    law = next(iter(grid.convergences.values()), None)
    batch = number(answer.global_batch)
    if law is None or not law.is_extrapolated(round(batch)):
        return []
    return [f"epochs: a global batch of {batch:,.0f}, measured {law.smallest:,} to {law.largest:,}"]


def _list_percentiles(time: float, sigma: float) -> dict[str, float | None]:
    if not np.isfinite(time):
        return {f"p{percent}": None for percent in PERCENTILES}
    return {f"p{percent}": number(value) for percent, value in percentiles(time, sigma).items()}
