"""Measured runs with their predictions.

A run is predicted as it was configured: weak scaling with b = samples_per_replica. By Table III it
is predicted as the paper's runs were set up: the layers that they split, and gradients of
replicated weights reduced inside a group first.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from paradl.grids.design_space import ONLY, Configuration
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError, add_place
from paradl.sweep.measured.runs import MeasuredRun, RunTimes

# Names of the parts of an iteration in the oracle's answers.
TIMES = {"total": "iteration_time", "comp": "iteration_comp_time", "comm": "iteration_comm_time"}
AS_MEASURED = {"allreduce": "hierarchical", "conventions": "authors"}


@dataclass(frozen=True)
class Conditions:
    """Settings for all runs; `system` is for runs that name none, models: by names in rows."""

    system: str | None
    calibration: str
    settings: Mapping[str, object]
    models: Mapping[str, dict[str, object]] = field(default_factory=dict)

    def make_case(self, row: MeasuredRun) -> Configuration:
        """Return the configuration of a run."""
        as_measured = AS_MEASURED if self.settings.get("oracle") == "paper" else {}
        return Configuration(
            self.models.get(row.model, row.model),
            row.strategy,
            row.p,
            row.samples_per_replica,
            system=row.system or self.system,
            dataset=row.dataset,
            settings={**as_measured, **self.settings, "calibration": self.calibration},
        )


# Factor on a predicted time beyond which the unit, the network or the machine is likely another.
MOST = 5.0
DOUBT = "the unit may be wrong (seconds are expected), or the network or machine"


def is_doubtful(factor: float) -> bool:
    """True if a factor on predicted times is larger than machines explain."""
    return not 1 / MOST <= factor <= MOST


@dataclass(frozen=True)
class Deviation:
    """A part of an iteration, measured and predicted [s]."""

    part: str
    measured: float
    predicted: float

    @property
    def factor(self) -> float:
        """Measured over predicted time."""
        return self.measured / self.predicted if self.predicted else math.inf

    @property
    def error(self) -> float:
        """By how much both differ [s]."""
        return abs(self.measured - self.predicted)

    @property
    def slower(self) -> bool:
        """True if it took longer than predicted."""
        return self.measured > self.predicted


@dataclass(frozen=True)
class PredictedRun:
    """A measured run, its configuration and grid, and the oracle's answer."""

    row: MeasuredRun
    case: Configuration
    grid: Grid
    answer: Mapping[str, Any]

    @property
    def predicted(self) -> RunTimes:
        """Predicted times [s per iteration]; None if the configuration cannot exist."""
        return RunTimes(**{part: self.answer[name] for part, name in TIMES.items()})

    @property
    def was_fitted(self) -> bool | None:
        """Whether the calibration was fitted to this configuration; None if it does not say."""
        workload, strategy = self.grid.workload(*ONLY[:3]), self.grid.strategy(ONLY)
        calibrated = workload.calibrated if workload else None
        if calibrated is None:
            return False
        if "layout" in self.answer and calibrated.file.layouts:
            return None  # files count runs of layouts
        return calibrated.was_fitted(strategy, self.row.p, self.row.samples_per_replica)

    def predict_bytes(self) -> dict[str, float]:
        """Return bytes of a PE's collectives per iteration by kind; empty without a layout."""
        from paradl.kernels.oracle.block_times import count_bytes  # late: they import JAX
        from paradl.sweep.configurations.layout_cells import find_cell
        from paradl.sweep.questions.predict import choose_case

        case = choose_case(self.grid)
        if case is None or not case.of_blocks or self.predicted.total is None:
            return {}
        cell = find_cell(self.grid, case, ONLY)
        sent = count_bytes(cell.net, cell.layout, cell.training, *cell.speeds)
        return {kind: float(size[0]) for kind, size in sent.items()}

    def compare(self, part: str) -> Deviation | None:
        """Return a part as measured and predicted; None if either is unknown."""
        measured, predicted = getattr(self.row.measured, part), getattr(self.predicted, part)
        if measured is None or predicted is None:
            return None
        return Deviation(part, measured, predicted)

    @property
    def intervals(self) -> dict[str, Mapping[str, float]] | None:
        """p10, p50 and p90 [s per iteration] of total, comp and comm; None if there are none."""
        intervals = self.answer.get("intervals")
        return intervals and {part: intervals[name] for part, name in TIMES.items()}


def predict_runs(rows: Sequence[MeasuredRun], conditions: Conditions) -> tuple[PredictedRun, ...]:
    """Predict all runs. InputError: an unknown name, before any prediction takes its time."""
    keys = [identify_case(row) for row in rows]
    cases: dict[tuple[object, ...], tuple[MeasuredRun, Configuration, Grid]] = {}
    # All names are looked up first: a typing error in the last row must not cost the time of all.
    for key, row in zip(keys, rows, strict=True):
        if key not in cases:
            with name_column(row):
                case = conditions.make_case(row)
                cases[key] = row, case, case.grid()
    from paradl.sweep.questions.predict import predict_grid  # late: it imports JAX

    predicted: dict[tuple[object, ...], PredictedRun] = {}
    for name, (first, case, grid) in cases.items():
        with add_place(first.where):
            predicted[name] = PredictedRun(first, case, grid, predict_grid(grid))
    for key, row in zip(keys, rows, strict=True):
        replicas = predicted[key].answer.get("replicas")
        if row.replicas and replicas and row.replicas != replicas:
            what = f"expected {replicas}, those of {row.strategy} on {row.p} PEs"
            raise InputError(f"{what}, got {row.replicas}", where=f"{row.where}: replicas")
    return tuple(replace(predicted[key], row=row) for key, row in zip(keys, rows, strict=True))


def identify_case(row: MeasuredRun) -> tuple[str | int | None, ...]:
    """Return the key of a run's configuration; repeated runs share a prediction."""
    return (*row.series, row.p)


@contextmanager
def name_column(row: MeasuredRun) -> Iterator[None]:
    """Add a row's file, line and column to errors about its names."""
    try:
        yield
    except InputError as error:
        # Errors name a spec's axis, which is a column of the file. A system that the row does not
        # name came from `--system`.
        axis = re.match(r"axes\.(\w+)(\.\d+)?: ", str(error))
        if axis is None or (axis[1] == "system" and row.system is None):
            raise
        text = str(error)[axis.end() :]
        raise InputError(text, where=f"{row.where}: {axis[1]}") from None
