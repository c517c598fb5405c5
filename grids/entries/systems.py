"""Systems: processing elements (PEs), the levels of the network between them, and memory.

A ring of q PEs has the latency alpha [s] and bandwidth 1 / beta [B/s] of the smallest level that
spans q PEs. ParaDL (Kahira et al., HPDC 2021), section 4: alpha and beta are measured a level,
not derived.
"""

from functools import partial
from itertools import pairwise
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from grids.entries.entry import Count, Entry, Name, Record
from grids.entries.parameters import BANDWIDTH, CAPACITY, LATENCY, SPEED, Scale
from grids.reading.errors import shorten
from grids.reading.units import parse_quantity

MOST_LEVELS = 16  # ABCI, the deepest of the catalogue, has four


def _serialise_with(scale: Scale) -> PlainSerializer:
    """As `scale` reads it, where a definition is plain data."""
    return PlainSerializer(scale.write, when_used="json")


# Scales let a 0 pass, which a start-up may be; bandwidths and speeds divide.
Positive = Field(gt=0.0)
Number = BeforeValidator(partial(parse_quantity, unit="1", where=""))
Seconds = Annotated[float, BeforeValidator(LATENCY.read), _serialise_with(LATENCY), Field(ge=0.0)]
Bytes = Annotated[float, BeforeValidator(CAPACITY.read), _serialise_with(CAPACITY), Positive]
BytesPerSecond = Annotated[
    float, BeforeValidator(BANDWIDTH.read), _serialise_with(BANDWIDTH), Positive
]
FlopPerSecond = Annotated[float, BeforeValidator(SPEED.read), _serialise_with(SPEED), Positive]
# Below 1, sharing a link would make it faster.
Contended = Annotated[float, Number, Field(ge=1.0)]


class ProcessingElement(Record):
    """One PE: what a layer's time and a replica's memory are held against."""

    name: Name
    device: Name  # the key of measured profiles: any system with this device shares them
    peak_flops: FlopPerSecond  # at the precision that is trained in: FP32 throughout the catalogue
    # Of the peak. ParaDL's authors count 7.8e12 FLOP/s of a V100's 15.7e12.
    efficiency: Annotated[float, Number, Field(gt=0.0, le=1.0)]
    memory_capacity: Bytes
    memory_bandwidth: BytesPerSecond


class Link(Record):
    """A way between PEs: latency alpha and bandwidth 1 / beta."""

    latency: Seconds
    bandwidth: BytesPerSecond  # in one direction


class Level(Link):
    """A level of the network: the first is the node, the last is the whole system."""

    name: Name
    pes: Count


class Contention(Record):
    """phi >= 1 a kind of flow inside a group: multiplies beta."""

    halo: Contended = 1.0
    split_gather: Contended = 1.0


class System(Entry):
    """A machine."""

    pe: ProcessingElement
    pes_per_node: Count
    # Adapters of a node, which its PEs share: ABCI has two for four. More rings than links contend.
    links_per_node: Count
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=MOST_LEVELS)]
    # Halo and split-point exchanges go through host memory where PEs cannot reach each other's: on
    # ABCI, by MPI without GPUDirect over PCIe, 3 ms and 16 GB/s.
    staging: Link | None = None
    contention: Contention = Contention()

    @model_validator(mode="after")
    def _check_nesting(self) -> Self:
        """The system, if each level holds more PEs than the one inside it."""
        if self.levels[0].pes != self.pes_per_node:
            raise ValueError(
                f"levels: expected {shorten(self.levels[0].name)}, the first, to be the node and "
                f"have pes_per_node = {self.pes_per_node} PEs, got {self.levels[0].pes}"
            )
        # A ring takes the first level that holds its PEs: one out of order would never be taken.
        for inner, outer in pairwise(self.levels):
            if outer.pes <= inner.pes:
                raise ValueError(
                    f"levels: expected more PEs in {shorten(outer.name)} than the "
                    f"{inner.pes} of {shorten(inner.name)} inside it, got {outer.pes}; "
                    "order levels from the node up"
                )
        return self
