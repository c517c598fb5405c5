"""Done-marks of finished blocks, written several at a time.

Marks share files, so that one process writes them: the one that holds the store, as blocks are
reported to it. Data are written before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer

from sweep.cube.object_store import translate_write_errors
from sweep.cube.store import Cube

# So long a mark waits for others, to be written with them: on an object store each file takes two
# requests, of tens of milliseconds. A process that is killed has computed so much for nothing.
SECONDS = 0.2


@contextmanager
def collect_marks(cube: Cube) -> Iterator[Callable[[int], None]]:
    """A function that marks a block; all are written when the context ends, however it does.

    What fails is raised at the next mark, or at the end.
    """
    waiting: list[int] = []
    failures: list[OSError] = []
    lock = Lock()

    def write_marks() -> None:
        # Locked while it writes: a block that is told meanwhile is not cleared unwritten.
        with lock, translate_write_errors(cube.url):
            cube.mark(waiting)
            # Only now: what could not be written is tried once more when the context ends.
            waiting.clear()

    def try_to_write() -> None:  # in a thread of its own, whose failures nobody would hear
        try:
            write_marks()
        except OSError as error:
            failures.append(error)

    def mark(block: int) -> None:
        if failures:
            raise failures[0]
        with lock:
            waiting.append(block)
            # One timer for all that wait: the first starts it.
            first = len(waiting) == 1
        if first:
            timer = Timer(SECONDS, try_to_write)
            # A driver that ends waits for no timer: the last marks are written below.
            timer.daemon = True
            timer.start()

    try:
        yield mark
    finally:
        # After Ctrl-C or a failure, too: what was told to be done is in the store.
        write_marks()
