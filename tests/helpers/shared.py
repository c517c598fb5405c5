"""What takes seconds to make, made once for all processes of a run of tests."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def copy_shared(
    temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """A copy of this process' own of what `make` makes at a path: the first that asks makes it.

    A copy, since whoever sweeps into a store holds it, and others then are refused.
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
