"""Meshes: links between the PEs of a node that has no switch."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from grids.entries.entry import Record, refuse_bool
from grids.entries.quantity import BANDWIDTH

MOST_PES = 64  # of a node

Links = Annotated[int, BeforeValidator(refuse_bool), Field(ge=0, le=1024)]


class Mesh(Record):
    """Links between the PEs of a node: a row a PE, the links to each of the others.

    A pair without a link is joined through its neighbours.
    """

    bandwidth: Annotated[float, BANDWIDTH, BeforeValidator(BANDWIDTH.read), Field(gt=0.0)] = Field(
        description="what one link carries in one direction [B/s]"
    )
    links: Annotated[
        tuple[tuple[Links, ...], ...],
        Field(
            min_length=2, max_length=MOST_PES, description="links of each PE to each, 0 to itself"
        ),
    ]

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        """The mesh, if its links go both ways and connect all PEs."""
        count = len(self.links)
        for here, row in enumerate(self.links):
            if len(row) != count:
                raise ValueError(f"links.{here}: expected {count} numbers, got {len(row)}")
            if row[here]:
                raise ValueError(
                    f"links.{here}: expected no link of a PE to itself, got {row[here]}"
                )
            for there in range(here):
                if row[there] != self.links[there][here]:
                    raise ValueError(
                        f"links.{here}.{there}: expected {self.links[there][here]}, as many as the "
                        f"other way, got {row[there]}"
                    )
        apart = {*range(count)} - self._reach()
        if apart:
            raise ValueError(
                f"links: expected a way from PE 0 to each, got none to PE {min(apart)}"
            )
        return self

    def _reach(self) -> set[int]:
        """The PEs that can be reached from the first one."""
        reached, edge = {0}, [0]
        while edge:
            row = self.links[edge.pop()]
            new = {there for there, links in enumerate(row) if links} - reached
            reached |= new
            edge += new
        return reached
