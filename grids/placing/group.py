"""Placed groups: a network's layers on devices, as they were found, and as a store keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol, Self

from pydantic import Field, model_validator

from grids.entries.entry import Name, Record

# More are no faster: Inception-v3 on a DGX-1 gains 1.637 on 4, 1.636 on 8 (docs/placement.md).
MOST_DEVICES = 4

Device = Annotated[int, Field(ge=0, lt=MOST_DEVICES)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PlacedGroup(Record):
    """A network's layers on the devices of one group (docs/placement.md).

    device [G]: of each layer, from 0. forward, backward [G]: whether a layer's forward (backward)
    pass is on the critical path. messages, items: start-ups that lie on it, and items a sample that
    pass there, each as often as its link is slower than the node's.
    """

    device: tuple[Device, ...]
    forward: tuple[bool, ...]
    backward: tuple[bool, ...]
    messages: Amount
    items: Amount

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        """The group, if it says of each layer where it is."""
        if not len(self.device) == len(self.forward) == len(self.backward) > 0:
            raise ValueError("device, forward, backward: expected one entry a layer in each")
        return self

    @property
    def devices(self) -> int:
        """How many of them have layers."""
        return max(self.device) + 1


class PlacedGroups(Protocol):
    """Groups of some numbers of devices, of which each may be found when it is asked for."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many devices they have, ascending."""

    def find(self, devices: int) -> PlacedGroup:
        """The group of so many devices."""


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """Groups that were found before."""

    groups: Mapping[int, PlacedGroup] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted(self.groups))

    def find(self, devices: int) -> PlacedGroup:
        return self.groups[devices]


NO_GROUPS = KnownGroups()


class Placements(Record):
    """The placed groups of a model, a data set and a system, by their numbers of devices."""

    model: Name
    dataset: Name
    system: Name
    groups: dict[Annotated[int, Field(ge=2, le=MOST_DEVICES)], PlacedGroup]
