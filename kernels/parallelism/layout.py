"""Layout: the parallelisms that there are, and those that divide the network of a case."""

from collections.abc import Iterator
from functools import reduce
from operator import mul
from typing import Any

from kernels.arrays import Cells
from kernels.configuration.case import ORDER, Case
from kernels.namespace import xp
from kernels.parallelism.channel import Channel
from kernels.parallelism.filter import Filter
from kernels.parallelism.parallelism import Parallelism
from kernels.parallelism.pipeline import Pipeline
from kernels.parallelism.placed import OperatorPlacement
from kernels.parallelism.spatial import Halos, Spatial
from kernels.work.division import Division

PARALLELISMS: dict[str, Parallelism] = {
    parallelism.name: parallelism
    for parallelism in (Pipeline(), OperatorPlacement(), Spatial(), Filter(), Channel())
}


class Undivided(Parallelism):
    """The network whole on each PE: serial, and each replica of data parallelism.

    It sends nothing, as a spatial group of one PE, so that both share compiled programs: with
    those that filter and channel share, a sweep of all ten strategies takes 20 s of CPU at first
    instead of 27 to 30 (two cores, 2026-11).
    """

    name = "none"
    sends_as = "spatial"

    def reduce_sent(self, division: Division) -> Halos:
        """No halos."""
        return Spatial().reduce_sent(division)


UNDIVIDED = Undivided()


def find_parallelism(group: str) -> Parallelism:
    """The parallelism inside a group, by its strategy's name."""
    return PARALLELISMS.get(group, UNDIVIDED)


def list_parts(case: Case) -> Iterator[tuple[Parallelism, Any]]:
    """Each parallelism of a case, and what its PEs send."""
    sent = case.machine_work.sent
    yield from ((PARALLELISMS[name], sent[name]) for name in ORDER if name in sent)


def count_replicas(case: Case) -> Cells | None:
    """PEs of a group that hold the same weights; None where no two of them can."""
    degrees = [part.find_degree(case) for part, _ in list_parts(case) if part.replicates]
    return reduce(mul, degrees) if degrees else None


def is_segmented(case: Case) -> bool:
    """Whether samples may pass in segments."""
    return any(part.segmented for part, _ in list_parts(case))


def count_segments(case: Case) -> Cells:
    """S, in which several PEs of a group go backward; 1 where samples pass at once."""
    segments: Cells = 1.0
    for part, _ in list_parts(case):
        if part.segmented:
            segments = xp.where(xp.greater(part.find_degree(case), 1), case.run.segments, segments)
    return segments
