"""Start-up: how soon the command line answers, and a small sweep ends, on a warm machine.

Warm: compiled programs are in the cache on disk, Python's files in the page cache.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_most
from benchmarks.timing import interleaved

ROOT = Path(__file__).parents[1]
SMALL = ROOT / "examples" / "small.yaml"
PAPER = ROOT / "examples" / "paper.yaml"

Command = tuple[str, ...]
PARADL = "from sweep.cli.main import main; main()"
CONFIGURATION = (
    *("--model", "resnet50", "--dataset", "imagenet-226", "--strategy", "data+filter"),
    *("--pe", "256", "--batch", "64", "--oracle", "paper", "--set", "gamma=0.25"),
)
SLICE = ("--sel", "model=resnet50", "--sel", "batch=32")

# Seconds, of commands that have such a goal.
GOALS = {
    "paradl --help": 0.4,
    "paradl limits, 500 rows": 1.0,
    "paradl limits, 10 rows": 1.0,
    "paradl best, 50 rows": 1.0,
    "paradl sweep examples/small.yaml": 3.0,
}


def measure(effort: Effort) -> Report:
    """Each command in a process of its own."""
    with TemporaryDirectory() as folder:
        paper = str(Path(folder) / "paper.zarr")
        _run((PARADL, "sweep", str(PAPER), paper, "--reduce-only"))
        commands_of = commands(paper, str(Path(folder) / "small.zarr"))
        actions = {what: partial(_run, command) for what, command in commands_of.items()}
        timings = interleaved(actions, effort.rounds)
    rows = tuple(_row(what, timing.median) for what, timing in timings.items())
    return Report("startup", "seconds from the command to its end", rows)


def commands(paper: str, small: str) -> dict[str, Command]:
    """Commands to measure; `paper` is the cube of examples/paper.yaml, `small` a new one's place.

    The imports are those of the libraries that a sweep needs.
    """
    return {
        "python -c pass": ("pass",),
        "paradl --help": (PARADL, "--help"),
        "paradl models": (PARADL, "models"),
        "paradl status": (PARADL, "status", paper),
        "paradl limits, 500 rows": (PARADL, "limits", paper),
        "paradl limits, 10 rows": (PARADL, "limits", paper, *SLICE),
        "paradl best, 50 rows": (PARADL, "best", paper),
        "import jax, xarray, zarr": ("import jax.numpy, xarray, zarr",),
        "paradl predict": (PARADL, "predict", *CONFIGURATION),
        "paradl sweep examples/small.yaml": (PARADL, "sweep", str(SMALL), small, "--overwrite"),
    }


def _row(what: str, seconds: float) -> Row:
    goals = (at_most(seconds, GOALS[what], "s"),) if what in GOALS else ()
    return Row(what, seconds, "s", goals=goals)


def _run(command: Command) -> None:
    subprocess.run((sys.executable, "-c", *command), cwd=ROOT, check=True, capture_output=True)
