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
from grids.entries.precision import AnyPrecision, PrecisionName

# Samples of a pass whose profile does not state them: those of ParaDL's experiments.
USUAL_BATCH = 32


class Profile(Record):
    """Seconds per sample, forward and backward, on a device, for one sample shape.

    batch, precision: with which it was taken. The machine oracle takes USUAL_BATCH and the
    system's precision for what is not stated, with a wider spread.
    """

    device: Name
    shape: tuple[Count, ...]
    seconds: Annotated[float, BeforeValidator(SECONDS.read)]
    batch: Count | None = None
    precision: AnyPrecision | None = None
    source: Sources = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """What it does not state of how it was taken."""
        return tuple(name for name in ("batch", "precision") if getattr(self, name) is None)

    @property
    def pass_batch(self) -> int:
        """Samples of the measured pass, stated or usual."""
        return self.batch or USUAL_BATCH


def find_nearest_profile(
    profiles: Iterable[Profile],
    device: Name,
    shape: tuple[int, ...],
    precision: PrecisionName | None = None,
) -> Profile | None:
    """The profile of this device for `shape`, or else for the shape with the nearest items.

    Its seconds are then to be scaled by the FLOPs of the two shapes. With a precision, of those
    alone that were taken in it or do not state theirs; those that state all come first.
    """
    items = math.prod(shape)
    fitting = [
        each
        for each in profiles
        if each.device == device and precision in (None, each.precision or precision)
    ]
    # By ratio: half the items are as near as twice as many. Of CosmoFlow 512^3 and 256^3 were
    # measured, and their times are in the ratio of 8.0 that their items have.
    return min(
        fitting,
        key=lambda each: (
            precision is not None and bool(each.missing),
            each.shape != shape,
            abs(math.log(math.prod(each.shape) / items)),
        ),
        default=None,
    )


def describe_profile(profile: Profile) -> str:
    """How and where a profile was taken, in words."""
    shape = " x ".join(map(str, profile.shape))
    batch = f"{profile.pass_batch} samples" + (" (assumed)" if profile.batch is None else "")
    precision = profile.precision or "precision not stated"
    source = f"; {', '.join(profile.source)}" if profile.source else ""
    return f"{profile.device}, {shape}, {batch}, {precision}{source}"
