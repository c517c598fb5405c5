"""Measured compute times of whole networks on a device.

ParaDL (Kahira et al., HPDC 2021), section 4: FW + BW a sample is measured once a network and
device, on one PE; the oracle spreads it over the layers by their FLOPs.
"""

import math
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from grids.entry import Count, Record, Sources
from grids.systems import Seconds
from grids.yamlfile import explain, load

PROFILES = Path(__file__).parent / "catalogue" / "profiles.yaml"


class Profile(Record):
    """Seconds a sample, forward and backward, of a model on a device for one sample shape."""

    model: str
    device: str
    shape: tuple[Count, ...]
    seconds: Annotated[Seconds, Field(gt=0.0)]
    source: Sources


class _Profiles(Record):
    profiles: tuple[Profile, ...]


def measured(model: str, device: str, shape: tuple[int, ...]) -> Profile | None:
    """The profile of this model and device nearest in items a sample to `shape`.

    The caller scales its seconds by FLOPs to `shape`, where that differs.
    """
    known = [each for each in _known() if (each.model, each.device) == (model, device)]
    items = math.prod(shape)
    return min(
        known,
        key=lambda each: (each.shape != shape, abs(math.log(math.prod(each.shape) / items))),
        default=None,
    )


@cache
def _known() -> tuple[Profile, ...]:
    document = load(PROFILES)
    try:
        return _Profiles.model_validate(document.data).profiles
    except ValidationError as error:
        raise explain(error, document, _Profiles) from None
