"""Progress of a run: a bar with cells/s and time left on a terminal's stderr."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from sweep.cube.plan import Plan

Advance = Callable[[int], None]
Progress = Callable[[Plan, int], AbstractContextManager[Advance]]


@contextmanager
def silent(plan: Plan, done: int) -> Iterator[Advance]:
    """No progress shown."""
    yield lambda block: None


@contextmanager
def bar(plan: Plan, done: int, what: str = "sweep") -> Iterator[Advance]:
    """A bar that counts cells, from those that an earlier run left."""
    # Late: without a terminal there is no bar.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Speed(TextColumn):
        def __init__(self) -> None:
            super().__init__("")

        def render(self, task: Task) -> Text:
            speed = 0.0 if task.speed is None else task.speed
            return Text(f"{speed / 1e6:,.1f} M cells/s", style="progress.data.speed")

    columns = (
        TextColumn(what),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        Speed(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as shown:
        # Of blocks that are done only the number is known here; those at the ends of axes are
        # smaller.
        mean = plan.cells / plan.blocks
        task = shown.add_task("cells", total=plan.cells, completed=round(done * mean))
        yield lambda block: shown.update(task, advance=cells(plan, block))


def cells(plan: Plan, block: int) -> int:
    """Cells of one block."""
    return int(np.prod([part.stop - part.start for part in plan.find_region(block)]))
