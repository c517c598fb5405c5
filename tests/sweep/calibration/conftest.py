"""Runs to calibrate from: the catalogue's, and seven. One program fits all sets of a size."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from measured_runs import list_runs

from paradl.grids.entries.names import CATALOGUE
from paradl.sweep.calibration.observations import Observations, observe
from paradl.sweep.measured.runs import read_runs

SHIPPED = CATALOGUE / "measured" / "abci.csv"
Row = dict[str, str]


@pytest.fixture(scope="session")
def shipped() -> list[Row]:
    """All rows that the catalogue has of ABCI."""
    with SHIPPED.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def seven() -> list[Row]:
    """Runs of two models on another machine."""
    return list_runs("dgx-a100")


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[Row]], Path]:
    """Writes rows to a file of their own."""

    def write(rows: list[Row]) -> Path:
        path = tmp_path_factory.mktemp("runs") / "measured.csv"
        with path.open("w", newline="") as file:
            lines = csv.DictWriter(file, list(rows[0]))
            lines.writeheader()
            lines.writerows(rows)
        return path

    return write


@pytest.fixture(scope="session")
def observed(measured: Callable[[list[Row]], Path]) -> Callable[[list[Row]], Observations]:
    """Rows as arrays: the same ones are reduced once, and no test changes them."""
    known: dict[tuple[tuple[tuple[str, str], ...], ...], Observations] = {}

    def observe_once(rows: list[Row]) -> Observations:
        key = tuple(tuple(row.items()) for row in rows)
        if key not in known:
            known[key] = observe(read_runs(measured(rows)), "abci")
        return known[key]

    return observe_once
