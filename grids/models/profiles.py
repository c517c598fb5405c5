"""Measured compute times of a whole network on a device.

ParaDL (Kahira et al., HPDC 2021), section 4: FW + BW a sample is measured once a network and
device, on one PE; the oracle spreads it over the layers by their FLOPs.
"""

import math
from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator

from grids.entries.entry import Count, Name, Record, Sources
from grids.entries.parameters import SECONDS
from grids.entries.precision import AnyPrecision


class Profile(Record):
    """Seconds a sample, forward and backward, on a device, for one sample shape.

    batch, precision: with which it was taken, where they are known. Only then the machine oracle
    uses it, in which a sample's part of a batch is not the whole story.
    """

    device: Name
    shape: tuple[Count, ...]
    seconds: Annotated[float, BeforeValidator(SECONDS.read)]
    batch: Count | None = None
    precision: AnyPrecision | None = None
    source: Sources = ()


def find_nearest_profile(
    profiles: Iterable[Profile], device: Name, shape: tuple[int, ...]
) -> Profile | None:
    """The profile of this device for `shape`, or else for the shape with the nearest items.

    Its seconds are then to be scaled by the FLOPs of the two shapes.
    """
    items = math.prod(shape)
    # By ratio: half the items are as near as twice as many. Of CosmoFlow 512^3 and 256^3 were
    # measured, and their times are in the ratio of 8.0 that their items have.
    return min(
        (each for each in profiles if each.device == device),
        key=lambda each: (each.shape != shape, abs(math.log(math.prod(each.shape) / items))),
        default=None,
    )
