"""Versions: a search by an earlier revision and by this one, in turn, in processes of their own.

The earlier one is taken out of git's history, and asked by its Table III; this one by its own, and
by the default oracle.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.report import Effort, Report, Row, at_least
from benchmarks.sweeps import EIGHT

ROOT = Path(__file__).parents[1]
# PARADL_REVISION takes its place: the last one whose only oracle was Table III.
REVISION = os.environ.get("PARADL_REVISION", "e852eec")
# Parts of the earlier Table III's rate: of this one's, and of the default oracle.
TABLE_III, DEFAULT = 1.0, 0.6
BANDWIDTHS, FEWER = 64, 8

# A line on stdin is a search; the answer is its CPU seconds.
SEARCHES = """
import json, sys, time
from importlib import import_module
package, spec, store = import_module(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
for _ in sys.stdin:
    start = time.process_time()
    package.run(spec, store, overwrite=True, reduce_only=True)
    print(time.process_time() - start, flush=True)
"""


def measure(effort: Effort) -> Report:
    """Cells a CPU second of each, and ratios to the earlier revision's within a round."""
    axes = _list_axes(BANDWIDTHS if effort.rounds > 2 else FEWER)
    cells = 2 * len(EIGHT) * 1024 * 64 * 16 * axes["inter_bandwidth"]["geomspace"][2]
    before = f"Table III of {REVISION}"
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        _check_out(folder / "before")
        asked: dict[str, tuple[Path, dict[str, Any]]] = {
            before: (folder / "before", {"axes": axes}),
            "Table III": (ROOT, {"axes": axes, "oracle": "paper"}),
            "default oracle": (ROOT, {"axes": axes}),
        }
        searches = {
            what: stack.enter_context(_open_search(source, spec, folder / f"store-{number}"))
            for number, (what, (source, spec)) in enumerate(asked.items())
        }
        seconds = _alternate(searches, effort.rounds)
    rows = [Row(before, cells / median(seconds[before]), "cells/CPU-s")]
    for what, least in (("Table III", TABLE_III), ("default oracle", DEFAULT)):
        share = median(map(float.__truediv__, seconds[before], seconds[what]))
        rate = cells / median(seconds[what])
        rows.append(Row(what, rate, "cells/CPU-s", share, before, (at_least(share, least),)))
    return Report("versions", f"a search of {cells:,} cells (--reduce-only)", tuple(rows))


def _list_axes(bandwidths: int) -> dict[str, Any]:
    return {
        "model": "resnet50",
        "dataset": "imagenet",
        "system": ["abci", "dgx-h100"],
        "strategy": list(EIGHT),
        "pe": {"range": [1, 1024]},
        "batch": {"range": [1, 64]},
        "inter_bandwidth": {"geomspace": [1e9, 1e12, bandwidths]},
        "inter_latency": {"geomspace": [1e-6, 1e-4, 16]},
    }


def _check_out(folder: Path) -> None:
    """The revision's files; the working tree and git's index stay as they are."""
    command = ("git", "-C", str(ROOT), "archive", "--format=tar", REVISION)
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


@contextmanager
def _open_search(
    source: Path, spec: dict[str, Any], store: Path
) -> Iterator["subprocess.Popen[str]"]:
    """A process of one version that searches when it is told to."""
    # Earlier ones have no package `paradl`.
    packages, name = (source / "src", "paradl") if (source / "src").is_dir() else (source, "sweep")
    command = (sys.executable, "-c", SEARCHES, name, json.dumps(spec), str(store))
    environment = {**os.environ, "PYTHONPATH": str(packages), "XDG_CACHE_HOME": f"{store}-cache"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=source, env=environment, stdin=pipe, stdout=pipe, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _alternate(searches: dict[str, "subprocess.Popen[str]"], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each round; the first, which compiles, is not counted."""
    seconds: dict[str, list[float]] = {what: [] for what in searches}
    for number in range(rounds + 1):
        order = list(searches)
        for what in order[number % len(order) :] + order[: number % len(order)]:
            taken = _search(searches[what])
            if number > 0:
                seconds[what].append(taken)
    return seconds


def _search(process: "subprocess.Popen[str]") -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())
