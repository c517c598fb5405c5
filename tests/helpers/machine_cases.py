"""Random layers and runs for the scalar machine oracle."""

import math
from dataclasses import replace
from itertools import accumulate
from operator import mul
from typing import Any

from hypothesis import strategies as st
from machine_toys import K3, MACHINE
from reference_parts import Layer, Machine, Run


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    """Draw a layer whose parts are whole items, so that bytes are exact."""
    per_point = st.integers(0, 10**4).map(float)
    extents = st.tuples(*[st.sampled_from((1, 2, 5, 8, 16))] * 3)
    extents_x, extents_y = draw(extents), draw(extents)
    rows_in, rows_out = math.prod(extents_x), math.prod(extents_y)
    return Layer(
        x=(draw(per_point) + 1) * rows_in,
        y=(draw(per_point) + 1) * rows_out,
        w=192.0 * draw(per_point) * draw(st.sampled_from((1, 1000))),  # some beyond 256 MiB
        bias=draw(st.integers(0, 100)),
        flops=draw(st.integers(1, 10**9)),
        kind=draw(st.sampled_from(("conv2d", "conv3d", "matmul", "other"))),
        kept_items=draw(per_point) * rows_out,
        kept_bytes=draw(per_point) * rows_out,
        extents_x=extents_x,
        extents_y=extents_y,
        kernel=draw(st.sampled_from(((1, 1, 1), K3, (3, 3, 3)))),
        channels=draw(st.integers(1, 64)),
        filters=draw(st.integers(1, 64)),
        divided=draw(st.booleans()),
        stride=draw(st.sampled_from(((1, 1, 1), (1, 2, 2), (3, 3, 3), (0.5, 0.5, 0.5)))),
        groups=draw(st.sampled_from((1, 1, 4))),
        crossing=draw(st.none() | st.integers(0, 10**6).map(float)),
    )


networks = st.lists(layers(), min_size=1, max_size=8)
FAST = replace(
    MACHINE,
    peak=1e12,
    memory_bandwidth=1e9,
    layer_overhead=1e-5,
    levels=[(2, 1e-5, 1e9), (8, 1e-4, 1e8)],
    reserved=4096.0,
    half_channels=16.0,
    window_fetch=0.5,
)


@st.composite
def runs(draw: st.DrawFn, count: int) -> Run:
    """Draw any group over `count` layers, with whole samples."""
    group: Any = draw(st.sampled_from(("none", "spatial", "filter", "channel", "pipeline")))
    factors, p2 = (1, 1, 1), draw(st.sampled_from((1, 2, 3, 4, 6, 8)))
    ends: tuple[int, ...] = (count,)
    if group == "spatial":
        factors = draw(st.tuples(*[st.sampled_from((1, 2, 3, 4))] * 3))
        p2 = math.prod(factors)
    if group == "pipeline":
        cuts = draw(st.sets(st.integers(1, count - 1))) if count > 1 else set()
        ends = (*sorted(cuts), count)
        p2 = len(ends)
    return Run(
        group=group,
        p1=draw(st.sampled_from((1, 2, 3, 8))),
        p2=1 if group == "none" else p2,
        factors=factors,
        ends=ends,
        segments=draw(st.sampled_from((1, 2, 4, 8))),
        b=draw(st.integers(1, 512)),
        accumulate=draw(st.integers(1, 4)),
        samples=1e5,
        optimizer=draw(st.sampled_from(("none", "sgd", "adam"))),
        recompute=draw(st.booleans()),
        iterations=draw(st.sampled_from(("exact", "ceil"))),
        algorithm=draw(st.sampled_from(("auto", "ring", "tree", "two-level"))),
        phi=draw(st.none() | st.floats(1, 8)),
    )


parts = st.floats(0.1, 1)  # of what is stated
parts_or_no_bound = parts | st.just(math.inf)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Draw FAST with any network, each level wider and slower than the last, and any overheads."""
    wider = st.sampled_from((1, 2, 3, 4, 8))
    pes = list(accumulate([draw(wider) for _ in range(draw(st.integers(1, 4)))], mul))
    narrows = [draw(st.floats(1e8, 1e11))]
    narrows += [draw(st.floats(0.1, 1)) for _ in pes[1:]]
    latencies = list(accumulate(draw(st.floats(1e-6, 1e-4)) for _ in pes))
    speeds = accumulate(narrows, mul)
    shares = [draw(st.floats(1, 4)) for _ in pes]
    return replace(
        FAST,
        pes_per_node=pes[0],
        links_per_node=draw(st.integers(1, 8)),
        levels=list(zip(pes, latencies, speeds, shares, strict=True)),
        bucket=draw(st.sampled_from((1e3, 1e6, math.inf))),
        overlap=draw(st.floats(0, 1)),
        jitter=draw(st.floats(0, 0.1)),
        staging=draw(st.none() | st.tuples(st.floats(0, 1e-3), st.floats(1e8, 1e10))),
        phi_halo=draw(st.floats(1, 8)),
        phi_gather=draw(st.floats(1, 8)),
        input_rate=draw(st.sampled_from((1e3, math.inf))),
        rail=draw(parts),
        flow=draw(parts_or_no_bound),
        startup=draw(st.floats(1, 4)),
        halo_startup=draw(st.floats(1, 4)),
        node_reduce=draw(parts),
        node_collective=draw(parts),
        packing=draw(parts_or_no_bound),
        large_message=draw(parts_or_no_bound),
        assembly=draw(parts_or_no_bound),
        part_overhead=draw(st.floats(0, 1e-3)),
        gather_rate=draw(st.floats(0.1, 4)),
        log_open=draw(st.floats(0, 1e-3)),
    )


problems = networks.flatmap(lambda network: st.tuples(st.just(network), runs(len(network))))
