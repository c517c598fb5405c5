"""The file or folder that an export makes: whole, or not there at all."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from grids.reading.errors import InputError
from sweep.errors import RunError

PART = "cells.parquet"  # the file in each folder of a partitioned table


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds a partitioned table and nothing else."""
    if folder.is_symlink():
        return False
    return all(
        path.name == PART
        if path.is_file()
        else "=" in path.name and not path.is_symlink() and path.is_dir()
        for path in folder.rglob("*")
    )


def check_target(
    target: Path, *, force: bool, is_ours: Callable[[Path], bool] = is_partitioned
) -> None:
    """InputError: there is no such folder, or something stands there that would be lost.

    is_ours: whether a folder is nothing but what such a command made.
    """
    if not target.parent.is_dir():
        raise InputError("no such folder", where=str(target.parent), advice="make it first")
    if not os.path.lexists(target):
        return
    if not force:
        raise InputError(
            "is there already", where=str(target), advice="name another file, or give force=True"
        )
    if target.is_dir() and not is_ours(target):
        raise InputError(
            "a folder that holds more than an export; nothing was removed",
            where=str(target),
            advice="name another file",
        )


@contextmanager
def write_beside(
    *targets: Path, force: bool, is_ours: Callable[[Path], bool] = is_partitioned
) -> Iterator[Path]:
    """A folder beside the targets to write files of their names to, which then take their places.

    Whatever fails leaves the targets as they were. A kill leaves the folder, `.NAME.*.partial`,
    which the next call removes: the lock on it went with the process.
    """
    folder: Path | None = None
    lock: int | None = None
    try:
        for target in targets:
            check_target(target, force=force, is_ours=is_ours)
        first = targets[0]
        _remove_abandoned(first)
        # In the same folder, and so on the same disk: only there is renaming one step.
        folder, lock = _make_locked(first)
        yield folder
        for target in targets:
            # Once more: somebody may have made one meanwhile.
            check_target(target, force=force, is_ours=is_ours)
            if target.is_dir() and not target.is_symlink():
                # A rename replaces a folder only where it is empty.
                os.rename(target, folder / "before")
            os.replace(folder / target.name, target)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        raise RunError(f"{targets[0]}: {what}; nothing was written") from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _make_locked(target: Path) -> tuple[Path, int | None]:
    """A new folder beside a target, and its lock."""
    while True:
        folder = Path(mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        try:
            lock = _lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # another call took it for abandoned, before the lock, and removes it
        except OSError:
            folder.rmdir()
            raise
        if lock is None or folder.exists():
            return folder, lock
        os.close(lock)


def _remove_abandoned(target: Path) -> None:
    """Remove the folders that killed processes left beside a target; those in use stay."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.partial")
    for folder in target.parent.iterdir():
        if not name.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
            continue
        with suppress(OSError):  # of another user: not ours to remove
            lock = _lock(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _lock(folder: Path) -> int | None:
    """The descriptor of a folder that nobody else has locked; None where locks are unknown.

    The system drops the lock with the process, however it dies. OSError: it is locked.
    """
    if os.name != "posix":
        return None
    import fcntl  # late: POSIX alone has it

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def measure_bytes(target: Path) -> tuple[int, int]:
    """How many files an export has, and their bytes in all."""
    files = [path for path in target.rglob("*") if path.is_file()] if target.is_dir() else [target]
    return len(files), sum(file.stat().st_size for file in files)
