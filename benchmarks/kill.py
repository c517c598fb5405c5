"""Kill sweeps at random instants, and compare what they leave with an uninterrupted sweep.

A kill is a SIGKILL of the driver or of one of its two workers, at any time after its process has
started. After each, every block that `paradl status` counts as done is compared with the
uninterrupted store, and the sweep is resumed, until every block is done.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import yaml

from benchmarks.report import Effort, Report, Row, at_most
from benchmarks.sweeps import ALL, make_space
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.store import Cube, open_cube
from paradl.sweep.questions.status import read_status

WORKERS = 2
SEED = 2021  # of the instants and the victims
# Three systems make tens of blocks, which take tenths of a second each.
MACHINES = ("abci", "dgx1-v100", "dgx-h100")


def measure(effort: Effort) -> Report:
    """Kill as often as the effort says."""
    random, counts = np.random.default_rng(SEED), Counter[str]()
    with TemporaryDirectory() as name:
        folder = Path(name)
        grid = make_space(ALL, 1024, 64, 64, MACHINES)
        (folder / "spec.yaml").write_text(yaml.safe_dump(grid.definition()))
        seconds = [_sweep_whole(folder / store) for store in ("warm", "reference")][-1]
        reference = open_cube(str(folder / "reference"))
        while counts["kills"] < effort.kills:
            store = folder / f"{counts['stores']}"
            while not _count_done(store)[1]:
                counts["kills"] += _kill_one(start_sweep(store), seconds, random)
                counts["done"] += _count_done(store)[0]
                counts["wrong"] += count_wrong(store, reference)
                if counts["kills"] >= effort.kills:
                    _sweep_whole(store)
            counts["wrong"] += count_wrong(store, reference)
            counts["stores"] += 1
            shutil.rmtree(store)
    rows = (
        Row("kills", counts["kills"], "", note=f"{counts['done']:,} blocks reported as done"),
        Row("stores finished", counts["stores"], "", note=f"{reference.plan.blocks} blocks each"),
        Row("differences", counts["wrong"], "", goals=(at_most(counts["wrong"], 0, ""),)),
    )
    return Report("kill", f"SIGKILL at random instants of a sweep by {WORKERS} workers", rows)


def start_sweep(store: Path) -> "subprocess.Popen[bytes]":
    """Start the command as a user would."""
    words = ("sweep", str(store.parent / "spec.yaml"), str(store), "--workers", str(WORKERS))
    command = (sys.executable, "-m", "paradl", *words, "--quiet")
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def _sweep_whole(store: Path) -> float:
    """Sweep without a kill; return the seconds that it takes."""
    start = time.perf_counter()
    if start_sweep(store).wait():
        raise RuntimeError(f"the sweep of {store} failed without a kill")
    return time.perf_counter() - start


def _kill_one(
    process: "subprocess.Popen[bytes]", seconds: float, random: np.random.Generator
) -> bool:
    """Kill the driver or a worker at a random instant; return whether the sweep still ran."""
    time.sleep(random.uniform(0, seconds))
    if process.poll() is not None:
        return False
    workers = list(list_workers(process.pid))
    if workers and random.random() < 0.5:
        os.kill(workers[random.integers(len(workers))], signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    return True


def list_workers(driver: int) -> Iterator[int]:
    """Yield the processes that compute blocks for the driver."""
    listed = subprocess.run(
        ("ps", "-e", "-o", "pid=,ppid=,args="), capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        pid, parent, command = line.split(maxsplit=2)
        if int(parent) == driver and "spawn_main" in command:
            yield int(pid)


def _count_done(store: Path) -> tuple[int, bool]:
    """Count the blocks that are reported as done, and whether these are all."""
    try:
        status = read_status(str(store))
    except InputError:  # killed before there was a cube
        return 0, False
    return status["blocks_done"], bool(status["complete"])


def count_wrong(store: Path, reference: Cube) -> int:
    """Count the blocks reported as done that lack a mark, or differ from the reference."""
    reported, _ = _count_done(store)
    if not reported:
        return 0
    cube = open_cube(str(store))
    done = np.flatnonzero(cube.read_done()).tolist()
    wrong = [block for block in done if not _is_same(cube, reference, block)]
    if wrong or reported > len(done):
        print(f"{store}: {reported} reported, {len(done)} marked, wrong: {wrong}", file=sys.stderr)
    return max(0, reported - len(done)) + len(wrong)


def _is_same(cube: Cube, reference: Cube, block: int) -> bool:
    """True if all arrays of a block are readable and equal to the reference's."""

    def read(cube: Cube, name: str) -> bytes:
        # As bytes, so that NaN equals NaN.
        return np.asarray(cube.arrays[name][cube.find_place(name, block)]).tobytes()

    return all(read(cube, name) == read(reference, name) for name in reference.list_arrays(block))
