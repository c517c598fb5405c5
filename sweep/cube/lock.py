"""A lock on a local store's folder, so that only one run writes to it at a time."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.object_store import expect_parent, is_remote
from paradl.sweep.errors import RunError

# Errors that say that no folder can have such a path, whoever asks.
NO_PLACE = (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
# Times that another process may remove the folder just as it was made.
TRIES = 100


@contextmanager
def hold_store(url: str) -> Iterator[None]:
    """Lock the store's folder, creating it if needed.

    InputError: another run holds it, or the folder that it would stand in is not there. RunError:
    the folder was moved or deleted meanwhile, which explains any other failure. Object stores have
    no such lock: two runs do the same work twice there, but still write every block whole.
    """
    if is_remote(url) or os.name != "posix":
        yield
        return
    path = Path(url)
    expect_parent(url)
    try:
        folder = lock_folder(path)
    except BlockingIOError:
        raise InputError(
            "another run is writing to this store",
            where=url,
            advice="wait for it (paradl status shows its progress), or use another store",
        ) from None
    except OSError as error:
        if error.errno not in NO_PLACE:
            raise
        raise InputError(
            f"no folder can be made here ({error.strerror}); left untouched",
            where=url,
            advice="choose another path",
        ) from None
    with ExitStack() as stack:
        stack.callback(os.close, folder)
        stack.callback(_leave, path, folder)
        yield


def _leave(path: Path, folder: int) -> None:
    """Remove a locked folder that is still empty. RunError: it is no longer at its path."""
    if not path.exists() or not os.path.samestat(os.fstat(folder), path.stat()):
        raise RunError(
            f"{path}: the store was moved or deleted during this run; delete what was written "
            "since; to keep finished blocks, move it back; then rerun the same command"
        )
    # Removed while still locked, lest another run locks the folder and then loses it.
    with suppress(OSError):  # rmdir refuses a folder that is not empty
        os.rmdir(path)


def lock_folder(path: Path) -> int:
    """Lock the folder at `path`, creating it if needed, and return its descriptor.

    The system releases the lock when the process ends, however it dies. BlockingIOError: another
    process has locked it. FileExistsError: it is a file. FileNotFoundError: it cannot be created,
    as where the working directory is gone.
    """
    import fcntl  # late: only POSIX has it

    for _ in range(TRIES):
        # Another process may remove the folder at any step as it ends; then it is created again.
        with suppress(FileNotFoundError):
            path.mkdir(parents=True, exist_ok=True)
            folder = os.open(path, os.O_RDONLY)
            try:
                # A kernel lock, since a lock file would survive a kill; the other may take hours.
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # If it was removed between opening and locking, the lock keeps nobody out.
                if os.path.samestat(os.fstat(folder), path.stat()):
                    return folder
            except OSError:
                os.close(folder)
                raise
            os.close(folder)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
