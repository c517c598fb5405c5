"""Random problems, for the engine and for the scalar reference."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import reference
from hypothesis import strategies as st

from paradl.grids.entries.connections import Connection
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import Contention, Level, ProcessingElement, System
from paradl.grids.inputs.values import Settings
from paradl.grids.inputs.workload import Workload
from paradl.grids.models.layers import SAMPLE, Layer, LayerTable
from paradl.grids.placing.group import PlacedGroup, PlacedGroups

KINDS = (
    *("conv", "transposed_conv", "maxpool", "fc", "free", "relu", "norm", "add", "multiply"),
    "linear",
)
CONVOLUTIONS = ("conv", "transposed_conv")
SEQUENTIAL = ("linear", "relu")  # of which a recurrent layer has both
# Of a placed group's step.
SEGMENTS = (1, 4)
# Few sizes, so that few programs are compiled.
LAYER_COUNTS = (1, 7)

sizes = st.integers(1, 24)


@st.composite
def layers(draw: st.DrawFn, rank: int) -> Layer:
    """Draw a layer of any kind; sizes need not match its neighbours'."""
    kind = draw(st.sampled_from(KINDS))
    flat = kind in ("fc", "free", "linear")
    windowed = kind in (*CONVOLUTIONS, "maxpool")
    groups = draw(st.sampled_from((1, 1, 2, 8))) if kind in CONVOLUTIONS else 1
    extents_x = draw(_triple(rank, sizes, flat))
    extents_y = draw(_triple(rank, sizes, flat))
    channels, filters = (groups * draw(st.integers(1, 64 // groups)) for _ in range(2))
    kernel = draw(_triple(rank, st.sampled_from((1, 2, 3, 5)), not windowed))
    high, wide = (draw(st.sampled_from((1.0, 1.0, 2.0))) if windowed else 1.0 for _ in range(2))
    multiplies = kind in (*CONVOLUTIONS, "fc", "free", "linear")
    weights = channels // groups * filters * int(np.prod(kernel)) if multiplies else 0
    steps = draw(st.sampled_from((1, 1, 20))) if kind in SEQUENTIAL else 1
    return Layer(
        name=kind,
        kind=kind,
        x=channels * int(np.prod(extents_x)),
        y=filters * int(np.prod(extents_y)),
        w=weights,
        bias=draw(st.sampled_from((0, filters))),
        flops=draw(st.integers(1, 10**9)),
        channels=channels,
        filters=filters,
        extents_x=extents_x,
        extents_y=extents_y,
        kernel=kernel,
        stride=(0.5, 0.5, 0.5) if kind == "transposed_conv" else (high, high, wide),
        groups=groups,
        steps=steps,
        reads=(2 * steps + 1) / 3,
    )


def _triple(rank: int, values: st.SearchStrategy[int], ones: bool) -> st.SearchStrategy:
    one = st.just(1)
    used = one if ones else values
    return st.tuples(used if rank == 3 else one, used, used)


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Draw a machine of one to three levels."""
    node = draw(st.sampled_from((1, 4, 8)))
    spans = [node, node * 4, node * 32][: draw(st.integers(1, 3))]
    # Of any magnitude, so that either part of a message's time may be the longer one.
    bandwidth = st.floats(8, 12).map(lambda digits: 10**digits)
    # XLA takes subnormal numbers for 0, and no latency is below a nanosecond.
    latency = st.floats(-10, -2).map(lambda digits: 10**digits if digits > -9 else 0.0)
    levels = tuple(
        Level(name=str(span), pes=span, latency=draw(latency), bandwidth=draw(bandwidth))
        for span in spans
    )
    return System(
        name="random",
        pe=ProcessingElement.model_validate(
            {
                "name": "PE",
                "device": "none",
                "peak_flops": draw(st.floats(1e10, 1e15)),
                "efficiency": draw(st.floats(0.01, 1)),
                # So little that a bare number would be taken for a slip: it forbids some cells.
                "memory_capacity": f"{draw(st.floats(1e3, 1e9))} B",
                "memory_bandwidth": draw(st.floats(1e9, 1e13)),
            }
        ),
        pes_per_node=node,
        links_per_node=draw(st.integers(1, 4)),
        levels=levels,
        staging=draw(st.none() | st.builds(Connection, latency=latency, bandwidth=bandwidth)),
        contention=Contention(halo=draw(st.floats(1, 8)), split_gather=draw(st.floats(1, 8))),
    )


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw layers on a machine, measured or not."""
    count, rank = draw(st.sampled_from(LAYER_COUNTS)), draw(st.sampled_from((2, 3)))
    rows = [draw(layers(rank)) for _ in range(count)]
    if count == LAYER_COUNTS[0]:
        rows = [replace(row, steps=1, reads=1) for row in rows]
    else:  # all of these have a sequence, so that they are one program
        rows[0] = replace(rows[0], reads=2)
    seconds = st.lists(st.floats(1e-9, 1e-2), min_size=count, max_size=count)
    return Workload(
        table=LayerTable.from_layers(rows),
        samples=draw(st.integers(1, 10**7)),
        system=draw(systems()),
        seconds=draw(st.none() | seconds.map(np.array)),
    )


@st.composite
def graphs(draw: st.DrawFn, table: LayerTable) -> LayerTable:
    """Draw connections: each layer reads any of those before it."""
    reads = [
        tuple(sorted(draw(st.sets(st.integers(SAMPLE, n - 1), min_size=1, max_size=3))))
        for n in range(len(table))
    ]
    return replace(table, inputs=tuple(reads))


@st.composite
def placed_groups(draw: st.DrawFn, layers: int) -> PlacedGroups:
    """Draw placements on two and three devices, with any segments on the critical path."""
    groups = {}
    for devices, segments in product(range(2, min(4, layers + 1)), SEGMENTS):
        runs = st.integers(0, segments)
        marks = st.lists(runs, min_size=layers, max_size=layers).map(tuple)
        others = st.integers(0, devices - 1)
        rest = draw(st.lists(others, min_size=layers - devices, max_size=layers - devices))
        groups[devices, segments] = PlacedGroup(
            device=(*range(devices), *rest),  # each has a layer
            forward=draw(marks),
            backward=draw(marks),
            messages=float(draw(st.integers(0, 40))),
            items=draw(st.floats(0, 1e6)),
        )
    return PlacedGroups(groups)


def reference_layers(workload: Workload) -> list[reference.Layer]:
    """Convert the rows of a table for the reference."""
    table = workload.table
    return [
        reference.Layer(
            name=table.names[n],
            kind=table.kinds[n],
            x=table.x[n],
            y=table.y[n],
            w=table.w[n],
            bias=table.bias[n],
            flops=table.flops[n],
            channels=table.channels[n],
            filters=table.filters[n],
            extents_x=list_extents(table.extents_x[n]),
            extents_y=list_extents(table.extents_y[n]),
            kernel=list_extents(table.kernel[n]),
            seconds=None if workload.seconds is None else workload.seconds[n],
            groups=table.groups[n],
            stride=(table.stride[n, 0], table.stride[n, 1], table.stride[n, 2]),
        )
        for n in range(len(table))
    ]


def list_extents(values: Iterable[float]) -> tuple[int, int, int]:
    depth, height, width = map(int, values)
    return depth, height, width


def reference_machine(system: System) -> reference.Machine:
    """Convert a system for the reference."""
    return reference.Machine(
        peak_flops=system.pe.peak_flops,
        efficiency=system.pe.efficiency,
        memory_capacity=system.pe.memory_capacity,
        memory_bandwidth=system.pe.memory_bandwidth,
        pes_per_node=system.pes_per_node,
        links_per_node=system.links_per_node,
        levels=[(level.pes, level.latency, level.bandwidth) for level in system.levels],
        staging=(system.staging.latency, system.staging.bandwidth) if system.staging else None,
        phi_halo=system.contention.halo,
        phi_gather=system.contention.split_gather,
    )


def reference_setup(
    workload: Workload, strategy: Strategy, settings: Settings, options: Mapping[str, Any]
) -> reference.Setup:
    """Make the reference's input, apart from p and batch, which differ by cell."""
    parameters = dict(settings.parameters)
    group = strategy.group if isinstance(strategy.group, int) else parameters.get("group")
    own = strategy.segments if isinstance(strategy.segments, int) else None
    return reference.Setup(
        strategy=strategy.base,
        p=1,
        batch=1,
        samples=workload.samples,
        group=None if group is None else int(group),
        segments=own or int(parameters.get("segments", 4)),
        delta=parameters.get("delta", 4.0),
        gamma=parameters.get("gamma", 1.0),
        phi=parameters.get("phi"),
        scaling=settings.scaling,
        layers=strategy.layers,
        dims=strategy.dims,
        **options,
    )


def at(setup: reference.Setup, p: float, batch: float) -> reference.Setup:
    """Return the input of one cell."""
    return replace(setup, p=int(p), batch=float(batch))
