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
        with lock, translate_write_errors(cube.url):
            cube.mark(waiting)
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
            first = len(waiting) == 1
        if first:
            timer = Timer(SECONDS, try_to_write)
            timer.daemon = True
            timer.start()

    try:
        yield mark
    finally:
        write_marks()
