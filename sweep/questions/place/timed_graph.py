"""The graph to place, measured or with the oracle's times, whole or in micro-batches."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

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
    times: Literal["oracle", "measured"]


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
    from paradl.grids.design_space import ONLY, Configuration
    from paradl.grids.inputs.find_placed import graph_layers  # late: imports JAX
    from paradl.sweep.engine.resources import keep_programs

    if batch is None:
        raise InputError("expected the samples of a step", where="batch", advice="such as 32")
    keep_programs()
    settings = {"optimizer": optimizer}
    grid = Configuration(
        model, "data", 1, batch, system=system, dataset=dataset, settings=settings
    ).grid()
    if grid.models[0].tuning or grid.datasets[0].packed:
        raise InputError("frozen weights and packed documents are not placed", where="model")
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


def pose_piped(
    step: TimedGraph, count: int, links: Links, ask: Callable[[int | None], TimedGraph]
) -> tuple[Graph, Piped]:
    """Pose the problem of a step in micro-batches; return the graph of all in sequence, too.

    ask: makes the graph for a number of samples. InputError: a number that does not divide the
    batch, more operators than can be scheduled.
    """
    batch, where = step.graph.batch, "micro_batches"
    if count < 1:
        raise InputError(f"expected at least 1, got {count}", where=where)
    if batch is not None and batch % count:
        what = f"a batch of {batch:,} is not divisible by {count:,} micro-batches"
        raise InputError(what, where=where, advice="choose a number that divides it")
    whole = pose_problem(step.graph, links, room=step.room, states=step.states)
    if count == 1:
        return step.graph, Piped(whole, whole)
    if count * len(step.graph) > MOST_OPERATORS:
        raise InputError(
            f"expected at most {MOST_OPERATORS:,} operators over all micro-batches, got "
            f"{count * len(step.graph):,}",
            where=where,
            advice="take fewer micro-batches",
        )
    # Measured times have no model of the batch: they are divided in proportion.
    part = (
        divide_graph(step.graph, 1 / count)
        if batch is None or step.times == "measured"
        else ask(batch // count).graph
    )
    graph = unroll_graph([part] * count)
    return graph, Piped(whole, pose_problem(graph, links))
