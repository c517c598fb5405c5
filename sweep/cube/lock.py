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
    # Of a path with a slip in it, the folders above the store go, too.
    made = [parent for parent in path.parents if not parent.exists()]
    folder = _lock_folder(path)
    try:
        yield
    finally:
        # Removed before it is let go: a run that locked it in between would lose its folder. A
        # folder with anything in it stays: rmdir refuses it.
        with suppress(OSError):  # a folder with nothing in it is no one's
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
            # A lock of the kernel's, and no lock file: a file would outlive a kill. Nor does it
            # wait: the other run may take hours.
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(folder)
            raise InputError(
                "another run is at work on this store",
                where=str(path),
                advice="wait for it (paradl status shows how far it is), or use another store",
            ) from None
        # Same device and inode? Between opening and locking, the run that held it may have ended
        # and removed it: then this lock is on a folder without a name, and keeps nobody out.
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
                "a file, and no folder; left untouched",
                where=str(path),
                advice="choose another place",
            ) from None
