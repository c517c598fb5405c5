"""Winners: the fastest strategy of each model, data set, system and PE count, part after part."""

from itertools import groupby, product
from operator import itemgetter
from typing import Any

import numpy as np

from grids.grid import LABELS
from sweep.cube.variables import Arrays
from sweep.questions.parts import Part, find_positions

PLACE = (*LABELS[:3], "pe")


class Winners:
    """The least time of an epoch [model, dataset, system, pe], and whose it is; -1: nobody's.

    axes: values along all dimensions of the cells that are compared.
    """

    def __init__(self, axes: Arrays) -> None:
        self.axes = axes
        shape = tuple(len(axes[dim]) for dim in PLACE)
        self.times, self.strategies = np.full(shape, np.inf), np.full(shape, -1)

    def add(self, part: Part) -> None:
        """Take the feasible cells of a part into account."""
        times = np.where(part.feasible & ~np.isnan(part.epoch_time), part.epoch_time, np.inf)
        dims = list(part.coordinates)
        rest = tuple(at for at, dim in enumerate(dims) if dim not in (*PLACE, "strategy"))
        least = times.min(axis=rest)  # [model, dataset, system, strategy, pe]: the cube's order
        at = {dim: find_positions(self.axes[dim], part.coordinates[dim]) for dim in dims}
        place = np.ix_(*(at[dim] for dim in PLACE))
        for row, strategy in enumerate(at["strategy"]):
            mine = least[:, :, :, row]
            wins = mine < self.times[place]
            self.times[place] = np.where(wins, mine, self.times[place])
            self.strategies[place] = np.where(wins, strategy, self.strategies[place])


def list_changed_winners(first: Winners, second: Winners) -> list[dict[str, Any]]:
    """A row for each run of PE counts over which another strategy wins."""
    axes = first.axes
    rows: list[dict[str, Any]] = []
    for place in product(*(range(len(axes[dim])) for dim in PLACE[:3])):
        labels = {dim: str(axes[dim][at]) for dim, at in zip(PLACE, place, strict=False)}
        pairs = zip(
            first.strategies[place].tolist(), second.strategies[place].tolist(), strict=True
        )
        runs = groupby(zip(axes["pe"].tolist(), pairs, strict=True), key=itemgetter(1))
        for (ours, theirs), run in runs:
            if ours != theirs:
                counts = [pe for pe, _ in run]
                winners = {"first": _name(axes, ours), "second": _name(axes, theirs)}
                rows.append({**labels, "from_pe": counts[0], "to_pe": counts[-1], **winners})
    return rows


def _name(axes: Arrays, strategy: int) -> str | None:
    return None if strategy < 0 else str(axes["strategy"][strategy])
