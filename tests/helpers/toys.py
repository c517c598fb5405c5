"""A network of three layers on a machine with round numbers, to work out by hand.

Two convolutions of a 4x4 sample, then a fully connected layer:

    conv1  2 -> 4 channels, 3x3:  x 32, y 64, w 72, bias 4
    conv2  4 -> 8 channels, 3x3:  x 64, y 128, w 288, bias 8
    fc     128 -> 10:             x 128, y 10, w 1280, bias 10
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paradl.kernels.configuration.run import Run
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Network
from paradl.kernels.parallelism.layout import find_layout
from paradl.kernels.work.division import Division, Placement
from paradl.kernels.work.group import Bounds
from paradl.kernels.work.layers import Layers, LayerTimes

LAYERS = Layers(
    x=np.array([32.0, 64, 128]),
    y=np.array([64.0, 128, 10]),
    w=np.array([72.0, 288, 1280]),
    bias=np.array([4.0, 8, 10]),
    flops=np.array([2304.0, 9216, 2560]),
    channels=np.array([2.0, 4, 128]),
    filters=np.array([4.0, 8, 10]),
    extents_x=np.array([[1.0, 1, 1], [4, 4, 1], [4, 4, 1]]),
    extents_y=np.array([[1.0, 1, 1], [4, 4, 1], [4, 4, 1]]),
    kernel=np.array([[1.0, 1, 1], [3, 3, 1], [3, 3, 1]]),
    stride=np.ones((3, 3)),
    convolution=np.array([1.0, 1, 0]),
    volumetric=np.zeros(3),
    elementwise=np.zeros(3),
    kept_items=np.array([96.0, 128, 0]),  # the sample and what each of the others reads
    kept_bytes=np.zeros(3),
    crossing=np.array([64.0, 128, 0]),
    slowdown=np.ones(3),
)
TIMES = LayerTimes(
    forward=np.array([1.0, 4, 2]),
    backward=np.array([2.0, 8, 4]),
    update=np.array([0.5, 1, 3]),
    fixed=np.zeros(3),
    launches=np.zeros(3),
)
PROCESSOR = PE(peak_flops=200.0, efficiency=0.5, memory_capacity=1e6, memory_bandwidth=1000.0)

# A ring of 2 PEs: 1 s and 1/4 s/B; of more: 2 s and 1/2 s/B.
NETWORK = Network(
    span=np.array([2.0, 8]),
    latency=np.array([1.0, 2]),
    bandwidth=np.array([4.0, 2]),
    pes_per_node=2.0,
    links_per_node=1.0,
    staging_latency=0.0,
    staging_bandwidth=np.inf,
    phi_halo=1.0,
    phi_gather=1.0,
)


def placement(
    split: Sequence[float] = (1, 1, 0),
    factors: Sequence[float] = (1, 1, 1),
    ends: Sequence[int] = (3,),
) -> Placement:
    """Make a placement that splits the convolutions, in one stage."""
    return Placement(np.array(split, float), np.array(factors, float), np.array(ends))


def bounds(fits: bool = True, even: bool = True, defined: bool = True) -> Bounds:
    """Make the bounds of a possible group."""
    return Bounds(*map(np.asarray, (fits, even, defined)))


def name_parts(group: str) -> tuple[str, ...]:
    """Return the parallelism inside a replica; empty for "none"."""
    return () if group == "none" else (group,)


def degrees(group: str, p2: Any) -> dict[str, Any]:
    """Return the degree of the parallelism inside a replica, by name."""
    return {find_layout(name_parts(group)).parts[0].sends_as: p2}


def divide(
    places: Placement, p2: Any, group: str, layers: Layers = LAYERS, **settings: Any
) -> Division:
    """Place the layers on groups of p2 PEs."""
    parts = name_parts(group)
    return Division(layers, PROCESSOR, places, degrees(group, p2), 4.0, parts, **settings)


def run(p1: Any = 1.0, p2: Any = 1.0, batch: Any = 2.0, group: str = "none", **changes: Any) -> Run:
    """Make p1 replicas of p2 PEs: two samples per replica, 16 per epoch; four bytes per item."""
    usual = Run(
        p=p1 * p2,
        replicas=p1,
        degrees=degrees(group, p2),
        spec_batch=batch,
        samples=16.0,
        segments=2.0,
        delta=4.0,
        gamma=1.0,
        phi=1.0,
        gradient_delta=4.0,
        accumulate=1.0,
    )
    return replace(usual, **changes)
