"""One run at a time on a local store."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grids.errors import InputError


@contextmanager
def exclusive(url: str) -> Iterator[None]:
    """Hold the store's folder, made if need be; InputError while another run holds it.

    The system drops the lock with the process, however it dies. Object stores have no such lock:
    two runs there do the same work twice, and each block is still written whole.
    """
    if "://" in url or os.name != "posix":
        yield
        return
    import fcntl

    folder = _opened(Path(url))
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "another run is at work on this store",
                where=url,
                advice="wait for it (paradl status shows how far it is), or use another store",
            ) from None
        yield
    finally:
        with suppress(OSError):  # a folder with nothing in it is no one's
            os.rmdir(url)
        os.close(folder)


def _opened(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(
            "a file, and no folder; left untouched",
            where=str(folder),
            advice="choose another place",
        ) from None
    return os.open(folder, os.O_RDONLY)
