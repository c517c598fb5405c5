"""Systems: processing elements (PEs), the levels of the network between them, and memory.

A ring of q PEs has the latency alpha [s] and bandwidth 1 / beta [B/s] of the smallest level that
spans q PEs. ParaDL (Kahira et al., HPDC 2021), section 4: alpha and beta are measured a level,
not derived.
"""

from functools import partial
from itertools import pairwise
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from grids.entry import Count, Entry, Record
from grids.units import parse

Positive = Field(gt=0.0)
Seconds = Annotated[float, BeforeValidator(partial(parse, unit="s", where="")), Field(ge=0.0)]
Bytes = Annotated[float, BeforeValidator(partial(parse, unit="B", where="")), Positive]
BytesPerSecond = Annotated[float, BeforeValidator(partial(parse, unit="B/s", where="")), Positive]
FlopPerSecond = Annotated[float, BeforeValidator(partial(parse, unit="FLOP/s", where="")), Positive]
Number = BeforeValidator(partial(parse, unit="1", where=""))
Contended = Annotated[float, Number, Field(ge=1.0)]


class ProcessingElement(Record):
    """One PE: what a layer's time and a replica's memory are held against."""

    name: str
    device: str  # the key of measured profiles: any system with this device shares them
    peak_flops: FlopPerSecond
    efficiency: Annotated[float, Number, Field(gt=0.0, le=1.0)]
    memory_capacity: Bytes
    memory_bandwidth: BytesPerSecond


class Link(Record):
    """A way between PEs: latency alpha and bandwidth 1 / beta."""

    latency: Seconds
    bandwidth: BytesPerSecond


class Level(Link):
    """A level of the network: the first is the node, the last is the whole system."""

    name: str
    pes: Count


class Contention(Record):
    """phi >= 1 a kind of flow inside a group: multiplies beta."""

    halo: Contended = 1.0
    split_gather: Contended = 1.0


class System(Entry):
    """A machine."""

    pe: ProcessingElement
    pes_per_node: Count
    links_per_node: Count
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    # Halo and split-point exchanges go through host memory where PEs cannot reach each other's.
    staging: Link | None = None
    contention: Contention = Contention()

    @model_validator(mode="after")
    def _levels_nest(self) -> Self:
        if self.levels[0].pes != self.pes_per_node:
            raise ValueError(
                f"levels: expected {self.levels[0].name!r}, the first, to be the node and have "
                f"pes_per_node = {self.pes_per_node} PEs, got {self.levels[0].pes}"
            )
        for inner, outer in pairwise(self.levels):
            if outer.pes <= inner.pes:
                raise ValueError(
                    f"levels: expected more PEs in {outer.name!r} than the {inner.pes} of "
                    f"{inner.name!r} inside it, got {outer.pes}; order levels from the node up"
                )
        return self
