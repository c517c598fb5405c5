"""Fuzz: read mutated files, make grids and predict; the only allowed error is InputError.

`python -m benchmarks fuzz --seed 7 --cases 10000`; tests/test_fuzz.py reads a fixed corpus.
"""

import time
import warnings
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.corpus import Reader, fault, list_readers, make_cases
from benchmarks.effort import Effort
from benchmarks.report import Goal, Report, Row
from grids.grid import Grid
from grids.spec import validate_spec
from sweep.engine.compile_cache import keep_programs
from sweep.engine.evaluation import evaluate
from sweep.engine.run import read_grid
from sweep.measured.predicted_runs import Conditions
from sweep.measured.runs import read_runs
from sweep.questions.predict import predict_grid
from sweep.show.preview import preview_sweep

# One cell of a network with few layers, in which a mutated file replaces one entry.
AXES: dict[str, object] = {
    "model": "alexnet",
    "dataset": "imagenet",
    "system": "abci",
    "strategy": "data+filter",
    "pe": 8,
    "batch": 4,
}
RUNS = 3  # runs of a mutated table to look up
FAULTS_SHOWN = 20


def measure(effort: Effort) -> Report:
    """Count mutations that gave anything but an answer or one short message."""
    keep_programs()
    readers = {**list_readers(), **list_deep_readers()}
    start = time.perf_counter()
    with TemporaryDirectory() as folder, warnings.catch_warnings(action="error"):
        cases = make_cases(effort.seed, effort.cases)
        faults = [text for case in cases if (text := fault(case, readers, Path(folder)))]
    rate = effort.cases / (time.perf_counter() - start)
    rows = (
        Row("mutated files", rate, "files/s", note=f"{effort.cases:,} files, seed {effort.seed}"),
        Row("faults", len(faults), "", goals=(Goal("= 0", not faults),)),
    )
    return Report("fuzz", "hostile and broken input", rows, "\n\n".join(faults[:FAULTS_SHOWN]))


def list_deep_readers() -> dict[str, Reader]:
    """Return readers like `corpus.list_readers` that also evaluate a cell."""
    entries: dict[str, Reader] = {
        f"{kind}s": partial(_predict_with, kind) for kind in ("model", "dataset", "system")
    }
    return entries | {
        "examples": _evaluate_first_cell,
        "paradl": partial(_predict_with, "model"),
        "calibrations": _predict_calibrated,
        "measured": _look_runs_up,
    }


def _predict_with(kind: str, path: Path) -> None:
    """Predict a configuration with the file as its model, data set or system."""
    has_dataset = path.suffix.startswith(".net")  # such a file brings its data set
    others = {
        name: value for name, value in AXES.items() if not (has_dataset and name == "dataset")
    }
    grid = Grid.from_spec(validate_spec({"axes": others | {kind: str(path)}}, "fuzz"))
    predict_grid(grid)


def _predict_calibrated(path: Path) -> None:
    predict_grid(Grid.from_spec(validate_spec({"axes": AXES, "calibration": str(path)}, "fuzz")))


def _evaluate_first_cell(path: Path) -> None:
    """Plan a spec's sweep and evaluate the first cell of the first model and data set that fit."""
    grid = read_grid(path)
    preview_sweep(str(path.with_suffix(".zarr")), grid, 1, overwrite=False, extend=False)
    for model, dataset in list(grid.fitting)[:1]:
        first = {name: values[:1] for name, values in grid.axes.items()}
        evaluate(grid, (model, dataset, 0, 0), first)


def _look_runs_up(path: Path) -> None:
    for run in read_runs(path)[:RUNS]:
        grid = Conditions("abci", "auto", {}).make_case(run).grid()
        grid.case((0, 0, 0, 0))
