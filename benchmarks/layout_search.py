"""The search of layouts: its rate beside the evaluation of each by itself, memory, cold answers."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.first import run_command
from benchmarks.memory import read_peak
from benchmarks.report import Effort, Row, at_least, at_most
from paradl.grids.entries.precision import RECIPES
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.oracle.blocks import sum_memory, time_layouts
from paradl.kernels.search.candidates import make_space
from paradl.kernels.search.search import FITS, LARGE, Search
from paradl.kernels.work.transformer import Training

PES, BATCH, LENGTH = 1024, 2048, 8192
# Sets of modules to recompute: 6 and 10 million candidates.
SETS = {"llama2_70b": 128, "deepseek_v3": 18}
SAMPLE = 2**16  # layouts that are evaluated one by one
CODE = "from benchmarks.layout_search import print_search; print_search('{model}', {sets})"
ASKED = ("--system", "dgx-h100", "--pe", "1024", "--global-batch", "2048", "--sequence", "8192")
GOALS = {"llama2_70b": 2.5, "deepseek_v3": 5.0}  # CPU seconds of a cold answer


def make_search(model: str, sets: int, capacity: float | None = None) -> Search:
    """A search by time of a model's layouts, with so many sets of modules to recompute."""
    system = find("system", "dgx-h100", Path())
    machine = Machine(system)
    net = read_transformer(find("model", model, Path()))
    training = Training(BATCH, LENGTH, RECIPES["bf16"], reserved=machine.reserved)
    space = make_space(net, PES, BATCH, {"recompute": range(sets), "group": (0,)})
    return Search(
        *(net, space, training, capacity or system.pe.memory_capacity, system.pes_per_node),
        speeds=Stack(machine, "bf16").find_speeds(),
        most=1000,
    )


def print_search(model: str, sets: int) -> None:
    """Print what a search has taken, in a process of its own."""
    search = make_search(model, sets)
    before = read_peak(os.getpid())
    wall, cpu = time.perf_counter(), time.process_time()
    search.run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    counts = np.bincount(search.outcomes.ravel()).tolist()
    memory = read_peak(os.getpid()) - before
    print(json.dumps({"counts": counts, "wall": wall, "cpu": cpu, "memory": memory}))


def measure_search(effort: Effort) -> list[Row]:
    """The rates of searches, of single layouts, and the times of cold answers."""
    rounds = min(effort.rounds, 3)
    searched = [row for model in SETS for row in _measure_model(model, rounds)]
    return [*searched, *(_time_answer(model, rounds) for model in GOALS)]


def _measure_model(model: str, rounds: int) -> list[Row]:
    """The rate of a search, on all cores and of a CPU-second, beside that of single layouts."""
    runs = [_run(model) for _ in range(rounds)]
    best = min(runs, key=lambda run: run["wall"])
    _, *counts = best["counts"]
    candidates, cpu = sum(counts), min(run["cpu"] for run in runs)
    rate, direct = candidates / best["wall"], _time_directly(model)
    divided = (counts[LARGE - 1] + counts[FITS - 1]) / cpu
    note = f"{candidates:,} candidates, {cpu:.2f} CPU-s; {max(run['memory'] for run in runs):,} B"
    what = f"{model}, a layout by itself"
    return [
        Row(
            f"{model}, a search",
            rate,
            "layouts/s",
            goals=(at_least(rate, 1e7, "layouts/s"),),
            note=f"{note} more at the peak",
        ),
        Row(f"{model}, of a search what divides", divided, "layouts/CPU-s", divided / direct, what),
        Row(what, direct, "layouts/CPU-s", note="time and memory"),
    ]


def _run(model: str) -> dict[str, Any]:
    command = [sys.executable, "-c", CODE.format(model=model, sets=SETS[model])]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(printed)
    return result


def _time_directly(model: str) -> float:
    """Layouts a CPU-second, in a list."""
    search = make_search(model, 2, inf)
    layouts = replace(search, speeds=None, most=SAMPLE).run().best.layouts
    assert search.speeds
    start = time.process_time()
    time_layouts(search.net, layouts, search.training, *search.speeds)
    sum_memory(search.net, layouts, search.training)
    return len(layouts) / (time.process_time() - start)


def _time_answer(model: str, rounds: int) -> Row:
    with TemporaryDirectory() as cache:
        words = ["best", "--model", model, *ASKED]
        runs = [run_command(words, Path(cache)) for _ in range(rounds)]
    cpu = min(run.cpu for run in runs)
    goals = (at_most(cpu, GOALS[model], "s"),)
    return Row(f"best of {model}, cold", cpu, "CPU-s", goals=goals, note="layouts on 1,024 PEs")
