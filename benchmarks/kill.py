"""Kills: sweeps that are killed at random instants, and what they leave, against one that is not.

A kill is a SIGKILL of the driver or of one of its two workers, at any instant from the start of its
process on. After each, every block that `paradl status` counts is read, and compared with the
uninterrupted store; the sweep is then resumed, and in the end its store is the same, byte for byte.
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

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_most
from grids.grid import Grid
from grids.reading.errors import InputError
from sweep.cube.root import METADATA
from sweep.cube.store import Cube, open_cube
from sweep.questions.status import read_status

COMMAND = (sys.executable, "-c", "from sweep.cli.main import main; main()", "sweep")
WORKERS = 2
SAID = "stderr"
SEED = 2021  # of the instants and the victims
# Three systems: some tens of blocks, of some tenths of a second.
MACHINES = ("abci", "dgx1-v100", "dgx-h100")


@dataclass
class Tally:
    """A killed run, and its result afterwards.

    wrong: blocks said to be done that were not what they must be, and files of finished stores.
    """

    driver: int = 0
    worker: int = 0
    stops: int = 0
    done: int = 0
    stores: int = 0
    wrong: int = 0

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return self.driver + self.worker


@dataclass(frozen=True)
class Sweep:
    """A spec's file, the store of its uninterrupted sweep, and how long that took [s]."""

    spec: Path
    reference: Cube
    seconds: float


def measure(effort: Effort) -> Report:
    """As many kills as the effort allows."""
    with TemporaryDirectory() as folder:
        swept = uninterrupted(Path(folder), spaces.space(spaces.ALL, 1024, 64, 64, MACHINES))
        tally = kill_and_resume(Path(folder), swept, effort.kills)
    blocks = swept.reference.plan.blocks
    victims = f"{tally.driver} of the driver, {tally.worker} of a worker"
    rows = (
        Row("kills", tally.kills, "", note=victims),
        Row("stops checked", tally.stops, "", note=f"{tally.done:,} blocks said to be done"),
        Row("stores finished", tally.stores, "", note=f"{blocks} blocks each"),
        Row("what was wrong", tally.wrong, "", goals=(at_most(tally.wrong, 0, ""),)),
    )
    return Report("kill", f"SIGKILL at random instants of a sweep by {WORKERS} workers", rows)


def uninterrupted(folder: Path, grid: Grid) -> Sweep:
    """Sweep once to compile, and once to see how long it takes."""
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(grid.definition()))
    for name in ("warm", "reference"):
        start = time.perf_counter()
        process = started(spec, folder / name)
        _check_ended(process, folder)
    return Sweep(spec, open_cube(str(folder / "reference")), time.perf_counter() - start)


def started(spec: Path, store: Path) -> "subprocess.Popen[bytes]":
    """The command, as a user gives it."""
    options = ("--workers", str(WORKERS), "--quiet")
    with (store.parent / SAID).open("wb") as said:
        return subprocess.Popen((*COMMAND, str(spec), str(store), *options), stderr=said)


def _check_ended(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    if process.wait():
        raise RuntimeError(f"a sweep failed by itself: {(folder / SAID).read_text()}")


def kill_and_resume(folder: Path, swept: Sweep, kills: int) -> Tally:
    """Sweep store after store, until so many kills were survived."""
    random, tally = np.random.default_rng(SEED), Tally()
    while tally.kills < kills:
        store = folder / f"{tally.stores}"
        while not finished(store):
            run_and_kill(store, swept, kills, random, tally)
        for name in differences(Path(swept.reference.url), store):
            print(f"{store.name}/{name} is not the reference's", file=sys.stderr)
            tally.wrong += 1
        tally.stores += 1
        shutil.rmtree(store)
    return tally


def run_and_kill(
    store: Path, swept: Sweep, kills: int, random: np.random.Generator, tally: Tally
) -> None:
    """One process: its workers are killed now and then, until it ends or is killed itself."""
    process, before = started(swept.spec, store), tally.kills
    while tally.kills < kills:
        try:
            process.wait(random.uniform(0, swept.seconds))
            break
        except subprocess.TimeoutExpired:
            workers = list(workers_of(process.pid))
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


def workers_of(driver: int) -> Iterator[int]:
    """Processes that compute blocks for this one."""
    listed = subprocess.run(
        ("ps", "-e", "-o", "pid=,ppid=,args="), capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        pid, parent, command = line.split(maxsplit=2)
        if int(parent) == driver and "spawn_main" in command:
            yield int(pid)


def check(store: Path, reference: Cube, tally: Tally) -> None:
    """Compare what is said to be done with the truth."""
    tally.stops += 1
    try:
        said, cube = read_status(str(store))["blocks_done"], open_cube(str(store))
    except InputError:  # it was killed before there was a cube
        return
    tally.done += said
    done = np.flatnonzero(cube.read_done()).tolist()
    wrong = [each for each in done if not same(cube, reference, each)]
    if wrong or said > len(done):
        print(f"{store.name}: {said} said, {len(done)} marked, wrong: {wrong}", file=sys.stderr)
    tally.wrong += max(0, said - len(done)) + len(wrong)


def same(cube: Cube, reference: Cube, block: int) -> bool:
    """True if all arrays of a block can be read, and are the other's."""
    return all(
        np.array_equal(read(cube, name, block), read(reference, name, block))
        for name in reference.list_arrays(block)
    )


def read(cube: Cube, name: str, block: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    """A block's part of an array, as bytes: NaN is then equal to NaN."""
    values = np.asarray(cube.arrays[name][cube.find_place(name, block)])
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def finished(store: Path) -> bool:
    """True if all is done."""
    try:
        return bool(read_status(str(store))["complete"])
    except InputError:
        return False


def differences(reference: Path, store: Path) -> Iterator[str]:
    """Files that one of the stores lacks, or that differ."""
    mine, theirs = files(store), files(reference)
    for name in sorted(mine | theirs):
        if name not in mine & theirs or contents(store / name) != contents(reference / name):
            yield name


def files(store: Path) -> set[str]:
    """All files, by their place in the store."""
    return {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()}


def contents(path: Path) -> object:
    """A file's bytes; of metadata all but attributes, such as the date."""
    if path.name != METADATA:
        return path.read_bytes()
    metadata = json.loads(path.read_text())
    return metadata | {"attributes": None}
