"""Elasticities among a sweep's outputs: what part of the rate is left with them."""

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Block
from benchmarks.report import Report, compare_rates
from benchmarks.timing import interleaved
from grids.grid import Grid
from kernels.names.stored import name_elasticity
from sweep.engine.run import read_grid

# Of an epoch's time: a link, the layers, and what all terms depend on.
PARAMETERS = ("inter_bandwidth", "peak_flops", "batch")
ONE, ALL = 0.4, 0.2


def measure(effort: Effort) -> Report:
    """Three axes, both oracles, two strategies: one elasticity, and three."""
    rows = []
    for oracle in spaces.ORACLES:
        plain = spaces.wide(effort.blocks[-1], oracle=oracle)
        cells = int(np.prod(plain.shape[4:]))
        for position, name in enumerate(spaces.STRATEGIES[:2]):
            actions = {
                "plain": Block(plain, position),
                "one": Block(add_elasticities(plain, PARAMETERS[:1]), position),
                "three": Block(add_elasticities(plain, PARAMETERS), position),
            }
            timings = interleaved(actions, effort.short_rounds)
            for how, goal in (("one", ONE), ("three", ALL)):
                what = f"{name}, {oracle}, {how}"
                rows.append(
                    compare_rates(what, cells, timings[how], timings["plain"], "none", goal)
                )
    return Report("elasticities", "of an epoch's time, as outputs, against none", tuple(rows))


def add_elasticities(grid: Grid, parameters: tuple[str, ...]) -> Grid:
    """The same space with elasticities of an epoch's time."""
    plain = grid.spec.model_dump(mode="json", exclude_unset=True)
    asked = (name_elasticity("epoch_time", name) for name in parameters)
    return read_grid({**plain, "outputs": [*grid.spec.outputs, *asked]})
