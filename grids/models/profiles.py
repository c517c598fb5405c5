"""Measured compute times of whole networks on a device.

ParaDL (Kahira et al., HPDC 2021), section 4: FW + BW per sample is measured once per network and
device, on one PE; the oracle spreads it over the layers by their FLOPs.
"""

import math
from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator

from paradl.grids.entries.entry import Count, Name, Record, Sources
from paradl.grids.entries.precision import AnyPrecision, PrecisionName
from paradl.grids.entries.quantity import SECONDS
from paradl.grids.reading.errors import format_count

# Assumed samples per pass if a profile does not state them; usual in ParaDL's experiments.
USUAL_BATCH = 32


class Profile(Record):
    """Seconds per sample, forward and backward, on a device, for one sample shape.

    batch, precision: conditions of the measurement. If missing, the machine oracle assumes
    USUAL_BATCH and the system's precision, with a wider spread.
    """

    device: Name
    shape: tuple[Count, ...]
    seconds: Annotated[float, BeforeValidator(SECONDS.read)]
    batch: Count | None = None
    precision: AnyPrecision | None = None
    source: Sources = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The conditions (batch, precision) that are not stated."""
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
    """Return the profile of this device for `shape`, else for the shape nearest in items.

    The caller scales its seconds by the FLOPs of both shapes. precision: only profiles in it or of
    unstated precision; fully stated ones come first.
    """
    items = math.prod(shape)
    fitting = [
        profile
        for profile in profiles
        if profile.device == device and precision in (None, profile.precision or precision)
    ]
    # By ratio: half the items are as near as twice as many. CosmoFlow's times at 512^3 and 256^3
    # have the same ratio, 8.0, as the items.
    return min(
        fitting,
        key=lambda profile: (
            precision is not None and bool(profile.missing),
            profile.shape != shape,
            abs(math.log(math.prod(profile.shape) / items)),
        ),
        default=None,
    )


def describe_profile(profile: Profile) -> str:
    """Describe a profile by device, shape, batch, precision and source."""
    shape = " x ".join(map(str, profile.shape))
    batch = format_count(profile.pass_batch, "sample") + (
        " (assumed)" if profile.batch is None else ""
    )
    precision = profile.precision or "precision not stated"
    source = f"; {', '.join(profile.source)}" if profile.source else ""
    return f"{profile.device}, {shape}, {batch}, {precision}{source}"
