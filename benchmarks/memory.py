"""Compare the memory that a plan predicts with the peak of its sweep.

Each sweep is a new process that has compiled nothing yet, since compiling takes memory, too. The
peak is the resident memory (VmHWM, so Linux only) of all its processes together. Cores beyond those
of this machine are simulated: Python and XLA then start as many threads.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.report import Effort, Report, Row, at_most
from paradl.grids.outputs import MAIN_OUTPUTS

ROOT = Path(__file__).parents[1]
CORES = (1, 2, 16)
LOOK_SECONDS = 0.02

# Prints the predicted bytes before it sweeps.
CODE = """
import os, sys
cores = int(sys.argv.pop(1))
os.sched_getaffinity = lambda process: set(range(cores))
os.cpu_count = lambda: cores
sys.argv[0] = "paradl"
from paradl.sweep.text import preview
count = preview.needed_memory
def print_needed(*arguments):
    print("promised", count(*arguments), flush=True)
    return count(*arguments)
preview.needed_memory = print_needed
from paradl.sweep.cli.main import main
main()
"""


@dataclass(frozen=True)
class Case:
    """A spec or the name of an example, and options of its sweep."""

    spec: dict[str, Any] | str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peak:
    """Predicted and peak bytes of a sweep."""

    promised: int
    taken: int


def measure(effort: Effort) -> Report:
    """Measure all cases on each number of cores; with --quick on two."""
    counts = CORES if effort.rounds > 2 else CORES[1:2]
    rows = [
        _row(f"{name}, {cores} cores", peak_of(case, cores))
        for name, case in cases().items()
        for cores in counts
    ]
    return Report("memory", "peak resident memory, and how much more was promised", tuple(rows))


def cases() -> dict[str, Case]:
    """Return sweeps that spend their memory on different parts."""
    lines = {"pe": [64, 128], "batch": _counts(1024), "inter_bandwidth": _rates(64)}
    return {
        "paper": Case("paper"),
        "search": Case("billion", ("--reduce-only",)),
        "percentiles": Case(_wide() | {"oracle": "machine", "outputs": _percentiles()}),
        "short lines": Case(
            _space(**lines, inter_latency=_latencies(32), strategy=["data", "spatial"])
        ),
        "pipelines": Case(_deep(pe=_counts(4096), batch=_counts(512))),
        "layers": Case(_deep(pe=_counts(512), batch=[8, 64], peak_flops=_rates(50))),
        "best groups": Case(_best()),
        "two workers": Case("paper", ("--workers", "2")),
    }


def peak_of(case: Case, cores: int) -> Peak:
    """Run a sweep with an empty compilation cache and return its peak."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        spec = ROOT / "examples" / f"{case.spec}.yaml"
        if isinstance(case.spec, dict):
            spec = folder / "spec.yaml"
            spec.write_text(yaml.safe_dump(case.spec))
        command = [sys.executable, "-c", CODE, str(cores), "sweep", str(spec), f"{folder}/x.zarr"]
        environment = os.environ | {"XDG_CACHE_HOME": name, "NPROC": str(cores)}
        process = subprocess.Popen(
            [*command, *case.options],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        taken = _watch(process)
        output, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors)
    return Peak(int(output.split()[1]), taken)


def _watch(process: subprocess.Popen[str]) -> int:
    """Return the sum of the peaks of a process and all its descendants [bytes]."""
    peaks: dict[int, int] = {}
    while process.poll() is None:
        for member in _family(process.pid):
            peaks[member] = max(peaks.get(member, 0), read_peak(member))
        time.sleep(LOOK_SECONDS)
    return sum(peaks.values())


def _family(process: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    yield process
    for children in Path("/proc").glob(f"{process}/task/*/children"):
        for child in _text(children).split():
            yield from _family(int(child))


def read_peak(process: int) -> int:
    """The most resident memory that a process has had [B]; ru_maxrss counts its parent's, too."""
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", _text(Path(f"/proc/{process}/status")))
    return 1024 * int(kilobytes[1]) if kilobytes else 0


def _text(file: Path) -> str:
    """Read a file of /proc; empty once the process has ended."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _row(what: str, peak: Peak) -> Row:
    ratio = peak.promised / peak.taken
    goal = at_most(peak.taken, peak.promised, "B")
    return Row(what, peak.taken, "B", ratio, "promised / taken", (goal,))


def _space(**axes: Any) -> dict[str, Any]:
    return {
        "oracle": "paper",
        "axes": {"model": "resnet50", "dataset": "imagenet", "system": "abci"} | axes,
    }


def _wide() -> dict[str, Any]:
    strategies = ["data", "data+filter", "spatial", "pipeline", "data+spatial"]
    return _space(
        strategy=strategies, pe=_counts(1024), batch=_counts(512), inter_bandwidth=_rates(8)
    )


def _deep(**axes: Any) -> dict[str, Any]:
    return _space(model="resnet152", strategy=["pipeline", "data+pipeline", "spatial"], **axes)


def _best() -> dict[str, Any]:
    groups = [f"data+{group}:group=best" for group in ("spatial", "filter", "pipeline")]
    spec = _space(strategy=groups, pe=_counts(1024), batch=_counts(512))
    return spec | {"oracle": "machine", "outputs": _percentiles()}


def _percentiles() -> list[str]:
    return [*MAIN_OUTPUTS, "epoch_time_p10", "epoch_time_p50", "epoch_time_p90"]


def _counts(most: int) -> dict[str, list[int]]:
    return {"range": [1, most]}


def _latencies(count: int) -> dict[str, list[float]]:
    return {"geomspace": [1e-6, 1e-4, count]}


def _rates(count: int) -> dict[str, list[float]]:
    """Make an axis of `count` values over three orders of magnitude."""
    return {"geomspace": [1e9, 1e12, count]}
