"""Fuzz: read mutated files of the kinds that users write, make grids and predict.

The only allowed error is InputError. `python -m benchmarks fuzz --seed 7 --cases 10000`;
tests/test_fuzz.py reads a fixed corpus.
"""

import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.broken_files import mutate, mutate_part
from benchmarks.network_files import mutate_network
from benchmarks.report import Effort, Goal, Report, Row
from paradl.grids.entries.names import CATALOGUE, Kind, list_names
from paradl.grids.graphs.graphfile import find_graph
from paradl.grids.grid import Grid
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import load
from paradl.grids.spec import read_spec, validate_spec
from paradl.sweep.engine.compile_cache import keep_programs
from paradl.sweep.engine.evaluation import evaluate
from paradl.sweep.engine.run import read_grid
from paradl.sweep.importing.networks.safetensors_file import count_parameters
from paradl.sweep.importing.networks.source import import_network
from paradl.sweep.measured.predicted_runs import Conditions
from paradl.sweep.measured.runs import read_runs
from paradl.sweep.questions.predict import predict_grid
from paradl.sweep.show.preview import preview_sweep

ROOT = Path(__file__).parents[1]

MOST_MESSAGE = 1000  # characters
MOST_LINES = 8
MOST_SECONDS = 2.0  # processor time, so that other processes do not count

Reader = Callable[[Path], object]

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
        half = effort.cases // 2
        networks = make_network_cases(effort.seed, half)
        cases = chain(make_cases(effort.seed, effort.cases - half), networks)
        faults = [text for case in cases if (text := fault(case, readers, Path(folder)))]
    rate = effort.cases / (time.perf_counter() - start)
    rows = (
        Row("mutated files", rate, "files/s", note=f"{effort.cases:,} files, seed {effort.seed}"),
        Row("faults", len(faults), "", goals=(Goal("= 0", not faults),)),
    )
    return Report("fuzz", "hostile and broken input", rows, "\n\n".join(faults[:FAULTS_SHOWN]))


def list_deep_readers() -> dict[str, Reader]:
    """Return readers like `list_readers` that also evaluate a cell."""
    entries: dict[str, Reader] = {
        f"{kind}s": partial(_predict_with, kind) for kind in ("model", "dataset", "system")
    }
    return entries | {
        "examples": _evaluate_first_cell,
        "calibrations": _predict_calibrated,
        "measured": _look_runs_up,
    }


def _predict_with(kind: str, path: Path) -> None:
    """Predict a configuration with the file as its model, data set or system."""
    grid = Grid.from_spec(validate_spec({"axes": AXES | {kind: str(path)}}, "fuzz"))
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


@dataclass(frozen=True)
class Case:
    """A mutated file; `file` and `seed` reproduce its content."""

    file: Path
    seed: int
    content: bytes

    @property
    def title(self) -> str:
        return f"{self.file.name}, seed {self.seed}"


def list_files() -> tuple[Path, ...]:
    """List the files to mutate."""
    entries = sorted(CATALOGUE.glob("*/*.yaml"))
    return (
        *sorted((ROOT / "examples").glob("*.yaml")),
        *entries,
        CATALOGUE / "measured" / "abci.csv",
    )


def make_cases(seed: int, count: int) -> Iterator[Case]:
    """Yield `count` mutated files, the same for the same seed."""
    contents, parts = _read_files()
    files = list(contents)
    for number in range(seed * 1_000_003, seed * 1_000_003 + count):
        random = Random(number)
        file = files[number % len(files)]  # in turn: chance left some out
        if file in parts and random.random() < 0.5:
            content = json.dumps(mutate_part(parts[file], random)).encode()
        else:
            content = mutate(contents[file], random)
        yield Case(file, number, content)


def make_network_cases(seed: int, count: int) -> Iterator[Case]:
    """Yield `count` mutated files that other programs write."""
    for number in range(seed * 1_000_003, seed * 1_000_003 + count):
        name, content = mutate_network(Random(number))
        yield Case(Path(name), number, content)


@cache
def _read_files() -> tuple[dict[Path, bytes], dict[Path, Any]]:
    """Read the files to mutate, and the parts of those that have any, which nothing changes."""
    contents = {path: path.read_bytes() for path in list_files()}
    return contents, {path: load(path).data for path in contents if path.suffix == ".yaml"}


def list_readers() -> dict[str, Reader]:
    """Return readers by the name of a file's folder, or by its suffix."""
    kinds: tuple[Kind, ...] = ("model", "dataset", "system", "calibration")
    return {
        "examples": read_spec,
        "measured": read_runs,
        "families": _read_family,
        "graphs": lambda path: find_graph(path.name, path.parent),
        ".onnx": lambda path: import_network(str(path), None, "", allow=True),
        ".safetensors": lambda path: count_parameters([path]),
        ".json": partial(_read_entry, "model"),
        **{f"{kind}s": partial(_read_entry, kind) for kind in kinds},
    }


def _read_entry(kind: Kind, path: Path) -> object:
    return find(kind, str(path), path.parent)


def _read_family(path: Path) -> object:
    """Make a network of a family's file, with the settings of a model of the catalogue."""
    family = _list_families()[path.stem] | {"name": str(path)}
    return find("model", {"name": "net", "rank": 2, "family": family}, path.parent)


@cache
def _list_families() -> dict[str, dict[str, Any]]:
    """List the settings of each family's first model of the catalogue."""
    models = (find("model", name, Path()) for name in reversed(list_names("model")))
    families = (model.family for model in models)
    return {family.name: family.model_dump() for family in families if family}


def fault(case: Case, readers: Mapping[str, Reader], folder: Path) -> str:
    """Read a case; describe the fault unless it is read or refused by a short message, quickly."""
    path = folder / case.file.name
    path.write_bytes(case.content)
    read = readers.get(case.file.suffix) or readers[case.file.parent.name]
    start = time.process_time()
    try:
        read(path)
    except InputError as error:
        text = str(error)
        if len(text) >= MOST_MESSAGE or len(text.splitlines()) > MOST_LINES:
            return f"{case.title}: a message of {len(text)} characters: {text[:200]}"
    except Exception as error:  # users must never see any of these
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{case.title}: {type(error).__name__}: {str(error)[:200]} ({frame})"
    seconds = time.process_time() - start
    return f"{case.title}: took {seconds:.1f} s" if seconds > MOST_SECONDS else ""
