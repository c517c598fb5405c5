"""The graph to place, measured or with the oracle's times, whole or in micro-batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paradl.grids.entries.names import list_names
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.systems import System
from paradl.grids.graphs.graph import MOST_OPERATORS, Graph
from paradl.grids.graphs.graphfile import find_graph, list_graphs
from paradl.grids.graphs.links import Links
from paradl.grids.models.layers import LayerTable
from paradl.grids.placing.pipelined_steps import Piped, divide_graph, unroll_graph
from paradl.grids.placing.problem import pose_problem
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.options import Optimizer
from paradl.sweep.answers.numbers import number


@dataclass(frozen=True)
class TimedGraph:
    """A graph with times, and the memory of its devices.

    room [B]: usable memory of a device; states: bytes of states, including weights, per byte of
    weights; times: their source, "measured" or "oracle".
    """

    graph: Graph
    room: float
    states: float
    times: str


def choose_graph(
    what: str,
    system: System,
    reference: str,
    batch: int | None,
    dataset: str | None,
    optimizer: Optimizer,
) -> TimedGraph:
    """Find the graph of a name or file; for a model, with the oracle's times of its layers.

    InputError: neither a graph nor a model; a batch for a graph with its own, or a model without
    one.
    """
    graph = find_graph(what, Path())
    if graph is None:
        expect_graph(what)
        return _ask_oracle(what, reference, batch, dataset, optimizer)
    for key, value in (("batch", batch), ("dataset", dataset)):
        if value is not None:
            raise InputError(
                f"a measured graph has its own {key}, got {shorten(value)}",
                where=key,
                advice="leave it out, or name a model, whose times depend on it",
            )
    # Graphs do not state their precision; PipeDream's profiles are in fp32.
    precision = PRECISIONS["fp32"]
    prior = PARAMETERS["reserved"].prior
    assert prior is not None
    room = system.pe.memory_capacity - prior.median[system.precision]
    states = precision.count_state_bytes(optimizer) / precision.item
    return TimedGraph(graph, room, states, "measured")


def expect_graph(what: str) -> None:
    """Raise InputError for a name that is neither a graph nor a model."""
    known = (*list_graphs(), *list_names("model"))
    if Path(what).suffix or "/" in what or what in known:
        return
    raise InputError.unknown("model or graph", what, known)


def _ask_oracle(
    model: str, system: str, batch: int | None, dataset: str | None, optimizer: Optimizer
) -> TimedGraph:
    """Return the graph of a model's layers, with the oracle's times for one batch on one device."""
    from paradl.grids.inputs.find_placed import graph_layers  # late: imports JAX
    from paradl.sweep.cells.design_space import ONLY, Configuration
    from paradl.sweep.engine.resources import keep_programs

    if batch is None:
        raise InputError("expected the samples of a step", where="batch", advice="such as 32")
    keep_programs()
    settings = {"optimizer": optimizer}
    grid = Configuration(
        model, "data", 1, batch, system=system, dataset=dataset, settings=settings
    ).grid()
    groups = grid.groups(ONLY)
    if groups is None:
        raise InputError(grid.misfit(0, 0) or "the samples do not fit the model")
    item = number(groups.delta)
    graph = graph_layers(grid.labels["model"][0], groups, batch, item)
    room = number(groups.pe.memory_capacity) - number(groups.pe.reserved)
    states, alone = number(groups.state_bytes), number(groups.weight_bytes)
    if groups.table.sparse:
        graph = _hold_touched_rows(graph, groups.table, batch * item, (states, alone))
    return TimedGraph(graph, room, states / item, "oracle")


def _hold_touched_rows(
    graph: Graph, table: LayerTable, sample: float, bytes_held: tuple[float, float]
) -> Graph:
    """Count fewer weights of sparse tables, whose states have the bytes of the touched rows.

    sample: bytes of one item in all samples. bytes_held: of a weight with states, and alone.
    """
    states, alone = bytes_held
    item = sample / (graph.batch or 1)
    # Gradients and states of a sparse table exist for the rows that samples look up.
    whole = item * (table.w + table.bias)
    touched = np.minimum(whole, item * table.drawn + sample * table.looked_up)
    counted = (alone * whole + (states - alone) * touched) / states
    operators = (
        replace(operator, weights=float(counted[n])) if table.looked_up[n] else operator
        for n, operator in enumerate(graph.operators)
    )
    return replace(graph, operators=tuple(operators))


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
            f"a batch of {batch:,} is not divisible by {count:,} micro-batches",
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
