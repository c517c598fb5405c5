"""Definitions: a design space written down as plain data, which refers to no file."""

from collections.abc import Mapping
from typing import Any

from grids.convergence.entry import Convergence, Pair
from grids.entries.calibration import CalibrationFile
from grids.entries.datasets import Dataset
from grids.entries.entry import define_once
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.library import Model
from grids.spec import Spec


def define_spec(
    spec: Spec,
    models: tuple[Model, ...],
    datasets: tuple[Dataset, ...],
    systems: tuple[System, ...],
    strategies: tuple[Strategy, ...],
    calibrations: Mapping[str, CalibrationFile],
    convergences: Mapping[Pair, Convergence],
) -> dict[str, Any]:
    """The spec, with the entries that it names spelled out."""
    # As the user wrote it: generators of axes stay generators, and what was left out stays out.
    plain = spec.model_dump(mode="json", exclude_unset=True)
    plain["axes"] |= {
        "model": [model.definition() for model in models],
        "dataset": [dataset.definition() for dataset in datasets],
        "system": [system.definition() for system in systems],
        "strategy": [strategy.label for strategy in strategies],
    }
    plain["oracle"] = spec.oracle
    if spec.oracle == "paper":
        plain["conventions"] = spec.conventions
    plain["calibration"] = define_once(calibrations) or "none"
    if convergences:
        plain["convergence"] = define_once(convergences)
    return plain
