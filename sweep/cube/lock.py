"""One run at a time on a local store."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grids.reading.errors import InputError
from sweep.cube.object_store import is_remote


@contextmanager
def hold_store(url: str) -> Iterator[None]:
    """Hold the store's folder, made if need be; InputError while another run holds it.

    The system drops the lock with the process, however it dies. Object stores have no such lock:
    two runs there do the same work twice, and each block is still written whole.
    """
    if is_remote(url) or os.name != "posix":
        yield
        return
    path = Path(url)
    # A mistyped path leaves no empty parent folders behind.
    made = [parent for parent in path.parents if not parent.exists()]
    folder = _lock_folder(path)
    try:
        yield
    finally:
        # Removed while still locked: a run that locked it in between would lose its folder.
        with suppress(OSError):  # rmdir refuses a folder that is not empty
            for empty in (path, *made):
                os.rmdir(empty)
        os.close(folder)


def _lock_folder(path: Path) -> int:
    """The descriptor of the folder at `path`, locked.

    It is not one that another run, ending, has just removed.
    """
    # Late: POSIX alone has it.
    import fcntl

    while True:
        folder = _open_folder(path)
        try:
            # A kernel lock, not a lock file, which would outlive a kill. No waiting: the other run
            # may take hours.
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(folder)
            raise InputError(
                "another run is writing to this store",
                where=str(path),
                advice="wait for it (paradl status shows its progress), or use another store",
            ) from None
        # Between opening and locking, the previous holder may have removed the folder: then this
        # lock is on a folder without a name, and keeps nobody out.
        if path.exists() and os.path.samestat(os.fstat(folder), path.stat()):
            return folder
        os.close(folder)


def _open_folder(path: Path) -> int:
    """The descriptor of the folder at `path`, made if need be."""
    while True:
        try:
            path.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # removed between the two: make it again
            continue
        except FileExistsError:
            raise InputError(
                "expected a folder, got a file; left untouched",
                where=str(path),
                advice="choose another path",
            ) from None
