"""One run at a time on a local store, by a lock on its folder."""

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
    try:
        folder = lock_folder(path)
    except BlockingIOError:
        raise InputError(
            "another run is writing to this store",
            where=url,
            advice="wait for it (paradl status shows its progress), or use another store",
        ) from None
    except FileExistsError:
        raise InputError(
            "expected a folder, got a file; left untouched",
            where=url,
            advice="choose another path",
        ) from None
    try:
        yield
    finally:
        # Removed while still locked: a run that locked it in between would lose its folder.
        with suppress(OSError):  # rmdir refuses a folder that is not empty
            for empty in (path, *made):
                os.rmdir(empty)
        os.close(folder)


def lock_folder(path: Path) -> int:
    """The descriptor of the folder at `path`, made if need be, and locked; the system drops the
    lock with the process, however it dies.

    BlockingIOError: another process has locked it. FileExistsError: a file is there.
    """
    import fcntl  # late: POSIX alone has it

    while True:
        # Another process, ending, may remove its folder at any step: then it is made again.
        with suppress(FileNotFoundError):
            path.mkdir(parents=True, exist_ok=True)
            folder = os.open(path, os.O_RDONLY)
            try:
                # A kernel lock, not a lock file, which would outlive a kill. No waiting: the other
                # run may take hours.
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Removed between opening and locking, this would be a folder without a name, whose
                # lock keeps nobody out.
                if os.path.samestat(os.fstat(folder), path.stat()):
                    return folder
            except OSError:
                os.close(folder)
                raise
            os.close(folder)
