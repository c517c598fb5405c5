"""Placed groups: a network's layers on devices, as they were found, and as a store keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol, Self

from pydantic import Field, model_validator

from grids.entries.entry import Name, Record
from kernels.names.parallelisms import KINDS

# More are no faster: Inception-v3 on a DGX-1 gains 1.637 on 4, 1.636 on 8 (docs/placement.md).
MOST_DEVICES = 4

Device = Annotated[int, Field(ge=0, lt=MOST_DEVICES)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Of a placed group's step. More are not searched: all layers in 16 take seconds to search.
MOST_SEGMENTS = KINDS["placement"].most_segments

Count = Annotated[int, Field(ge=0, le=MOST_SEGMENTS)]


class PlacedGroup(Record):
    """A network's layers on the devices of one group (docs/placement.md).

    device [G]: of each layer, from 0. forward, backward [G]: of how many segments a layer's forward
    (backward) pass is on the critical path. messages, items: start-ups that lie on it, and items a
    sample of one segment that pass there, each as often as its link is slower than the node's.
    """

    device: tuple[Device, ...]
    forward: tuple[Count, ...]
    backward: tuple[Count, ...]
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
    """Groups of some numbers of devices, which may be searched when they are asked for."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many devices they have, ascending."""

    def find(self, devices: int, segments: int = 1) -> PlacedGroup:
        """The group of so many devices, of a step in so many segments."""


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """Groups that were searched before, by their devices and segments."""

    groups: Mapping[tuple[int, int], PlacedGroup] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({devices for devices, _ in self.groups}))

    def find(self, devices: int, segments: int = 1) -> PlacedGroup:
        return self.groups[devices, segments]


NO_GROUPS = KnownGroups()


Devices = Annotated[int, Field(ge=2, le=MOST_DEVICES)]
Segments = Annotated[int, Field(ge=2, le=MOST_SEGMENTS)]


class Placements(Record):
    """The placed groups of a model, a data set and a system, by their numbers of devices.

    groups: of a step at once; in_segments: of one in so many segments.
    """

    model: Name
    dataset: Name
    system: Name
    groups: dict[Devices, PlacedGroup]
    in_segments: dict[Segments, dict[Devices, PlacedGroup]] = Field(default_factory=dict)

    @classmethod
    def from_groups(
        cls, model: str, dataset: str, system: str, groups: Mapping[tuple[int, int], PlacedGroup]
    ) -> Self:
        """The entry of groups by their devices and segments."""
        by_segments: dict[int, dict[int, PlacedGroup]] = {1: {}}
        for (devices, segments), group in groups.items():
            by_segments.setdefault(segments, {})[devices] = group
        at_once = by_segments.pop(1)
        return cls(
            model=model, dataset=dataset, system=system, groups=at_once, in_segments=by_segments
        )

    def list_groups(self) -> dict[tuple[int, int], PlacedGroup]:
        """All groups, by their devices and segments."""
        return {
            (devices, segments): group
            for segments, groups in {1: self.groups, **self.in_segments}.items()
            for devices, group in groups.items()
        }
