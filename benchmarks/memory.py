"""Memory: what the plan promises against what a sweep takes.

Each sweep is a process of its own that has compiled nothing yet: compiling takes memory, too. The
peak is that of resident memory (VmHWM, so Linux alone), of all processes of the sweep together.
Cores beyond those of this machine are pretended: Python and XLA then start as many threads.
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

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_most
from grids.outputs import MAIN_OUTPUTS
from kernels.names.terms import TERMS

ROOT = Path(__file__).parents[1]
CORES = (1, 2, 16)
LOOK_SECONDS = 0.02

# Prints, before it sweeps, the bytes that are promised.
CODE = """
import os, sys
cores = int(sys.argv.pop(1))
os.sched_getaffinity = lambda process: set(range(cores))
os.cpu_count = lambda: cores
from sweep.cli import preview
count = preview.needed_memory
def told(*arguments):
    print("promised", count(*arguments), flush=True)
    return count(*arguments)
preview.needed_memory = told
from sweep.cli.main import main
main()
"""


@dataclass(frozen=True)
class Case:
    """A spec, or an example's name, and the options of its sweep."""

    spec: dict[str, Any] | str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peak:
    """Bytes that a plan promised, and that its sweep took."""

    promised: int
    taken: int


def measure(effort: Effort) -> Report:
    """All cases on each number of cores; in haste on as many as a laptop has."""
    counts = CORES if effort.rounds > 2 else CORES[1:2]
    rows = [
        _row(f"{name}, {cores} cores", peak_of(case, cores))
        for name, case in cases().items()
        for cores in counts
    ]
    return Report("memory", "peak resident memory, and how much more was promised", tuple(rows))


def cases() -> dict[str, Case]:
    """Sweeps whose memory goes to different parts."""
    billion = yaml.safe_load((ROOT / "examples" / "billion.yaml").read_text())
    part = {
        "strategy": ["data", "spatial", "pipeline", "data+filter"],
        "inter_latency": _latencies(4),
    }
    lines = {"pe": [64, 128], "batch": _counts(1024), "inter_bandwidth": _rates(64)}
    return {
        "paper": Case("paper"),
        "search": Case("billion", ("--reduce-only",)),
        "slice": Case(billion | {"axes": billion["axes"] | part | {"system": "abci"}}),
        "terms": Case(_wide() | {"outputs": [*MAIN_OUTPUTS, *TERMS]}),
        "percentiles": Case(_wide() | {"oracle": "machine", "outputs": _percentiles()}),
        "short lines": Case(
            _space(**lines, inter_latency=_latencies(32), strategy=["data", "spatial"])
        ),
        "numeric": Case(_numeric()),
        "pipelines": Case(_deep(pe=_counts(4096), batch=_counts(512))),
        "layers": Case(_deep(pe=_counts(512), batch=[8, 64], peak_flops=_rates(50))),
        "best groups": Case(_best()),
        "two workers": Case("paper", ("--workers", "2")),
    }


def peak_of(case: Case, cores: int) -> Peak:
    """Sweep with nothing compiled yet."""
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
        said, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors)
    return Peak(int(said.split()[1]), taken)


def _watch(process: subprocess.Popen[str]) -> int:
    """The sum of the peaks of a process and of all that it starts [bytes]."""
    peaks: dict[int, int] = {}
    while process.poll() is None:
        for each in _family(process.pid):
            peaks[each] = max(peaks.get(each, 0), _peak(each))
        time.sleep(LOOK_SECONDS)
    return sum(peaks.values())


def _family(process: int) -> Iterator[int]:
    """A process, and all that its threads have started."""
    yield process
    for children in Path("/proc").glob(f"{process}/task/*/children"):
        for child in _text(children).split():
            yield from _family(int(child))


def _peak(process: int) -> int:
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", _text(Path(f"/proc/{process}/status")))
    return 1024 * int(kilobytes[1]) if kilobytes else 0


def _text(file: Path) -> str:
    """The system's figures on a process; empty once it has ended."""
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


def _numeric() -> dict[str, Any]:
    two = {name: [1e9, 1e10] for name in ("intra_bandwidth", "inter_bandwidth")}
    two |= {name: [1e-6, 1e-5] for name in ("intra_latency", "inter_latency")}
    two |= {"gamma": [0.5, 1], "phi": [1, 2], "segments": [2, 4], "memory_capacity": [1e10, 1e11]}
    return _space(**two, pe={"pow2": [1, 1024]}, batch={"pow2": [1, 512]})


def _best() -> dict[str, Any]:
    groups = [f"data+{each}:group=best" for each in ("spatial", "filter", "pipeline")]
    spec = _space(strategy=groups, pe=_counts(1024), batch=_counts(512))
    return spec | {"oracle": "machine", "outputs": _percentiles()}


def _percentiles() -> list[str]:
    return [*MAIN_OUTPUTS, "epoch_time_p10", "epoch_time_p50", "epoch_time_p90"]


def _counts(most: int) -> dict[str, list[int]]:
    return {"range": [1, most]}


def _latencies(count: int) -> dict[str, list[float]]:
    return {"geomspace": [1e-6, 1e-4, count]}


def _rates(count: int) -> dict[str, list[float]]:
    """So many values, over three orders of magnitude."""
    return {"geomspace": [1e9, 1e12, count]}
