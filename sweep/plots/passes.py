"""When each stage of a pipeline runs its passes, by the rules of its schedule.

A stage begins with the forward passes that its schedule keeps (`kernels.work.schedules`), then
runs forward and backward passes in turn (Narayanan et al. 2021, SC21, section 2.2). Zero-bubble
schedules split off the gradients of weights, which run where the stage would wait, or where it
would otherwise keep more micro-batches than the schedule says (Qi et al. 2023).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import NamedTuple

from paradl.kernels.work.schedules import SCHEDULES

FORWARD, BACKWARD, WEIGHTS = "forward", "backward", "weight gradients"
REST = "exchanges, optimizer, waiting"  # of an iteration, after its passes
Key = tuple[str, int, int]  # kind of pass, part of the network, micro-batch


class Pass(NamedTuple):
    """A pass of a micro-batch through one chunk of a stage [s]."""

    stage: int
    kind: str
    chunk: int
    micro_batch: int
    start: float
    end: float


@dataclass(frozen=True)
class PipelineRun:
    """A pipeline: its schedule, stages, micro-batches, and chunks of a stage.

    follow: micro-batches that follow each other in a chunk. forward, backward: seconds of a
    micro-batch's passes through a whole stage.
    """

    schedule: str
    stages: int
    micro_batches: int
    forward: float
    backward: float
    chunks: int = 1
    follow: int = 0

    @property
    def splits(self) -> bool:
        """Whether gradients of weights are passes of their own."""
        return self.chunks == 1 and SCHEDULES[self.schedule].bubble < 1

    def count_kept(self, stage: int, schedule: str) -> int:
        """Count the passes of chunks that a stage keeps at most, of a schedule."""
        p, m, v, n = self.stages, self.micro_batches, self.chunks, self.follow or 1
        kept: float = min(SCHEDULES[schedule].in_flight(p, stage, m, v, n))
        return round(kept * v)

    def list_order(self, stage: int) -> list[Key]:
        """List the forward and backward passes of a stage in their order."""
        p, m, follow = self.stages, self.micro_batches, self.follow or self.micro_batches
        parts = range(stage, p * self.chunks, p)
        both = [
            [
                (kind, part, number)
                for start in range(0, m, follow)
                for part in sequence
                for number in range(start, min(start + follow, m))
            ]
            for kind, sequence in ((FORWARD, parts), (BACKWARD, parts[::-1]))
        ]
        # A zero-bubble schedule has 1F1B's order, and moves gradients of weights alone.
        name = "interleaved" if self.chunks > 1 else "1f1b" if self.splits else self.schedule
        first = self.count_kept(stage, name) - 1
        forward, backward = both
        # Forward and backward passes in turn until no forward pass is left: the last backward ones
        # follow alone.
        turns = zip(forward[first:], backward, strict=False)
        return [*forward[:first], *chain(*turns), *backward[len(backward) - first :]]

    def measure(self, kind: str) -> float:
        """Return the seconds of a pass through one chunk."""
        # Gradients of inputs and of weights take the same number of operations: half each.
        seconds = self.forward if kind == FORWARD else self.backward / (1 + self.splits)
        return seconds / self.chunks


def list_passes(pipeline: PipelineRun) -> Iterator[Pass]:
    """Yield the passes of an iteration, in the order in which they start."""
    orders = [pipeline.list_order(stage) for stage in range(pipeline.stages)]
    weights: list[list[Key]] = [[] for _ in orders]
    free, ends = [0.0 for _ in orders], dict[Key, float]()
    room = [pipeline.count_kept(stage, pipeline.schedule) for stage in range(pipeline.stages)]
    last = pipeline.stages * pipeline.chunks - 1

    def find_ready(kind: str, part: int, number: int) -> float:
        """Find when what a pass needs is there; inf: not yet known."""
        if kind == FORWARD:
            return ends.get((kind, part - 1, number), inf) if part else 0.0
        if kind == WEIGHTS or part == last:
            return ends.get((FORWARD if kind == BACKWARD else BACKWARD, part, number), inf)
        return ends.get((kind, part + 1, number), inf)

    while any(chain(orders, weights)):
        # The gradients of weights only where they start earlier than the next pass.
        start, _, stage, queue = min(
            (max(free[stage], find_ready(*queue[0])), rank, stage, queue)
            for rank, queues in enumerate((orders, weights))
            for stage, queue in enumerate(queues)
            if queue and not (pipeline.splits and queue[0][0] == FORWARD and not room[stage])
        )
        kind, part, number = queue.pop(0)
        ends[kind, part, number] = free[stage] = end = start + pipeline.measure(kind)
        room[stage] += (kind == WEIGHTS) - (kind == FORWARD)
        if pipeline.splits and kind == BACKWARD:
            weights[stage].append((WEIGHTS, part, number))
        yield Pass(stage, kind, part // pipeline.stages, number, start, end)
