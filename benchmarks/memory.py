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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

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

    spec: Mapping[str, object] | str
    options: tuple[str, ...] = ()


def measure(effort: Effort) -> Report:
    """Measure all cases on each number of cores; with --quick on two."""
    counts = CORES if effort.rounds > 2 else CORES[1:2]
    rows = [
        measure_peak(f"{name}, {cores} cores", case, cores)
        for name, case in CASES.items()
        for cores in counts
    ]
    return Report("memory", "peak resident memory, and how much more was promised", tuple(rows))


def make_space(
    axes: Mapping[str, object], outputs: tuple[str, ...] = MAIN_OUTPUTS, oracle: str = "paper"
) -> dict[str, object]:
    """Make a spec, of ResNet-50 unless the axes say otherwise."""
    others = {"model": "resnet50", "dataset": "imagenet", "system": "abci"}
    return {"oracle": oracle, "outputs": list(outputs), "axes": {**others, **axes}}


def _count(most: int) -> dict[str, list[int]]:
    return {"range": [1, most]}


def _space_rates(count: int) -> dict[str, list[float]]:
    return {"geomspace": [1e9, 1e12, count]}


PERCENTILES = (*MAIN_OUTPUTS, "epoch_time_p10", "epoch_time_p50", "epoch_time_p90")
DEEP = {"model": "resnet152", "strategy": ["pipeline", "data+pipeline", "spatial"]}
WIDE = {"pe": _count(1024), "batch": _count(512)}
LINES = {"pe": [64, 128], "batch": _count(1024), "inter_bandwidth": _space_rates(64)}
FIVE = ["data", "data+filter", "spatial", "pipeline", "data+spatial"]
CHOSEN = [f"data+{group}:group=best" for group in ("spatial", "filter", "pipeline")]
SPACES = {
    "percentiles": make_space(
        {"strategy": FIVE, **WIDE, "inter_bandwidth": _space_rates(8)}, PERCENTILES, "machine"
    ),
    "short lines": make_space(
        {"strategy": ["data", "spatial"], **LINES, "inter_latency": {"geomspace": [1e-6, 1e-4, 32]}}
    ),
    "pipelines": make_space({**DEEP, "pe": _count(4096), "batch": _count(512)}),
    "layers": make_space(
        {**DEEP, "pe": _count(512), "batch": [8, 64], "peak_flops": _space_rates(50)}
    ),
    "best groups": make_space({"strategy": CHOSEN, **WIDE}, PERCENTILES, "machine"),
}
# Sweeps that spend their memory on different parts.
CASES = {
    "paper": Case("paper"),
    "search": Case("billion", ("--reduce-only",)),
    **{name: Case(spec) for name, spec in SPACES.items()},
    "two workers": Case("paper", ("--workers", "2")),
}


def measure_peak(what: str, case: Case, cores: int) -> Row:
    """Run a sweep with an empty compilation cache, and compare its peak with what was promised."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        spec = ROOT / "examples" / f"{case.spec}.yaml"
        if not isinstance(case.spec, str):
            spec = folder / "spec.yaml"
            spec.write_text(yaml.safe_dump(dict(case.spec)))
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
    promised = int(output.split()[1])
    goal = at_most(taken, promised, "B")
    return Row(what, taken, "B", promised / taken, "promised / taken", (goal,))


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
