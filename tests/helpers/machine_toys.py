"""Three layers on a machine with round numbers, for the scalar machine oracle."""

from collections.abc import Sequence
from dataclasses import replace

from reference_parts import Layer, Machine, Run, Values
from reference_products import terms
from reference_products_parts import ask_alone

PLANE = (1, 4, 4)
K3 = (1, 3, 3)

CONV = Layer(32, 64, 72, 4, 2304, "conv2d", 32, 0, PLANE, PLANE, K3, 2, 4, True, inputs=(-1,))
RELU = Layer(64, 64, 0, 0, 64, "other", 64, 16, PLANE, PLANE, channels=4, filters=4, inputs=(0,))
FC = Layer(64, 10, 640, 10, 1280, "matmul", 8, channels=64, filters=10, inputs=(1,))
TOY = (CONV, RELU, FC)

# In a node of 2 PEs: 1 s and 1/4 s/B; between nodes, on their one link: 2 s and 1/2 s/B.
MACHINE = Machine(
    peak=100.0,
    memory_bandwidth=1000.0,
    memory_capacity=1e9,
    pes_per_node=2,
    levels=[(2, 1.0, 4.0), (8, 2.0, 2.0)],
    g=2.0,
    efficiencies={"conv2d": 0.5, "matmul": 0.25},
    elementwise_passes=5.0,
    layer_overhead=0.5,
    reserved=1000.0,
)
SERIAL = Run(b=2.0, samples=16.0)
SPATIAL = replace(SERIAL, group="spatial", p2=2, factors=(1, 2, 1))
FILTER = replace(SERIAL, group="filter", p2=2)
CHANNEL = replace(FILTER, group="channel")
PIPELINE = replace(SERIAL, group="pipeline", p2=2, ends=(2, 3), segments=4)

COMMUNICATION = (
    "gradient_exchange",
    "layer_collectives",
    "halo_exchange",
    "split_gather",
    "point_to_point",
    "sample_scatter",
    "log_files",
)


def time_toy(machine: Machine, run: Run, layers: Sequence[Layer] = TOY) -> Values:
    """Compute the terms of an iteration, seconds."""
    return terms(layers, machine, ask_alone(layers, run))
