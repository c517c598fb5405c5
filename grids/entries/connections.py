"""Paths between PEs, and the collectives that were measured on them.

A ring of q PEs takes (q-1)(latency + m/q / bandwidth) for an all-gather or a reduce-scatter of m
bytes, and twice that for an all-reduce (Thakur et al. 2005). Libraries do not run plain rings: for
small messages they have protocols with lower latency and bandwidth (NCCL: LL, LL128, Simple), and
switches that reduce carry more than a ring's links (NVLS, SHARP). So a measured collective is a
list of lines, each a latency and a bandwidth, of which the fastest counts.
"""

from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer

from grids.entries.entry import Record
from grids.entries.quantity import BANDWIDTH, CAPACITY, LATENCY, SPEED, Scale
from grids.reading.units import parse_quantity

# More than the protocols of any library; each one multiplies the lines of the node.
MOST_LINES = 8


def _serialise_with(scale: Scale) -> PlainSerializer:
    """Return the serialiser that writes a quantity in JSON as `scale` reads it."""
    return PlainSerializer(scale.write, when_used="json")


Positive = Field(gt=0.0)
Number = BeforeValidator(partial(parse_quantity, unit="1", where=""))
# Annotated with the scale, from which grids/entries/yamltext.py takes the unit.
Seconds = Annotated[
    float, LATENCY, BeforeValidator(LATENCY.read), _serialise_with(LATENCY), Field(ge=0.0)
]
Bytes = Annotated[
    float, CAPACITY, BeforeValidator(CAPACITY.read), _serialise_with(CAPACITY), Positive
]
BytesPerSecond = Annotated[
    float, BANDWIDTH, BeforeValidator(BANDWIDTH.read), _serialise_with(BANDWIDTH), Positive
]
FlopPerSecond = Annotated[
    float, SPEED, BeforeValidator(SPEED.read), _serialise_with(SPEED), Positive
]


class Connection(Record):
    """A path between PEs: latency alpha and bandwidth 1 / beta."""

    latency: Seconds = Field(description="start-up of a message, or of one step of a ring [s]")
    bandwidth: BytesPerSecond = Field(
        description="what one link carries in one direction [B/s]; in a node, what one PE sends"
    )


Lines = Annotated[tuple[Connection, ...], Field(min_length=1, max_length=MOST_LINES)]


class Collectives(Record):
    """Measured collectives of a level, each as lines: latency and bandwidth of a ring's step.

    Bandwidths are NCCL's "bus bandwidth", which a reducing switch lifts above that of the links.
    """

    all_reduce: Lines | None = Field(default=None, description="of gradients")
    all_gather: Lines | None = Field(
        default=None, description="and reduce-scatter, where that is not measured"
    )
    reduce_scatter: Lines | None = Field(default=None, description="of sharded gradients")
    all_to_all: Lines | None = Field(default=None, description="of experts")
