"""Runs of the catalogue to calibrate from. All sets are of a size, so that one program fits all."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from grids.entries.names import CATALOGUE
from sweep.calibration.observations import Observations, observe
from sweep.measured.runs import read_runs

SHIPPED = CATALOGUE / "measured" / "abci.csv"
DOZEN = {
    "resnet50": {
        ("data", "16"),
        ("data", "128"),
        ("filter", "4"),
        ("filter", "16"),
        ("filter", "64"),
        ("channel", "4"),
        ("channel", "64"),
    },
    "vgg16": {
        ("data", "16"),
        ("data", "1024"),
        ("filter", "16"),
        ("data+filter", "64"),
        ("data+spatial", "64"),
    },
}

Row = dict[str, str]


@pytest.fixture(scope="session")
def shipped() -> list[Row]:
    """All rows that the catalogue has of ABCI."""
    with SHIPPED.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def dozen(shipped: list[Row]) -> list[Row]:
    """Runs of two models under five strategies."""
    rows = [
        row
        for row in shipped
        if (row["strategy"], row["p"]) in DOZEN.get(row["model"], ()) and row["comp_s"]
    ]
    assert len(rows) == 12
    return rows


@pytest.fixture(scope="session")
def data_only(shipped: list[Row]) -> list[Row]:
    """As many data-parallel runs, of three models."""
    rows = [row for row in shipped if row["model"] in DOZEN and row["strategy"] == "data"]
    alexnet = [row for row in shipped if row["model"] == "alexnet" and row["strategy"] == "data"]
    return [row for row in rows if row["comp_s"]] + alexnet[-1:]


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
