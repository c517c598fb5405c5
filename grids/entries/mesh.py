"""Meshes: links between the PEs of a node without a switch."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from grids.entries.entry import Record, refuse_bool
from grids.entries.quantity import BANDWIDTH

MOST_PES = 64  # per node

Links = Annotated[int, BeforeValidator(refuse_bool), Field(ge=0, le=1024)]


class Mesh(Record):
    """Links between the PEs of a node: a row per PE with its links to each other one.

    PEs without a common link communicate through their neighbours.
    """

    bandwidth: Annotated[float, BANDWIDTH, BeforeValidator(BANDWIDTH.read), Field(gt=0.0)] = Field(
        description="bandwidth of one link in one direction [B/s]"
    )
    links: Annotated[
        tuple[tuple[Links, ...], ...],
        Field(min_length=2, max_length=MOST_PES, description="links from PE to PE, 0 to itself"),
    ]

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        """Check that links are symmetric and connect all PEs."""
        count = len(self.links)
        for pe, row in enumerate(self.links):
            if len(row) != count:
                raise ValueError(f"links.{pe}: expected {count} numbers, got {len(row)}")
            if row[pe]:
                raise ValueError(f"links.{pe}: expected no link of a PE to itself, got {row[pe]}")
            for peer in range(pe):
                if row[peer] != self.links[peer][pe]:
                    raise ValueError(
                        f"links.{pe}.{peer}: expected {self.links[peer][pe]}, as many as the other "
                        f"way, got {row[peer]}"
                    )
        apart = {*range(count)} - self._reach()
        if apart:
            raise ValueError(f"links: expected a path from PE 0 to all, got none to {min(apart)}")
        return self

    def _reach(self) -> set[int]:
        """Return the PEs that are connected with the first one."""
        reached, edge = {0}, [0]
        while edge:
            row = self.links[edge.pop()]
            new = {pe for pe, links in enumerate(row) if links} - reached
            reached |= new
            edge += new
        return reached
