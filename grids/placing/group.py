"""Placed groups: a network's layers on the devices of a group, as searched and as stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import Field, model_validator

from paradl.grids.entries.entry import Name, Record
from paradl.kernels.names.parallelisms import KINDS

# More are no faster: Inception-v3 on a DGX-1 gains 1.637 on 4, 1.636 on 8 (docs/placement.md).
MOST_DEVICES = 4

Device = Annotated[int, Field(ge=0, lt=MOST_DEVICES)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Segments per step. Searching all layers in 16 takes seconds already.
MOST_SEGMENTS = KINDS["placement"].most_segments

Count = Annotated[int, Field(ge=0, le=MOST_SEGMENTS)]


class PlacedGroup(Record):
    """A network's layers on the devices of one group (docs/placement.md).

    device: that of each layer, from 0. forward, backward: segments in which each layer's forward
    (backward) pass is on the critical path. messages: start-ups on the path. items: items per
    sample sent on it in one segment. Both count a slower link as many times as it is slower
    than the node's.
    """

    device: tuple[Device, ...]
    forward: tuple[Count, ...]
    backward: tuple[Count, ...]
    messages: Amount
    items: Amount

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        """Check that there is one entry per layer."""
        if not len(self.device) == len(self.forward) == len(self.backward) > 0:
            raise ValueError("device, forward, backward: expected one entry a layer in each")
        return self

    @property
    def devices(self) -> int:
        """Number of devices that have layers."""
        return max(self.device) + 1


@dataclass(frozen=True, eq=False)
class PlacedGroups:
    """Groups by (devices, segments), as they were searched earlier."""

    groups: Mapping[tuple[int, int], PlacedGroup] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Group sizes in devices, ascending."""
        return tuple(sorted({devices for devices, _ in self.groups}))

    def find(self, devices: int, segments: int = 1) -> PlacedGroup:
        """Return the group of this many devices for a step in this many segments."""
        return self.groups[devices, segments]


NO_GROUPS = PlacedGroups()


Devices = Annotated[int, Field(ge=2, le=MOST_DEVICES)]
Segments = Annotated[int, Field(ge=2, le=MOST_SEGMENTS)]


class Placements(Record):
    """The placed groups of a model, a data set and a system, by number of devices.

    groups: for a step in one piece. in_segments: for a step in so many segments.
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
        """Build the entry from groups by (devices, segments)."""
        by_segments: dict[int, dict[int, PlacedGroup]] = {1: {}}
        for (devices, segments), group in groups.items():
            by_segments.setdefault(segments, {})[devices] = group
        at_once = by_segments.pop(1)
        return cls(
            model=model, dataset=dataset, system=system, groups=at_once, in_segments=by_segments
        )

    def list_groups(self) -> dict[tuple[int, int], PlacedGroup]:
        """Return all groups by (devices, segments)."""
        return {
            (devices, segments): group
            for segments, groups in {1: self.groups, **self.in_segments}.items()
            for devices, group in groups.items()
        }
