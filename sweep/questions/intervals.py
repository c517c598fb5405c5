"""Intervals: between which times an iteration lies, as far as calibrated runs can tell."""

from typing import Any

import numpy as np

from grids.grid import Grid
from grids.inputs.problem import Problem
from kernels.oracle import Answer
from kernels.uncertainty import STEPS


def intervals(grid: Grid, problem: Problem, found: Answer, iterations: float) -> dict[str, Any]:
    """The calibration's name, 10th, 50th and 90th percentiles [s per iteration] of each time, and
    in what respects the configuration lies beyond the calibrated runs.
    """
    if found.spread is None or grid.calibration is None:
        return {"calibration": None, "intervals": None, "extrapolation": []}
    compute, communication = found.compute, found.communication
    times = {
        "iteration_time": (compute + communication, found.spread.total),
        "iteration_comp_time": (compute, found.spread.compute),
        "iteration_comm_time": (communication, found.spread.communication),
    }
    return {
        "calibration": grid.calibration.name,
        "intervals": {
            name: _percentiles(_one(time) / iterations, _one(sigma))
            for name, (time, sigma) in times.items()
        },
        "extrapolation": _extrapolation(grid, problem),
    }


def _extrapolation(grid: Grid, problem: Problem) -> list[str]:
    workload = grid.workload(0, 0, 0)
    if workload is None or workload.calibrated is None:
        return []
    run, machine, calibrated = problem.run, grid.systems[0].name, workload.calibrated
    elsewhere = (
        []
        if calibrated.file.system == machine
        else [f"runs of {calibrated.file.system} were calibrated, not of {machine}"]
    )
    return elsewhere + calibrated.extrapolation(grid.strategies[0], _one(run.p), _one(run.batch))


def _percentiles(time: float, sigma: float) -> dict[str, float | None]:
    if not np.isfinite(time):
        return {f"p{percent}": None for percent in STEPS}
    return {f"p{percent}": float(time * np.exp(step * sigma)) for percent, step in STEPS.items()}


def _one(value: Any) -> float:
    return float(np.asarray(value).item())
