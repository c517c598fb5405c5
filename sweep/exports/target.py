"""The file or folder that an export writes: complete, or not there at all."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.lock import lock_folder
from paradl.sweep.errors import RunError, explain_failure

PART = "cells.parquet"  # the file in each folder of a partitioned table


def is_partitioned(folder: Path) -> bool:
    """Return whether a folder holds a partitioned table and nothing else."""
    return not folder.is_symlink() and all(
        path.name == PART if path.is_file() else "=" in path.name and not path.is_symlink()
        for path in folder.rglob("*")
    )


def check_target(
    target: Path, *, force: bool, is_ours: Callable[[Path], bool] = is_partitioned
) -> None:
    """Raise InputError if the target cannot be written; is_ours: whether a folder may be lost."""
    if not target.parent.is_dir():
        raise InputError("no such folder", where=str(target.parent), advice="make it first")
    if not os.path.lexists(target):
        return
    if not force:
        raise InputError(
            "already exists", where=str(target), advice="name another file, or give force=True"
        )
    if target.is_dir() and not is_ours(target):
        raise InputError(
            "this folder holds more than an export; nothing was removed",
            where=str(target),
            advice="name another file",
        )


@contextmanager
def write_beside(
    target: Path, *, force: bool, is_ours: Callable[[Path], bool] = is_partitioned
) -> Iterator[Path]:
    """Yield a folder for writing what has the target's name, and then replaces the target.

    A failure leaves the target as it was. A killed process leaves the folder `.NAME.partial`
    behind, which the next call takes over, since the lock ended with the process.
    """
    # Before the work, and again before anything is replaced.
    check_target(target, force=force, is_ours=is_ours)
    # Beside the target and so on the same disk, where renaming is a single step.
    folder = target.with_name(f".{target.name}.partial")
    try:
        folder.mkdir(exist_ok=True)
        with ExitStack() as stack:
            if os.name == "posix":  # other systems cannot lock a folder
                stack.callback(os.close, lock_folder(folder))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            for left in folder.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield folder
            # Again, since another process may have written a target meanwhile.
            check_target(target, force=force, is_ours=is_ours)
            if target.is_dir() and not target.is_symlink():
                # Renaming replaces a folder only if it is empty.
                os.rename(target, folder / "before")
            os.replace(folder / target.name, target)
    except BlockingIOError as error:
        raise RunError(f"{folder}: another process is writing there") from error
    except OSError as error:
        raise RunError(f"{target}: {explain_failure(error)}; nothing was written") from error


def measure_bytes(target: Path) -> tuple[int, int]:
    """Return the number of an export's files, and their bytes in total."""
    files = [path for path in target.rglob("*") if path.is_file()] if target.is_dir() else [target]
    return len(files), sum(file.stat().st_size for file in files)
