"""Cases: measured runs with what the oracle predicts for each.

A run is predicted as it was configured: weak scaling with b = samples_per_replica, and gradients
of replicated weights reduced inside a group first, as the runs of the paper did.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from grids.grid import Grid
from grids.library import CATALOGUE
from grids.reading.errors import InputError
from sweep.measured.runs import MeasuredRun, Times
from sweep.questions.predict import Configuration, prediction

AS_MEASURED = {"allreduce": "hierarchical"}


@dataclass(frozen=True)
class Conditions:
    """What holds for all runs; `system` is of those that name none.

    calibration: None for the one that is shipped with each run's system, where there is one.
    """

    system: str
    calibration: str | None
    settings: Mapping[str, object]

    def configuration(self, run: MeasuredRun) -> Configuration:
        """What a run was, for the oracle."""
        system = run.system or self.system
        name = find_shipped_calibration(system) if self.calibration is None else self.calibration
        calibration = {} if name == "none" else {"calibration": name}
        return Configuration(
            run.model,
            run.strategy,
            run.p,
            run.samples_per_replica,
            system=system,
            dataset=run.dataset,
            settings={**self.settings, **calibration},
        )


@dataclass(frozen=True)
class PredictedRun:
    """A run, how it was asked about, and the answer."""

    run: MeasuredRun
    asked: Configuration
    grid: Grid
    found: Mapping[str, Any]

    @property
    def predicted(self) -> Times:
        """[s an iteration]; None where no such configuration can be."""
        names = ("iteration_time", "iteration_comp_time", "iteration_comm_time")
        return Times(*(self.found[name] for name in names))

    @property
    def intervals(self) -> dict[str, Mapping[str, float]] | None:
        """p10, p50 and p90 of total, comp and comm; None without a calibration."""
        found = self.found.get("intervals")
        if found is None:
            return None
        return {
            "total": found["iteration_time"],
            "comp": found["iteration_comp_time"],
            "comm": found["iteration_comm_time"],
        }


def find_shipped_calibration(system: str) -> str:
    """The calibration that has the system's name, or "none"."""
    known = {path.stem for path in (CATALOGUE / "calibrations").glob("*.yaml")}
    return system if system in known else "none"


def predict_runs(runs: Sequence[MeasuredRun], conditions: Conditions) -> tuple[PredictedRun, ...]:
    """Every run predicted. All names are looked up before the first prediction takes its time."""
    grids = {}
    for run in runs:
        if identify_configuration(run) not in grids:
            with name_column(run):
                grids[identify_configuration(run)] = conditions.configuration(run).grid()
    found = {key: prediction(grid) for key, grid in grids.items()}
    return tuple(
        PredictedRun(run, conditions.configuration(run), grids[key], found[key])
        for run in runs
        for key in [identify_configuration(run)]
    )


def identify_configuration(run: MeasuredRun) -> tuple[str | int | None, ...]:
    """Repeated runs of a configuration have one prediction."""
    return (*run.series, run.p)


@contextmanager
def name_column(run: MeasuredRun) -> Iterator[None]:
    """Tell the file, line and column of a name that is unknown, where the row has it."""
    try:
        yield
    except InputError as error:
        axis = re.match(r"axes\.(\w+)(\.\d+)?: ", str(error))
        if axis is None or (axis[1] == "system" and run.system is None):
            raise
        text = str(error)[axis.end() :]
        raise InputError(text, where=f"{run.where}: {axis[1]}") from None
