"""Start-up: how soon the command line answers, and a small sweep ends, on a warm machine.

Warm: compiled programs are in the cache on disk, Python's files in the page cache.
"""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_most
from benchmarks.timing import interleaved

ROOT = Path(__file__).parents[1]
SMALL = ROOT / "examples" / "small.yaml"
PARADL = "from sweep.cli import main; main()"
IMPORTS = "import jax.numpy, xarray, zarr"

HELP_SECONDS = 0.4
SWEEP_SECONDS = 3.0


@dataclass(frozen=True)
class StartUp:
    """Seconds from the command to its end; `imports` is of the libraries that a sweep needs."""

    bare: float
    help: float
    imports: float
    sweep: float


def measure(effort: Effort) -> Report:
    """Four commands."""
    found = start_up(effort)
    rows = (
        Row("python -c pass", found.bare, "s"),
        Row("paradl --help", found.help, "s", goals=(at_most(found.help, HELP_SECONDS, "s"),)),
        Row("import jax, xarray, zarr", found.imports, "s"),
        Row(
            "paradl sweep examples/small.yaml",
            found.sweep,
            "s",
            goals=(at_most(found.sweep, SWEEP_SECONDS, "s"),),
        ),
    )
    return Report("startup", "seconds from the command to its end", rows)


def start_up(effort: Effort) -> StartUp:
    """Each command in a process of its own."""
    with TemporaryDirectory() as folder:
        store = str(Path(folder) / "small.zarr")
        commands = {
            "bare": ("pass",),
            "help": (PARADL, "--help"),
            "imports": (IMPORTS,),
            "sweep": (PARADL, "sweep", str(SMALL), store, "--overwrite"),
        }
        actions = {name: partial(_run, command) for name, command in commands.items()}
        timings = interleaved(actions, effort.rounds)
    return StartUp(**{name: timing.median for name, timing in timings.items()})


def _run(command: tuple[str, ...]) -> None:
    subprocess.run((sys.executable, "-c", *command), cwd=ROOT, check=True, capture_output=True)
