"""Divide a step into micro-batches, and pose the problem of placing their overlapping steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grids.graphs.graph import MOST_OPERATORS, Graph
from grids.graphs.links import Links
from grids.placing.pipelined_steps import Piped, divide_graph, unroll_graph
from grids.placing.problem import pose_problem
from grids.reading.errors import InputError, shorten
from sweep.questions.place.timed_graph import TimedGraph

Sizes = int | Sequence[int]  # the number of micro-batches, or the samples of each
OPTION = "micro_batches"


@dataclass(frozen=True)
class SampleDivision:
    """Micro-batches of a step: fractions of its samples, and their numbers if known."""

    shares: tuple[float, ...]
    samples: tuple[int, ...] | None

    def __len__(self) -> int:
        return len(self.shares)


def divide_samples(requested: Sizes | None, batch: int | None) -> SampleDivision:
    """Divide a step of `batch` samples (None: unknown) into the requested micro-batches.

    InputError: no micro-batch, one without samples, a wrong sum, or a number that does not divide
    the batch.
    """
    if isinstance(requested, int) or requested is None:
        return _divide_equally(1 if requested is None else requested, batch)
    sizes = tuple(requested)
    if not sizes or min(sizes) < 1:
        raise InputError(
            f"expected at least one sample per micro-batch, got {shorten(list(sizes))}",
            where=OPTION,
        )
    if batch is None:
        raise InputError(
            "the graph does not say how many samples its step has",
            where=OPTION,
            advice=f"give their number, {len(sizes)}, or write a batch into the graph",
        )
    if sum(sizes) != batch:
        raise InputError(
            f"expected a sum of {batch:,}, the samples of the step, got {sum(sizes):,}",
            where=OPTION,
            advice="write the samples of each, such as 16,16; or their number alone",
        )
    return SampleDivision(tuple(size / batch for size in sizes), sizes)


def _divide_equally(count: int, batch: int | None) -> SampleDivision:
    """Divide a step into equal micro-batches."""
    if count < 1:
        raise InputError(f"expected at least 1, got {count}", where=OPTION)
    if batch is None:
        return SampleDivision((1 / count,) * count, None)
    if batch % count:
        sizes = [batch // count + (number < batch % count) for number in range(count)]
        raise InputError(
            f"{batch:,} samples are not divisible by {count:,} micro-batches",
            where=OPTION,
            advice=f"write the samples of each, {','.join(map(str, sizes))}"
            if 1 < count <= min(batch, 16)
            else "choose a number that divides them",
        )
    return SampleDivision((1 / count,) * count, (batch // count,) * count)


@dataclass(frozen=True)
class PosedStep:
    """A problem to solve, and the graph of all its micro-batches in sequence."""

    graph: Graph
    piped: Piped


def pose_piped(
    step: TimedGraph, division: SampleDivision, links: Links, ask: Callable[[int], TimedGraph]
) -> PosedStep:
    """Pose the problem of a step in micro-batches; ask: makes the graph for a number of samples.

    InputError: more operators than can be scheduled.
    """
    whole = pose_problem(step.graph, links, room=step.room, states=step.states)
    if len(division) == 1:
        return PosedStep(step.graph, Piped(whole, whole))
    if len(division) * len(step.graph) > MOST_OPERATORS:
        raise InputError(
            f"expected at most {MOST_OPERATORS:,} operators over all micro-batches, got "
            f"{len(division) * len(step.graph):,}",
            where=OPTION,
            advice="take fewer micro-batches",
        )
    graph = unroll_graph(_list_graphs(step, division, ask))
    return PosedStep(graph, Piped(whole, pose_problem(graph, links)))


def _list_graphs(
    step: TimedGraph, division: SampleDivision, ask: Callable[[int], TimedGraph]
) -> list[Graph]:
    """Return the graph of each micro-batch; those with equal samples share one."""
    if step.times == "oracle":
        assert division.samples is not None  # a model's step has a batch
        of_size = {size: ask(size).graph for size in {*division.samples}}
        return [of_size[size] for size in division.samples]
    # Measured times have no model of the batch: they are divided in proportion.
    of_share = {share: divide_graph(step.graph, share) for share in {*division.shares}}
    return [of_share[share] for share in division.shares]
