"""Whatever a command prints as JSON, any reader of JSON can read: no NaN, no Infinity."""

import csv
import json
from typing import Any

import pytest

ONE = ("--dataset", "imagenet-226", "--model", "resnet50", "--batch", 32)
ABCI, OTHER = ("--calibration", "abci"), ("--system", "dgx-h100")
CASES = {
    "feasible": ("--strategy", "data", "--pe", 16),
    "calibrated": ("--strategy", "data+spatial:group=best", "--pe", 16, *ABCI),
    "another machine": ("--strategy", "spatial", "--pe", 8, *OTHER),
    "does not exist": ("--strategy", "data+filter:group=3", "--pe", 8, *ABCI),
    "too many": ("--strategy", "serial", "--pe", 16, *ABCI),
    "does not fit": ("--strategy", "data", "--pe", 16, "--dataset", "cosmoflow-128"),
}


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize("command", ["predict", "explain"])
@pytest.mark.parametrize("case", CASES)
def test_one_configuration(command, case, paradl) -> None:
    _, out, _ = paradl(command, *ONE, *CASES[case], "--format", "json")
    assert strict(out)["strategy"] == CASES[case][1]


@pytest.mark.parametrize(
    "command", [("limits",), ("limits", "--efficiency", 1), ("best",), ("status",)]
)
def test_a_cube(command, mixed_url, paradl) -> None:
    code, out, _ = paradl(command[0], mixed_url, *command[1:], "--format", "json")
    assert code == 0
    assert strict(out)


def test_a_cube_whose_files_were_checked(small_url, paradl) -> None:
    code, out, _ = paradl("status", small_url, "--verify", "--format", "json")
    assert code == 0
    assert strict(out)["damaged"] == []


@pytest.mark.parametrize("kind", ["models", "datasets", "systems", "strategies", "parameters"])
def test_the_catalogue(kind, paradl) -> None:
    assert strict(paradl(kind, "--format", "json")[1])


RUNS = [
    {"strategy": "data", "p": 16, "total_s": 0.2, "comp_s": 0, "comm_s": 0},
    {"strategy": "data", "p": 1, "total_s": 0.1},
    {"strategy": "serial", "p": 1, "total_s": 1e-12, "comp_s": 1e-12},
    {"strategy": "filter", "p": 4, "total_s": 1e9},
    {"strategy": "serial", "p": 8, "total_s": 0.2},
]


@pytest.fixture
def runs(tmp_path):
    """Writes runs of ResNet-50 to a file."""

    def write(rows: list[dict]) -> str:
        path = tmp_path / "runs.csv"
        fixed = {"model": "resnet50", "dataset": "imagenet-226", "samples_per_replica": 32}
        with path.open("w", newline="") as file:
            columns = [*fixed, "strategy", "p", "total_s", "comp_s", "comm_s"]
            lines = csv.DictWriter(file, columns)
            lines.writeheader()
            lines.writerows(fixed | row for row in rows)
        return str(path)

    return write


@pytest.mark.parametrize("calibration", ["abci", "none"])
def test_measured_runs(calibration, runs, paradl) -> None:
    """Times beyond all measure among them, and a run that cannot be."""
    command = ("compare", runs(RUNS), "--calibration", calibration)
    assert len(strict(paradl(*command, "--format", "json")[1])["rows"]) == len(RUNS)


def test_a_calibration(runs, tmp_path, paradl) -> None:
    """By runs of an extreme time, of which no communication was measured."""
    command = ("calibrate", runs([RUNS[2]] * 2), "-o", tmp_path / "mine.yaml")
    code, out, _ = paradl(*command, "--format", "json")
    assert code == 0
    assert strict(out)["accuracy"]
