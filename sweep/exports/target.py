"""The file or folder that an export makes: whole, or not there at all."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grids.reading.errors import InputError
from sweep.cube.lock import lock_folder
from sweep.errors import RunError

PART = "cells.parquet"  # the file in each folder of a partitioned table


def is_partitioned(folder: Path) -> bool:
    """True if a folder holds a partitioned table and nothing else."""
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
    """InputError: the folder around the target is missing, or data there would be lost.

    is_ours: whether a folder holds nothing but what the command made.
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
    """Yield a folder beside the targets; files of their names in it then take the targets' places.

    A failure leaves the targets as they were. A killed process leaves the folder `.NAME.partial`,
    which the next call takes over: the lock on it went with the process.
    """
    for target in targets:
        check_target(target, force=force, is_ours=is_ours)
    # In the same folder, and so on the same disk: only there is renaming one step.
    folder = targets[0].with_name(f".{targets[0].name}.partial")
    try:
        with _lock_folder(folder):
            yield folder
            for target in targets:
                # Again: somebody may have made one meanwhile.
                check_target(target, force=force, is_ours=is_ours)
                if target.is_dir() and not target.is_symlink():
                    # A rename replaces a folder only where it is empty.
                    os.rename(target, folder / "before")
                os.replace(folder / target.name, target)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        raise RunError(f"{targets[0]}: {what}; nothing was written") from error


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Make an empty folder that is ours until it is removed at the end."""
    lock = None
    if os.name == "posix":
        try:
            lock = lock_folder(folder)
        except BlockingIOError as error:
            raise RunError(f"{folder}: another process is writing there") from error
    else:
        folder.mkdir(exist_ok=True)
    try:
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def measure_bytes(target: Path) -> tuple[int, int]:
    """The number of files of an export, and their bytes together."""
    files = [path for path in target.rglob("*") if path.is_file()] if target.is_dir() else [target]
    return len(files), sum(file.stat().st_size for file in files)
