"""CPU and wall seconds of commands, cold and warm: first answers, and a user's sweeps.

Cold: no compiled programs on disk, and a process of its own each; Python's files are in the page
cache. Warm: with the programs of the first cold run. The least of a few runs: a busy machine adds
wall time, and some CPU time.
"""

import os
import subprocess
import sys
import time
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml

from benchmarks.report import Effort, Goal, Report, Row, at_most
from paradl.sweep.engine.run import read_grid

ROOT = Path(__file__).parents[1]
VGG = ("--model", "vgg16", "--dataset", "imagenet", "--system", "abci")
CONFIGURATION = ("--dataset", "imagenet", "--strategy", "data", "--pe", "512", "--batch", "64")
LAYOUTS = ("--system", "dgx-h100", "--pe", "1024", "--global-batch", "2048", "--sequence", "8192")
GROUPS = "data,data+filter:group=4"
RUNS = 3
# Measured runs of which `calibrate` gets the first ones.
MEASURED, FITTED = ROOT / "grids/catalogue/measured/abci.csv", 12

# Those of README and docs/questions.md, and their goals [s], cold. STORE, RUNS and FIT are files.
COMMANDS: dict[str, tuple[float, tuple[str, ...]]] = {
    "predict": (2, ("predict", "--model", "resnet50", "--system", "dgx-a100", *CONFIGURATION)),
    "best": (2, ("best", *VGG, "--pe", "256")),
    "best, layouts of Llama 2 70B": (2.5, ("best", "--model", "llama2_70b", *LAYOUTS)),
    "best, layouts of DeepSeek-V3": (5, ("best", "--model", "deepseek_v3", *LAYOUTS)),
    "limits": (
        2,
        ("limits", *VGG, "--pe", "pow2:1..1024", "--batch", "32", "--strategy", f"{GROUPS},filter"),
    ),
    "bottleneck": (
        2,
        ("bottleneck", *VGG, "--pe", "64,1024", "--batch", "32", "--strategy", GROUPS),
    ),
    "sensitivity, all strategies": (4, ("sensitivity", *VGG, "--pe", "64", "--batch", "32")),
    "an unknown name": (0.3, ("predict", "--model", "resnet5", "--system", "abci", *CONFIGURATION)),
    "sweep examples/small.yaml": (4, ("sweep", "examples/small.yaml", "STORE", "--overwrite")),
    "sweep examples/hybrid.yaml": (8, ("sweep", "examples/hybrid.yaml", "STORE", "--overwrite")),
    "provision, all strategies": (
        8,
        ("provision", *VGG, "--deadline", "6 h", "--epochs", "74", "--holds", "0.9"),
    ),
    "calibrate, 12 runs": (10, ("calibrate", "RUNS", "--system", "abci", "-o", "FIT")),
    "sample, 50,000 rows": (
        10,
        ("sample", "examples/surrogate.yaml", "STORE", "--rows", "50000", "--force"),
    ),
}
# It takes half a minute, which varies by less.
ONCE = ("sample, 50,000 rows",)

AXES: dict[str, object] = {
    "model": ["resnet50", "vgg16", "cosmoflow"],
    "dataset": ["imagenet", "imagenet-226", "cosmoflow-128"],
    "system": ["abci", "dgx-a100"],
    "pe": {"pow2": [1, 1024]},
    "batch": {"pow2": [1, 128]},
    "inter_bandwidth": {"geomspace": [1e9, 1e11, 32]},
    "inter_latency": {"geomspace": [1e-6, 2e-5, 7]},
}
ALONE = ("data", "spatial", "pipeline", "filter", "channel")
GROUPED = ("data+spatial", "data+pipeline", "data+filter")
PLACED = "data+placement:group=2"
FOUR = [f"{group}:group=4" for group in GROUPED]
BEST = [f"{group}:group=best" for group in GROUPED]
OUTPUTS = ["comp_time", "comm_time", "memory", "limit"]
PERCENTILES = ["epoch_time_p10", "epoch_time_p90"]
SLOPES = [
    f"elasticity_epoch_time_{name}"
    for name in ("inter_bandwidth", "inter_latency", "peak_flops", "memory_bandwidth")
]
TOGETHER = "best, placement, percentiles and a slope"
# Strategies beside those alone, and outputs; goals: times of the plain sweep's, or wall seconds.
SWEEPS: dict[str, tuple[list[str], list[str]]] = {
    "plain": (FOUR, OUTPUTS),
    "placement": ([*FOUR, PLACED], OUTPUTS),
    "best": (BEST, OUTPUTS),
    "percentiles": (FOUR, [*OUTPUTS, *PERCENTILES]),
    "a slope": (FOUR, [*OUTPUTS, *SLOPES[:1]]),
    "four slopes": (FOUR, [*OUTPUTS, *SLOPES]),
    TOGETHER: ([*BEST, PLACED], [*OUTPUTS, *PERCENTILES, *SLOPES[:1]]),
}
TIMES = {"percentiles": 5.0, "four slopes": 4.0}
SECONDS = 40.0


