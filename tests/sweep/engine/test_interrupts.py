import signal
from contextlib import contextmanager

import numpy as np
import pytest

from paradl.sweep.cube.plan import Plan
from paradl.sweep.engine.progress import hear_interrupts, silent

PLAN = Plan(("pe",), (4,), (1,), 13)


class Deaf:
    """Python prints, and forgets, what is raised while it is destroyed."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_was_dropped_is_raised_at_the_next_block():
    seen: list[int] = []

    @contextmanager
    def recorded(plan, done):
        yield seen.append

    with hear_interrupts(recorded) as progress, progress(PLAN, np.arange(0)) as advance:
        advance(0)
        deaf = Deaf()
        del deaf
        with pytest.raises(KeyboardInterrupt):
            advance(1)
    assert seen == [0, 1]


def test_what_is_heard_at_once_is_raised_at_once():
    with hear_interrupts(silent), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_process_that_ignores_interrupts_still_does():
    """As a shell's script starts its background jobs."""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with hear_interrupts(silent):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, usual)


def test_the_usual_handler_is_back():
    usual = signal.getsignal(signal.SIGINT)
    with hear_interrupts(silent):
        assert signal.getsignal(signal.SIGINT) != usual
    assert signal.getsignal(signal.SIGINT) == usual


def test_an_impatient_user_does_not_cut_the_end_short():
    ended = []

    def end() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:  # as blocks at work are finished
            signal.raise_signal(signal.SIGINT)
            ended.append(True)

    with hear_interrupts(silent), pytest.raises(KeyboardInterrupt):
        end()
    assert ended
