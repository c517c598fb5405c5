"""Ctrl-C, heard also where Python drops it.

What a signal's handler raises while a destructor or a callback runs is printed ("Exception ignored
in ...") and forgotten: the sweep would go on as if nobody had asked it to stop.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from sweep.cube.plan import Plan
from sweep.engine.progress import Advance, Progress


@contextmanager
def hear_interrupts(progress: Progress) -> Iterator[Progress]:
    """Progress that raises at the next block what was dropped."""
    interrupted = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    @contextmanager
    def listening(plan: Plan, done: int) -> Iterator[Advance]:
        def checked(block: int) -> None:
            # First the block is told: it is done, and its mark waits to be written.
            advance(block)
            if interrupted:
                raise KeyboardInterrupt

        with progress(plan, done) as advance:
            yield checked

    # Python lets only the main thread do so, in which the command line runs.
    usual = signal.signal(signal.SIGINT, handler)
    try:
        yield listening
    finally:
        signal.signal(signal.SIGINT, usual)
