"""First answers: CPU and wall seconds of commands, cold and warm.

Cold: no compiled programs on disk, and a process of its own each; Python's files are in the page
cache. The least of a few runs: a busy machine adds wall time, and some CPU time.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.report import Effort, Report, Row, at_most

ROOT = Path(__file__).parents[1]
VGG = ("--model", "vgg16", "--dataset", "imagenet", "--system", "abci")
CONFIGURATION = ("--dataset", "imagenet", "--strategy", "data", "--pe", "512", "--batch", "64")
GROUPS = "data,data+filter:group=4"
RUNS = 3
# Measured runs of which `calibrate` gets the first ones.
MEASURED, FITTED = ROOT / "grids/catalogue/measured/abci.csv", 12

# Those of README and docs/questions.md, and their goals [s], cold. STORE, RUNS and FIT are files.
COMMANDS: dict[str, tuple[float | None, tuple[str, ...]]] = {
    "predict": (2, ("predict", "--model", "resnet50", "--system", "dgx-a100", *CONFIGURATION)),
    "best": (2, ("best", *VGG, "--pe", "256")),
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


@dataclass(frozen=True)
class Seconds:
    """Times of a process [s]."""

    cpu: float
    wall: float


def measure(effort: Effort) -> Report:
    """Measure each command, first with an empty cache, then with the programs of the run before."""
    runs = min(RUNS, effort.rounds)
    rows = [row for what in COMMANDS for row in _measure_command(what, 1 if what in ONCE else runs)]
    title = "CPU seconds from the command to its end, the least of several runs"
    return Report("first", title, tuple(rows))


def _measure_command(what: str, runs: int) -> list[Row]:
    """Return the rows of a command, cold and warm."""
    goal, arguments = COMMANDS[what]
    with TemporaryDirectory() as name:
        folder = Path(name)
        measured = MEASURED.read_text().splitlines(keepends=True)
        (folder / "runs.csv").write_text("".join(measured[: FITTED + 1]))
        files = {"STORE": "store.zarr", "RUNS": "runs.csv", "FIT": "fit.yaml"}
        words = [str(folder / files[word]) if word in files else word for word in arguments]
        cold = [run_command(words, folder / f"cache-{number}") for number in range(runs)]
        warm = [run_command(words, folder / "cache-0") for _ in range(runs)]
    return [_row(f"{what}, cold", cold, goal), _row(f"{what}, warm", warm, goal)]


def _row(what: str, runs: list[Seconds], goal: float | None) -> Row:
    wall = min(run.wall for run in runs)
    goals = () if goal is None else (at_most(wall, goal, "s wall"),)
    return Row(what, min(run.cpu for run in runs), "s", goals=goals, note=f"wall {wall:.2f} s")


def run_command(words: list[str], cache: Path) -> Seconds:
    """Run a command whose compiled programs are kept in a folder. It may end with any code."""
    began, before = time.perf_counter(), os.times()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = (sys.executable, "-m", "paradl", *words)
    subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True)
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return Seconds(cpu, time.perf_counter() - began)
