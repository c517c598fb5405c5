"""Progress on stderr, and the time left: on a terminal a bar, in a pipe a line every 10 seconds."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from paradl.grids.reading.errors import format_count

if TYPE_CHECKING:  # numpy comes with it, which waiting needs none of
    import numpy as np
    from numpy.typing import NDArray

    from paradl.sweep.cube.plan import Plan

    Blocks = NDArray[np.intp]  # their numbers

# [s] Blocks of a model and a data set that do not fit take less.
SKIPPED = 1e-3
# Seconds per cell, and cells, of a block.
Rates = Sequence[tuple[float, int]]


class Remaining:
    """The time left, by how long the blocks of each strategy took. done: blocks of an earlier run.

    In four recorded sweeps with nothing compiled before (tests/sweep/engine/test_remaining.py) it
    is first stated after a fifth to a half of the blocks, as 0.4 to 4 times what was left. The mean
    of all blocks but the first said 2 to 158 times.
    """

    def __init__(
        self, plan: "Plan", done: "Blocks", clock: Callable[[], float] = time.monotonic
    ) -> None:
        import numpy as np  # late: see above

        self._plan, self._done, self._clock = plan, len(done), clock
        self._ends: list[float] = []
        self._axis = plan.dims.index("strategy")
        size, width = plan.shape[self._axis], plan.shard[self._axis]
        positions = np.unravel_index(done, plan.grid)[self._axis]
        taken = np.bincount(positions, plan.count_cells(done), plan.grid[self._axis])
        # Cells left and rates of blocks, by a block's position along the strategies.
        self._left = [
            plan.cells // size * min(width, size - first) - int(cells)
            for first, cells in zip(range(0, size, width), taken, strict=True)
        ]
        self._rates: list[list[tuple[float, int]]] = [[] for _ in self._left]

    @property
    def finished(self) -> int:
        """Number of blocks, with those of an earlier run."""
        return self._done + len(self._ends)

    def advance(self, block: int) -> None:
        """Note the end of a block."""
        self._ends.append(self._clock())
        at, cells = self._plan.find_position(block)[self._axis], int(self._plan.count_cells(block))
        self._left[at] -= cells
        # The first block ends after everything has started. Two blocks at work end at about the
        # same time: the sum of such differences is right.
        if len(self._ends) > 1 and (taken := self._ends[-1] - self._ends[-2]) >= SKIPPED:
            self._rates[at].append((taken / cells, cells))

    def estimate(self) -> float | None:
        """Return the seconds left; None until two blocks of some strategies have been timed, and
        where a block takes longer than all that were left should have.
        """
        known = [[*some] for some in self._rates]  # a copy: blocks end in another thread
        # The longest waits for programs to compile.
        timed = {at: sorted(some)[:-1] for at, some in enumerate(known) if len(some) > 1}
        if not timed:
            return None
        rates = {at: _find_mean(some) for at, some in timed.items()}
        others = _find_mean([rate for some in timed.values() for rate in some])
        seconds = sum(rates.get(at, others) * cells for at, cells in enumerate(self._left))
        if seconds == 0:
            return 0.0
        fitting = sum(map(len, known)) / (len(self._ends) - 1)
        left = fitting * seconds - (self._clock() - self._ends[-1])
        return left if left > 0 else None


def _find_mean(rates: Rates) -> float:
    return sum(rate * cells for rate, cells in rates) / sum(cells for _, cells in rates)


Advance = Callable[[int], None]
# done: blocks of an earlier run.
Progress = Callable[["Plan", "Blocks"], AbstractContextManager[Advance]]
Tell = Callable[[str], None]


@contextmanager
def silent(plan: "Plan", done: "Blocks") -> Iterator[Advance]:
    """Show no progress."""
    yield lambda block: None


# Seconds until work is called long on a terminal, and between two lines.
PATIENCE, PERIOD = 3.0, 10.0


@contextmanager
def repeat_lines(describe: Callable[[float], str], first: float, period: float) -> Iterator[None]:
    """Print a line, by the seconds passed, to stderr after `first` seconds, then every `period`."""
    done, start = Event(), time.monotonic()

    def run() -> None:
        wait = first
        while not done.wait(wait):
            print(describe(time.monotonic() - start), file=sys.stderr, flush=True)
            wait = period

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def report_waiting(silent: bool = False) -> Iterator[None]:
    """Say that an answer takes long: after three seconds on a terminal, in a pipe after ten."""
    if silent:
        yield
        return
    first = PATIENCE if sys.stderr.isatty() else PERIOD
    with repeat_lines(lambda passed: f"paradl: computing for {passed:.0f} s", first, PERIOD):
        yield


@contextmanager
def report_state(begin: str, silent: bool = False) -> Iterator[Tell]:
    """Yield a function that takes the state of the work: a terminal shows it at once, in one line
    that changes; a pipe gets a line with the last one every ten seconds.
    """
    state, shown = begin, 0

    def tell(text: str) -> None:
        nonlocal state, shown
        if sys.stderr.isatty() and not silent:
            shown = max(shown, len(text))
            print(f"\r{text:<{shown}}", end="", file=sys.stderr, flush=True)
        state = text

    if silent or sys.stderr.isatty():
        yield tell
        if shown:
            print(file=sys.stderr)
        return
    with repeat_lines(lambda passed: f"paradl: {state} ({passed:.0f} s)", PERIOD, PERIOD):
        yield tell


@contextmanager
def lines(plan: "Plan", done: "Blocks", what: str = "sweep") -> Iterator[Advance]:
    """Print a line every ten seconds: finished blocks, and the time left once some are timed."""
    remaining = Remaining(plan, done)

    def describe(passed: float) -> str:
        left = remaining.estimate()
        rest = "" if left is None else f", about {left:.0f} s left"
        count = f"{remaining.finished:,} of {format_count(plan.blocks, 'block')}"
        return f"paradl: {what}: {count} in {passed:.0f} s{rest}"

    with repeat_lines(describe, PERIOD, PERIOD):
        yield remaining.advance


@contextmanager
def bar(plan: "Plan", done: "Blocks", what: str = "sweep") -> Iterator[Advance]:
    """Show a bar that counts cells, beginning with those of an earlier run."""
    # Late: without a terminal there is no bar.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
    )

    remaining = Remaining(plan, done)
    columns = (
        TextColumn(what),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", style="progress.remaining"),
    )
    # A notebook shows the bar of a terminal; rich's own there needs ipywidgets.
    console = Console(stderr=True, force_terminal=_is_notebook() or None, force_jupyter=False)
    with Progress(*columns, console=console) as shown:
        before = int(plan.count_cells(done).sum())
        task = shown.add_task("cells", total=plan.cells, completed=before, left="")

        def advance(block: int) -> None:
            remaining.advance(block)
            left = remaining.estimate()
            text = f"about {left:,.0f} s left" if left else ""
            shown.update(task, advance=int(plan.count_cells(block)), left=text)

        yield advance


def follow(plan: "Plan", done: "Blocks", what: str = "sweep") -> AbstractContextManager[Advance]:
    """Show a bar where somebody sees it move, in a terminal or a notebook; else lines."""
    shown = bar if sys.stderr.isatty() or _is_notebook() else lines
    return shown(plan, done, what)


def _is_notebook() -> bool:
    ask = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return hasattr(ask(), "kernel")
