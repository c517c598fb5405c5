"""Done-marks of finished blocks, written in batches.

Marks share files, so only the process that holds the store writes them, as blocks are reported to
it. The data of a block are written before its mark.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer

from paradl.sweep.cube.object_store import translate_failures
from paradl.sweep.cube.store import Cube
from paradl.sweep.errors import RunError

# Marks are collected for this long. On an object store a file takes two requests of tens of
# milliseconds; on the other hand, a kill loses blocks whose marks are not written yet.
SECONDS = 0.2


@contextmanager
def collect_marks(cube: Cube) -> Iterator[Callable[[int], None]]:
    """Yield a function that marks a block; all marks are written when the context ends, even by an
    error.

    OSError, RunError: writing failed, raised at the next mark or at the end.
    """
    waiting: list[int] = []
    failures: list[Exception] = []
    lock = Lock()

    def write_marks() -> None:
        # Locked during the write, so that a block reported meanwhile is not cleared unwritten.
        with lock, translate_failures(cube.url):
            cube.mark(waiting)
            # Cleared last: after a failure, they are tried again when the context ends.
            waiting.clear()

    def try_to_write() -> None:  # runs in a thread, whose exceptions would be lost
        try:
            write_marks()
        except (OSError, RunError) as error:
            failures.append(error)

    def mark(block: int) -> None:
        if failures:
            raise failures[0]
        with lock:
            waiting.append(block)
            # The first waiting block starts the timer for all.
            first = len(waiting) == 1
        if first:
            timer = Timer(SECONDS, try_to_write)
            # The process need not wait for it, since the last marks are written below.
            timer.daemon = True
            timer.start()

    try:
        yield mark
    finally:
        # Also after Ctrl-C or a failure: all reported blocks are in the store.
        try:
            write_marks()
        finally:
            # Lest a timer marks them yet: of a store that was moved, blocks may lack files.
            waiting.clear()
