"""Done-marks of finished blocks, written several at a time.

Marks share files, so that one process writes them: the one that holds the store, as blocks are
reported to it. Data are written before.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sweep.cube.object_store import translate_write_errors
from sweep.cube.store import Cube

# Marks wait for so long to be written together: on an object store each file takes two requests,
# of tens of milliseconds. A process that is killed computes so much anew.
SECONDS = 0.2


@contextmanager
def collect_marks(cube: Cube) -> Iterator[Callable[[int], None]]:
    """A function that marks a block; all are written when the context ends, however it does."""
    waiting: list[int] = []
    written = -SECONDS

    def write_marks() -> None:
        nonlocal written
        with translate_write_errors(cube.url):
            cube.mark(waiting)
        waiting.clear()
        written = time.monotonic()

    def mark(block: int) -> None:
        waiting.append(block)
        if time.monotonic() >= written + SECONDS:
            write_marks()

    try:
        yield mark
    finally:
        write_marks()
