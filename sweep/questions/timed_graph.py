"""The graph that a question is about: a graph's own, or of a model with the oracle's times."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from grids.entries.parameters import PARAMETERS
from grids.entries.precision import PRECISIONS, Optimizer
from grids.entries.systems import System
from grids.graphs.find import find_graph, list_graphs
from grids.graphs.graph import Graph
from grids.models.layers import LayerTable
from grids.names import list_names
from grids.reading.errors import InputError, shorten, suggest_name


@dataclass(frozen=True)
class Asked:
    """A graph, and what its devices have for it.

    room [B]: of a device, without what is reserved; states: bytes that stay for each byte of
    weights; times: whose word they are, "measured" or "oracle".
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
) -> Asked:
    """The graph of a name or a file; of a model, with the oracle's times of its layers.

    InputError: neither a graph nor a model; a batch where the graph has its own, or none where a
    model needs one.
    """
    graph = find_graph(what, Path())
    if graph is None:
        _expect_model(what)
        return _ask_oracle(what, reference, batch, dataset, optimizer)
    for key, value in (("batch", batch), ("dataset", dataset)):
        if value is not None:
            raise InputError(
                f"the times of a graph are of its own {key}, got {shorten(value)}",
                where=key,
                advice="leave it out, or name a model, whose times depend on it",
            )
    # Graphs do not say their precision; PipeDream's profiles are in fp32.
    precision = PRECISIONS["fp32"]
    prior = PARAMETERS["reserved"].prior
    assert prior is not None
    room = system.pe.memory_capacity - prior.median[system.precision]
    states = precision.count_state_bytes(optimizer) / precision.item
    return Asked(graph, room, states, "measured")


def _expect_model(what: str) -> None:
    """InputError: a name that is neither a graph's nor a model's."""
    known = (*list_graphs(), *list_names("model"))
    if Path(what).suffix or "/" in what or what in known:
        return
    raise InputError(
        f"unknown model or graph {shorten(what)}",
        advice=suggest_name(what, known),
    )


def _ask_oracle(
    model: str, system: str, batch: int | None, dataset: str | None, optimizer: Optimizer
) -> Asked:
    """The graph of a model's layers, with their times for one batch on one device."""
    from grids.graphs.from_models import make_graph
    from kernels.formulas import time_layers
    from sweep.cells.configuration import ONLY, Configuration
    from sweep.engine.compile_cache import keep_programs

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
    times = time_layers(groups.layers, groups.pe, groups.delta, groups.options)
    count = len(groups.table)
    forward, backward, fixed = (
        np.broadcast_to(np.asarray(each), np.shape(times.forward)).reshape(count)
        for each in (times.forward, times.backward, times.fixed)
    )
    item = float(np.asarray(groups.delta).item())
    graph = make_graph(
        grid.labels["model"][0],
        groups.table,
        # What a pass takes whatever the batch: a third of it forward, as of all that a layer does.
        batch * forward + fixed / 3,
        batch * backward + 2 * fixed / 3,
        batch=batch,
        item_bytes=item,
    )
    room = float(np.asarray(groups.pe.memory_capacity).item()) - float(
        np.asarray(groups.pe.reserved).item()
    )
    states, alone = (
        float(np.asarray(each).item()) for each in (groups.state_bytes, groups.weight_bytes)
    )
    if groups.table.sparse:
        graph = _hold_touched_rows(graph, groups.table, batch * item, (states, alone))
    return Asked(graph, room, states / item, "oracle")


def _hold_touched_rows(
    graph: Graph, table: LayerTable, sample: float, bytes_held: tuple[float, float]
) -> Graph:
    """The graph whose sparse tables count as the weights that have as many bytes of states.

    sample: bytes of an item of all samples. bytes_held: a weight's with its states, and alone.
    """
    states, alone = bytes_held
    item = sample / (graph.batch or 1)
    whole = item * (table.w + table.bias)
    touched = np.minimum(whole, item * table.drawn + sample * table.looked_up)
    counted = (alone * whole + (states - alone) * touched) / states
    operators = (
        replace(each, weights=float(counted[n])) if table.looked_up[n] else each
        for n, each in enumerate(graph.operators)
    )
    return replace(graph, operators=tuple(operators))
