"""Make expensive data once for all processes of a test run."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def copy_shared(
    temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """Return this process's copy of what `make` makes at a path; the first process makes it.

    A copy, since a sweep locks its store for other processes.
    """
    own = temporary.getbasetemp()
    # pytest-xdist gives each of its processes a folder inside the run's own.
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    shared, made = run / f"shared-{name}", run / f"shared-{name}.made"
    with (run / f"shared-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(shared)
            made.touch()
    path = temporary.mktemp(name) / name
    if shared.is_dir():
        shutil.copytree(shared, path)
    else:
        shutil.copy2(shared, path)
    return path
