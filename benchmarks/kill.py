"""Kill sweeps at random instants, and compare what they leave with an uninterrupted sweep.

A kill is a SIGKILL of the driver or of one of its two workers, at any time after its process has
started. After each, every block that `paradl status` counts as done is compared with the
uninterrupted store, and the sweep is resumed. In the end both stores are equal byte for byte.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import yaml

from benchmarks.report import Effort, Report, Row, at_most
from benchmarks.sweeps import ALL, make_space
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.root import METADATA
from paradl.sweep.cube.store import Cube, open_cube
from paradl.sweep.questions.status import read_status

COMMAND = (sys.executable, "-m", "paradl", "sweep")
WORKERS = 2
STDERR = "stderr"
SEED = 2021  # of the instants and the victims
# Three systems make tens of blocks, which take tenths of a second each.
MACHINES = ("abci", "dgx1-v100", "dgx-h100")


@dataclass
class Tally:
    """Counts of kills and of what they left.

    driver, worker: kills. stops: checks. done: blocks reported as done. stores: finished. wrong:
    blocks reported as done, and files of finished stores, that differ from the reference.
    """

    driver: int = 0
    worker: int = 0
    stops: int = 0
    done: int = 0
    stores: int = 0
    wrong: int = 0

    @property
    def kills(self) -> int:
        """Number of killed processes."""
        return self.driver + self.worker


@dataclass(frozen=True)
class Sweep:
    """A spec's file, the store of its uninterrupted sweep, and that sweep's duration."""

    spec: Path
    reference: Cube
    seconds: float


def measure(effort: Effort) -> Report:
    """Kill as often as the effort says."""
    with TemporaryDirectory() as folder:
        swept = sweep_reference(Path(folder), make_space(ALL, 1024, 64, 64, MACHINES))
        tally = kill_and_resume(Path(folder), swept, effort.kills)
    blocks = swept.reference.plan.blocks
    victims = f"{tally.driver} of the driver, {tally.worker} of a worker"
    rows = (
        Row("kills", tally.kills, "", note=victims),
        Row("checks", tally.stops, "", note=f"{tally.done:,} blocks reported as done"),
        Row("stores finished", tally.stores, "", note=f"{blocks} blocks each"),
        Row("differences", tally.wrong, "", goals=(at_most(tally.wrong, 0, ""),)),
    )
    return Report("kill", f"SIGKILL at random instants of a sweep by {WORKERS} workers", rows)


def sweep_reference(folder: Path, grid: Grid) -> Sweep:
    """Sweep once to compile, and once to time it."""
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(grid.definition()))
    for name in ("warm", "reference"):
        start = time.perf_counter()
        process = start_sweep(spec, folder / name)
        _check_ended(process, folder)
    return Sweep(spec, open_cube(str(folder / "reference")), time.perf_counter() - start)


def start_sweep(spec: Path, store: Path) -> "subprocess.Popen[bytes]":
    """Start the command as a user would."""
    options = ("--workers", str(WORKERS), "--quiet")
    with (store.parent / STDERR).open("wb") as errors:
        return subprocess.Popen((*COMMAND, str(spec), str(store), *options), stderr=errors)


def _check_ended(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    if process.wait():
        raise RuntimeError(f"a sweep failed without a kill: {(folder / STDERR).read_text()}")


def kill_and_resume(folder: Path, swept: Sweep, kills: int) -> Tally:
    """Sweep store after store until `kills` processes were killed."""
    random, tally = np.random.default_rng(SEED), Tally()
    while tally.kills < kills:
        store = folder / f"{tally.stores}"
        while not is_complete(store):
            run_and_kill(store, swept, kills, random, tally)
        for name in find_differences(Path(swept.reference.url), store):
            print(f"{store.name}/{name} differs from the reference", file=sys.stderr)
            tally.wrong += 1
        tally.stores += 1
        shutil.rmtree(store)
    return tally


def run_and_kill(
    store: Path, swept: Sweep, kills: int, random: np.random.Generator, tally: Tally
) -> None:
    """Start a sweep and kill its workers at random, until it ends or is killed itself."""
    process, before = start_sweep(swept.spec, store), tally.kills
    while tally.kills < kills:
        try:
            process.wait(random.uniform(0, swept.seconds))
            break
        except subprocess.TimeoutExpired:
            workers = list(list_workers(process.pid))
        if workers and random.random() < 0.5:
            os.kill(workers[random.integers(len(workers))], signal.SIGKILL)
            tally.worker += 1
        else:
            process.kill()
            process.wait()
            tally.driver += 1
        check(store, swept.reference, tally)
    if tally.kills == before:
        _check_ended(process, store.parent)
    process.wait()


def list_workers(driver: int) -> Iterator[int]:
    """Yield the processes that compute blocks for the driver."""
    listed = subprocess.run(
        ("ps", "-e", "-o", "pid=,ppid=,args="), capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        pid, parent, command = line.split(maxsplit=2)
        if int(parent) == driver and "spawn_main" in command:
            yield int(pid)


def check(store: Path, reference: Cube, tally: Tally) -> None:
    """Compare the blocks that are reported as done with the reference."""
    tally.stops += 1
    try:
        reported, cube = read_status(str(store))["blocks_done"], open_cube(str(store))
    except InputError:  # killed before there was a cube
        return
    tally.done += reported
    done = np.flatnonzero(cube.read_done()).tolist()
    wrong = [block for block in done if not is_same(cube, reference, block)]
    if wrong or reported > len(done):
        print(
            f"{store.name}: {reported} reported, {len(done)} marked, wrong: {wrong}",
            file=sys.stderr,
        )
    tally.wrong += max(0, reported - len(done)) + len(wrong)


def is_same(cube: Cube, reference: Cube, block: int) -> bool:
    """True if all arrays of a block are readable and equal to the reference's."""
    return all(
        read_bytes(cube, name, block) == read_bytes(reference, name, block)
        for name in reference.list_arrays(block)
    )


def read_bytes(cube: Cube, name: str, block: int) -> bytes:
    """Read a block's part of an array as bytes, so that NaN equals NaN."""
    return np.asarray(cube.arrays[name][cube.find_place(name, block)]).tobytes()


def is_complete(store: Path) -> bool:
    """True if all blocks are done."""
    try:
        return bool(read_status(str(store))["complete"])
    except InputError:
        return False


def find_differences(reference: Path, store: Path) -> Iterator[str]:
    """Yield files that one of the stores lacks, or that differ."""
    names = [
        {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        for root in (store, reference)
    ]
    for name in sorted(names[0] | names[1]):
        is_shared = name in names[0] & names[1]
        if not is_shared or read_file(store / name) != read_file(reference / name):
            yield name


def read_file(path: Path) -> object:
    """Read a file's bytes; metadata without attributes, which have dates."""
    if path.name != METADATA:
        return path.read_bytes()
    metadata = json.loads(path.read_text())
    return metadata | {"attributes": None}
