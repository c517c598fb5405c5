"""Devices that may be exchanged: permutations under which every message takes as long as before."""

from functools import cached_property
from itertools import permutations

import numpy as np

from grids.placing.problem import Placement, Problem

# Of so many devices at most, exchanges are listed one by one; of more, none but the trivial one.
MOST_LISTED = 8

Exchange = tuple[int, ...]  # what each device becomes


class Symmetry:
    """The exchanges of a problem's devices."""

    def __init__(self, problem: Problem) -> None:
        self.devices = problem.devices
        # A tensor of no bytes may hide a difference, and one of each size shows all of them.
        self._tables = np.unique(problem.delays, axis=0)
        apart = ~np.eye(self.devices, dtype=bool)
        self.uniform = all(len(np.unique(table[apart])) < 2 for table in self._tables)

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges, the trivial one first; where all devices are alike, none but it."""
        trivial = tuple(range(self.devices))
        if self.uniform or self.devices > MOST_LISTED:
            return (trivial,)
        return tuple(each for each in permutations(trivial) if self._keeps_times(each))

    def list_first(self) -> tuple[int, ...]:
        """One device of each class of those that are alike."""
        if self.uniform:
            return (0,)
        firsts = {min(each[device] for each in self.exchanges) for device in range(self.devices)}
        return tuple(sorted(firsts))

    def normalise(self, pair: tuple[int, int]) -> tuple[tuple[int, int], Exchange]:
        """The first pair of devices that is like this one, and the exchange from it to this one."""
        if self.uniform:
            first = (0, 0 if pair[0] == pair[1] else 1)
            return first, _exchange_uniform(first, pair, self.devices)
        return min(
            (((each[pair[0]], each[pair[1]]), _invert(each)) for each in self.exchanges),
        )

    def _keeps_times(self, exchange: Exchange) -> bool:
        index = np.ix_(exchange, exchange)
        return all(np.array_equal(table, table[index]) for table in self._tables)


def exchange_devices(placement: Placement, exchange: Exchange) -> Placement:
    """The placement with the devices exchanged."""
    return tuple(exchange[each] for each in placement)


def _invert(exchange: Exchange) -> Exchange:
    return tuple(sorted(range(len(exchange)), key=exchange.__getitem__))


def _exchange_uniform(first: tuple[int, int], pair: tuple[int, int], devices: int) -> Exchange:
    """An exchange that takes the first pair to the other one."""
    given = dict(zip(first, pair, strict=True))
    rest = iter([each for each in range(devices) if each not in given.values()])
    return tuple(given[each] if each in given else next(rest) for each in range(devices))
