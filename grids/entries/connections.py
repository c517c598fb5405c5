"""Paths between PEs, the collectives that were measured on them, and links without a switch.

A ring of q PEs takes (q-1)(latency + m/q / bandwidth) for an all-gather or a reduce-scatter of m
bytes, and twice that for an all-reduce (Thakur et al. 2005). Libraries do not run plain rings: for
small messages they have protocols with lower latency and bandwidth (NCCL: LL, LL128, Simple), and
switches that reduce carry more than a ring's links (NVLS, SHARP). So a measured collective is a
list of lines, each a latency and a bandwidth, of which the fastest counts.
"""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from paradl.grids.entries.entry import Record, refuse_bool, take_quantity
from paradl.grids.entries.quantity import BANDWIDTH, CAPACITY, LATENCY, POWER, SPEED, Scale
from paradl.grids.reading.errors import format_count

# More than the protocols of any library; each one multiplies the lines of the node.
MOST_LINES = 8
MOST_PES = 64  # per node


def _serialise_with(scale: Scale) -> PlainSerializer:
    return PlainSerializer(scale.write, when_used="json")


Positive = Field(gt=0.0)
Number = take_quantity("1")
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
Watts = Annotated[float, POWER, BeforeValidator(POWER.read), _serialise_with(POWER), Positive]


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


Links = Annotated[int, Field(ge=0, le=1024), BeforeValidator(refuse_bool)]


class Mesh(Record):
    """Links between the PEs of a node: a row per PE with its links to each other one.

    PEs without a common link communicate through their neighbours.
    """

    bandwidth: BytesPerSecond = Field(description="bandwidth of one link in one direction [B/s]")
    links: Annotated[
        tuple[tuple[Links, ...], ...],
        Field(min_length=2, max_length=MOST_PES, description="links from PE to PE, 0 to itself"),
    ]

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        count = len(self.links)
        for pe, row in enumerate(self.links):
            if len(row) != count:
                raise ValueError(
                    f"links.{pe}: expected {format_count(count, 'number')}, got {len(row)}"
                )
            if row[pe]:
                raise ValueError(f"links.{pe}: expected no link of a PE to itself, got {row[pe]}")
            for peer in range(pe):
                if row[peer] != self.links[peer][pe]:
                    raise ValueError(
                        f"links.{pe}.{peer}: expected {self.links[peer][pe]}, as many as the other "
                        f"way, got {row[peer]}"
                    )
        reached, edge = {0}, [0]
        while edge:
            new = {pe for pe, links in enumerate(self.links[edge.pop()]) if links} - reached
            reached |= new
            edge += new
        if apart := {*range(count)} - reached:
            raise ValueError(f"links: expected a path from PE 0 to all, got none to {min(apart)}")
        return self
