"""Times to a target: the rate of blocks that know epochs, as a part of the rate without."""

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Block
from benchmarks.report import Report, compare_rates
from benchmarks.timing import interleaved
from grids.grid import Grid
from sweep.engine.run import read_grid

# A second objective in each summary, and one array more to write.
SUMMARISED, STORED = 0.65, 0.5


def measure(effort: Effort) -> Report:
    """The largest block of four strategies: both objectives summarised; the time stored, too."""
    rows = []
    for kind, make in (("three axes", spaces.wide), ("two axes", spaces.dense)):
        plain = make(effort.blocks[-1], oracle="machine")
        cells = int(np.prod(plain.shape[4:]))
        for position, name in enumerate(spaces.STRATEGIES):
            actions = {
                "plain": Block(plain, position),
                "summarised": Block(add_epochs(plain), position),
                "stored": Block(add_epochs(plain, "train_time"), position),
            }
            timings = interleaved(actions, effort.short_rounds)
            for how, goal in (("summarised", SUMMARISED), ("stored", STORED)):
                what, plainly = f"{name}, {kind}, {how}", timings["plain"]
                rows.append(compare_rates(what, cells, timings[how], plainly, "no epochs", goal))
    return Report("training", "times to a target, against none", tuple(rows))


def add_epochs(grid: Grid, *outputs: str) -> Grid:
    """The same space with the catalogue's epochs, and more outputs."""
    plain = grid.spec.model_dump(mode="json", exclude_unset=True)
    asked = [*grid.spec.outputs, *outputs]
    return read_grid({**plain, "convergence": "auto", "outputs": asked})