class Seconds(NamedTuple):
    """Least times of some runs of a command [s]."""

    cpu: float
    wall: float

    @property
    def note(self) -> str:
        """Wall seconds in words."""
        return f"wall {self.wall:.2f} s"


def measure(effort: Effort) -> Report:
    """Measure each command of `COMMANDS`."""
    rows = []
    for what, (goal, words) in COMMANDS.items():
        runs = 1 if what in ONCE else min(RUNS, effort.rounds)
        for kind, taken in _measure_command(words, runs).items():
            goals = (at_most(taken.wall, goal, "s wall"),)
            rows.append(Row(f"{what}, {kind}", taken.cpu, "s", goals=goals, note=taken.note))
    title = "CPU seconds from the command to its end, the least of several runs"
    return Report("first", title, tuple(rows))


def measure_sweeps(effort: Effort) -> Report:
    """Measure sweeps of eight axes, against the plain one."""
    rows, plain = [], dict[str, Seconds]()
    for what in SWEEPS:
        words = ("sweep", yaml.safe_dump(_make_spec(what)), "STORE", "--overwrite", "--quiet")
        for kind, taken in _measure_command(words, effort.rounds // 2).items():
            against = plain.setdefault(kind, taken)
            times, goals = taken.cpu / against.cpu, tuple[Goal, ...]()
            if what in TIMES:
                goals = (at_most(times, TIMES[what], ""),)
            elif what == TOGETHER and kind == "cold":
                goals = (at_most(taken.wall, SECONDS, "s wall"),)
            rows.append(
                Row(
                    *(f"{what}, {kind}", taken.cpu, "s", times, f"plain, {kind}", goals),
                    note=taken.note,
                )
            )
    grid = read_grid(_make_spec("plain"))
    cells = len(grid.fitting) * prod(grid.shape[2:])
    title = "CPU seconds of a sweep of eight axes, from the command to its end"
    return Report("user", f"{title}: {cells:,} cells", tuple(rows))


def _make_spec(what: str) -> dict[str, object]:
    strategies, outputs = SWEEPS[what]
    return {"axes": AXES | {"strategy": [*ALONE, *strategies]}, "outputs": outputs}


def _measure_command(words: tuple[str, ...], runs: int) -> dict[str, Seconds]:
    """Run a command with empty caches, then with the programs in the first one."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        measured = MEASURED.read_text().splitlines(keepends=True)
        (folder / "runs.csv").write_text("".join(measured[: FITTED + 1]))
        files = {"STORE": "store.zarr", "RUNS": "runs.csv", "FIT": "fit.yaml"}
        command = [str(folder / files[word]) if word in files else word for word in words]
        if "\n" in command[1]:  # a spec
            (folder / "spec.yaml").write_text(command[1])
            command[1] = str(folder / "spec.yaml")
        numbers = range(max(1, runs))
        cold = [_run(command, folder / f"cache-{number}") for number in numbers]
        warm = [_run(command, folder / "cache-0") for _ in numbers]
    return {
        kind: Seconds(*map(min, zip(*taken, strict=True)))
        for kind, taken in (("cold", cold), ("warm", warm))
    }


def _run(words: list[str], cache: Path) -> Seconds:
    """Run a command whose compiled programs are kept in a folder. It may end with any code."""
    began, before = time.perf_counter(), os.times()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = (sys.executable, "-m", "paradl", *words)
    subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True)
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])  # of children: user and system
    return Seconds(cpu, time.perf_counter() - began)
