"""The search of layouts: its rate beside the evaluation of each by itself, memory, cold answers."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.first import run_command
from benchmarks.memory import read_peak
from benchmarks.report import Effort, Row, at_most
from paradl.grids.inputs.case import find_space
from paradl.grids.inputs.layouts import LayoutSpace
from paradl.kernels.search.ranking import Tally
from paradl.sweep.cells.design_space import ONLY, Configuration

MODELS = ("llama2_70b", "deepseek_v3")
CODE = "from benchmarks.layout_search import print_search; print_search('{model}')"
ASKED = ("--system", "dgx-h100", "--pe", "1024", "--global-batch", "2048", "--sequence", "8192")
GOALS = {"llama2_70b": 2.5, "deepseek_v3": 5.0}  # CPU seconds of a cold answer


def make_space(model: str) -> LayoutSpace:
    """All layouts of a model on 1,024 PEs."""
    asked = Configuration(
        *(model, "layouts", 1024), system="dgx-h100", global_batch=2048, sequence=8192
    )
    space = asked.grid().build(find_space, ONLY, None, None)
    assert space is not None
    return space


def print_search(model: str) -> None:
    """Print what a search has taken, in a process of its own."""
    space, tally = make_space(model), Tally()
    before = read_peak(os.getpid())
    wall, cpu = time.perf_counter(), time.process_time()
    space.search(1000, tally)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = read_peak(os.getpid()) - before
    print(json.dumps({"count": tally.candidates, "wall": wall, "cpu": cpu, "memory": memory}))


def measure_search(effort: Effort) -> list[Row]:
    """The rates of searches, and the times of cold answers."""
    rounds = min(effort.rounds, 3)
    searched = [_measure_model(model, rounds) for model in MODELS]
    return [*searched, *(_time_answer(model, rounds) for model in GOALS)]


def _measure_model(model: str, rounds: int) -> Row:
    """The rate of a search of a CPU-second."""
    runs = [_run(model) for _ in range(rounds)]
    cpu, count = min(run["cpu"] for run in runs), runs[0]["count"]
    note = f"{count:,} candidates; {max(run['memory'] for run in runs):,} B more at the peak"
    return Row(f"{model}, a search", count / cpu, "layouts/CPU-s", note=note)


def _run(model: str) -> dict[str, Any]:
    command = [sys.executable, "-c", CODE.format(model=model)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(printed)
    return result


def _time_answer(model: str, rounds: int) -> Row:
    with TemporaryDirectory() as cache:
        words = ["best", "--model", model, *ASKED]
        runs = [run_command(words, Path(cache)) for _ in range(rounds)]
    cpu = min(run.cpu for run in runs)
    goals = (at_most(cpu, GOALS[model], "s"),)
    return Row(f"best of {model}, cold", cpu, "CPU-s", goals=goals, note="layouts on 1,024 PEs")
