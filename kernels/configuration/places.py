"""Find the field of a case that holds a continuous parameter, by the parameter's name.

Setting a parameter and differentiating by it use the same table. Counts that determine how layers
are laid out (PEs, groups) are not in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from paradl.kernels.arrays import AnyArray, Cells, xp
from paradl.kernels.configuration.case import Case
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.software import Software

# [B/s] Levels with at least this bandwidth do not exist: they pad a machine to the number of levels
# in the kernels (grids/inputs/machine.py). Finite, since infinity times a parameter has no
# derivative, and calibration needs one.
ENDLESS = 1e30

Change = Callable[[AnyArray], AnyArray]
Part = Literal["run", "network", "pe", "software"]


@dataclass(frozen=True)
class Place:
    """A field of a part of a case. level: of the network's levels, the node's or all beyond it."""

    part: Part
    field: str
    level: Literal["node", "beyond"] | None = None

    @property
    def layered(self) -> bool:
        """True if layers' times depend on it, so that they must be summed anew."""
        return self.part == "pe" and self.field not in ("memory_capacity", "reserved")


# Fields of a PE by their names in grids/entries/parameters.py, where these differ.
EFFICIENCIES = {
    "efficiency_conv2d": "convolution_2d",
    "efficiency_conv3d": "convolution_3d",
    "efficiency_matmul": "matrix_product",
    "efficiency_blocks": "block_product",
    "efficiency_attention": "attention",
}
# Fields of a network that are no parameters by themselves.
STRUCTURE = (
    *("span", "latency", "bandwidth", "pes_per_node", "links_per_node"),
    *("oversubscription", "flow", "size", "whole_gradients", "measured", "switch_latency"),
    "shared",
)
PLACES: dict[str, Place] = {
    "batch": Place("run", "spec_batch"),
    "gamma": Place("run", "gamma"),
    "phi": Place("run", "phi"),
    "accumulate": Place("run", "accumulate"),
    "intra_bandwidth": Place("network", "bandwidth", "node"),
    "inter_bandwidth": Place("network", "bandwidth", "beyond"),
    "intra_latency": Place("network", "latency", "node"),
    "inter_latency": Place("network", "latency", "beyond"),
    **{
        field.name: Place("network", field.name)
        for field in fields(Network)
        if field.name not in STRUCTURE
    },
    **{
        field.name: Place("pe", field.name)
        for field in fields(PE)
        if field.name not in EFFICIENCIES.values()
    },
    **{name: Place("pe", field) for name, field in EFFICIENCIES.items()},
    **{field.name: Place("software", field.name) for field in fields(Software)},
}


def set_parameters(case: Case, values: Mapping[str, Cells]) -> Case:
    """Set parameters to values [cells], by name.

    This does not update the layers' work if a PE's parameter changes: see `reduce_points`.
    """
    for name, value in values.items():
        case = _change(case, PLACES[name], partial(_replace, new=xp.asarray(value)))
    return case


def scale_parameters(case: Case, factors: Mapping[str, Cells]) -> Case:
    """Multiply parameters by factors, by name; infinite values stay infinite."""
    for name, factor in factors.items():
        case = _change(case, PLACES[name], partial(scale_bounded, factor=xp.asarray(factor)))
    return case


def read_parameters(case: Case) -> dict[str, AnyArray]:
    """Return the values of all parameters [cells], by name; of several levels, the first's."""
    return {name: read_parameter(case, name) for name in PLACES}


def read_parameter(case: Case, name: str) -> AnyArray:
    """Return the values of a parameter [cells]; of several levels, the first's."""
    place = PLACES[name]
    values: AnyArray = np.asarray(getattr(getattr(case, place.part), place.field))
    return values if place.level is None else values[0 if place.level == "node" else 1]


def _replace(old: AnyArray, new: AnyArray) -> AnyArray:
    # Missing levels keep their infinite bandwidth.
    return xp.where(old >= ENDLESS, old, new) if old.ndim > new.ndim else new


def scale_bounded(old: AnyArray, factor: AnyArray) -> AnyArray:
    """Multiply values by a factor; infinite ones stay infinite."""
    # The derivative of infinity times a factor is undefined; selecting makes it 0.
    bounded = xp.isfinite(old)
    return xp.where(bounded, xp.where(bounded, old, 0.0) * factor, old)


def _change(case: Case, place: Place, change: Change) -> Case:
    """Apply a change to one field of the case."""
    part: Any = getattr(case, place.part)
    old = xp.asarray(getattr(part, place.field))
    match place.level:
        case None:
            new = change(old)
        case "node":
            new = _join_levels(change(old[0])[None], old[1:])
        case "beyond":
            new = _join_levels(old[:1], change(old[1:]))
    return replace(case, **{place.part: replace(part, **{place.field: new})})


def _join_levels(inner: AnyArray, outer: AnyArray) -> AnyArray:
    """Concatenate levels, which may vary along different dimensions of the cells."""
    cells = xp.broadcast_shapes(inner.shape[1:], outer.shape[1:])
    levels = (xp.broadcast_to(part, (part.shape[0], *cells)) for part in (inner, outer))
    return xp.concatenate(tuple(levels))
