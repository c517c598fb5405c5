"""Compiled programs on disk: the first run on a machine traces and compiles, others load.

JAX's own cache is keyed by the traced program, so that each run traces again: 5.4 instead of 3.0 s
of CPU for a sweep of eight axes, 10.7 instead of 4.3 with four slopes, 11.1 instead of 10.1 for
examples/paper.yaml on two workers, 4.5 instead of 3.9 for `best` of ResNet-50 on 1 to 1,024 PEs;
examples/hybrid.yaml gains nothing (2026-11, 2 cores, all programs on disk, the least of 6 runs of
each in turn). Nor do JAX's files have a digest, and a damaged one stays.
"""

import os
import pickle
import platform
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from jax.experimental.serialize_executable import deserialize_and_load, serialize

from paradl.kernels.cache_files import digest_sources, read_file, write_file

PACKAGE = Path(__file__).parent
# Where Linux tells which instructions a CPU has: XLA compiles for them.
CPU = Path("/proc/cpuinfo")
# [B] A program takes up to 2 MB. Those of an older paradl are never asked for again.
MOST_KEPT = 2**30

_folders: list[Path] = []


def keep_in(folder: Path | None) -> None:
    """Keep programs in a folder from now on; None: nowhere."""
    # Without sources, as in a zip file, programs of two versions could not be told apart.
    _folders[:] = [folder] if folder and PACKAGE.is_dir() else []


def find_folder() -> Path | None:
    """Return the folder where programs are kept, if any."""
    return _folders[0] if _folders else None


def load(name: str) -> Any:
    """Return the program of this name, or None where there is none that this process can run."""
    path = _find(name)
    content = None if path is None else read_file(path)
    if path is None or content is None:
        return None
    # A cache that others share may be read-only.
    with suppress(OSError):
        os.utime(path)
    try:
        return deserialize_and_load(*pickle.loads(content))
    # Whole, and yet this process may lack what it needs, such as memory.
    except Exception:
        return None


def save(name: str, program: Any) -> None:
    """Keep a program, unless there is no place for it."""
    path = _find(name)
    if path is None:
        return
    try:
        write_file(path, pickle.dumps(serialize(program)))
        _drop_oldest(path.parent)
    # A full disk, a device whose programs cannot be kept, a type that cannot be written: the answer
    # needs none of this.
    except Exception:
        return


def _drop_oldest(folder: Path) -> None:
    """Delete the programs that were used longest ago, down to `MOST_KEPT`."""
    facts = [(path.stat(), path) for path in folder.iterdir()]
    size = sum(fact.st_size for fact, _ in facts)
    for fact, path in sorted(facts, key=lambda pair: pair[0].st_mtime_ns):
        if size <= MOST_KEPT:
            return
        path.unlink(missing_ok=True)
        size -= fact.st_size


def _find(name: str) -> Path | None:
    """Return the file of a program. Whatever shapes programs is part of its name."""
    folder = find_folder()
    whole = f"{_identify_process()} {sorted(jax.config.values.items())} {name}"
    return folder and folder / sha256(whole.encode()).hexdigest()


@cache
def _identify_process() -> str:
    """Return what programs depend on besides their arguments: this code, XLA and the device."""
    device = jax.devices()[0]
    cpu = CPU.read_text().split("\n\n")[0].splitlines() if CPU.exists() else []
    # Its speed changes all the time.
    features = [line for line in cpu if not line.startswith(("cpu MHz", "bogomips"))]
    versions = jax.__version__, version("jaxlib"), device.client.platform_version
    machine = platform.machine(), device.device_kind, len(jax.devices()), features
    return f"{digest_sources([PACKAGE])} {versions} {machine} {os.environ.get('XLA_FLAGS')}"
