"""One run at a time on a local store."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from grids.errors import InputError


@contextmanager
def exclusive(url: str) -> Iterator[None]:
    """Hold the store's folder; InputError while another run holds it.

    The system drops the lock with the process, however it dies. Object stores have no such lock: two
    runs there do the same work twice, and each block is still written whole.
    """
    if "://" in url or os.name != "posix":
        yield
        return
    import fcntl

    folder = os.open(url, os.O_RDONLY)
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
        os.close(folder)
