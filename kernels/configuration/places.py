"""Places: where each continuous parameter stands in a case, by the name that users write.

One table: to give a parameter other values, or to ask what follows from a little more of it, is the
same walk to its place. Counts that decide how layers are laid out (PEs, groups) have none here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from jax import Array

from kernels.arrays import AnyArray, Cells
from kernels.configuration.case import Case
from kernels.machine.network import Network
from kernels.machine.software import Software
from kernels.namespace import xp
from kernels.work.compute import PE

# [B/s] from which a level is none: machines have fewer than the kernels (grids/inputs/machine.py).
ENDLESS = 1e30

Change = Callable[[Array], Array]
Part = Literal["run", "network", "pe", "software"]


@dataclass(frozen=True)
class Place:
    """A field of a part of a case. level: of a network's, the node's or all beyond it.

    layered: what layers take depends on it, so that they have to be reduced anew.
    """

    part: Part
    field: str
    level: Literal["node", "beyond"] | None = None

    @property
    def layered(self) -> bool:
        """True if the times of layers depend on it."""
        return self.part == "pe" and self.field not in ("memory_capacity", "reserved")


# By the names of grids/entries/parameters.py; those of a PE that are called otherwise there.
EFFICIENCIES = {
    "efficiency_conv2d": "convolution_2d",
    "efficiency_conv3d": "convolution_3d",
    "efficiency_matmul": "matrix_product",
}
# Fields of a network that no single parameter sets.
STRUCTURE = (
    *("span", "latency", "bandwidth", "pes_per_node", "links_per_node"),
    *("oversubscription", "flow", "size", "whole_gradients", "measured"),
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
        each.name: Place("network", each.name)
        for each in fields(Network)
        if each.name not in STRUCTURE
    },
    **{
        each.name: Place("pe", each.name)
        for each in fields(PE)
        if each.name not in EFFICIENCIES.values()
    },
    **{name: Place("pe", field) for name, field in EFFICIENCIES.items()},
    **{each.name: Place("software", each.name) for each in fields(Software)},
}


def set_parameters(case: Case, values: Mapping[str, Cells]) -> Case:
    """The case with other values [cells] of parameters, by name.

    Of a PE's, the layers' work is as it was: `kernels.oracle.points` reduces them anew.
    """
    for name, value in values.items():
        case = _change(case, PLACES[name], partial(_replace, new=xp.asarray(value)))
    return case


def scale_parameters(case: Case, factors: Mapping[str, Cells]) -> Case:
    """The case with parameters times a factor [1], by name; what is without bound stays so."""
    for name, factor in factors.items():
        case = _change(case, PLACES[name], partial(scale_bounded, factor=xp.asarray(factor)))
    return case


def read_parameters(case: Case) -> dict[str, AnyArray]:
    """The values of all parameters that have a place [cells], by name; of levels, the first's."""
    return {name: read_parameter(case, name) for name in PLACES}


def read_parameter(case: Case, name: str) -> AnyArray:
    """The values of a parameter [cells]; of levels, the first's."""
    place = PLACES[name]
    values: AnyArray = np.asarray(getattr(getattr(case, place.part), place.field))
    return values if place.level is None else values[0 if place.level == "node" else 1]


def _replace(old: Array, new: Array) -> Array:
    # Levels that a machine does not have stay without bound.
    return xp.where(old >= ENDLESS, old, new) if old.ndim > new.ndim else new


def scale_bounded(old: Array, factor: Array) -> Array:
    """Values times a factor; what is without bound stays so."""
    # Infinity times a factor has no derivative; what is added to it has one, which is 0.
    bounded = xp.isfinite(old)
    return xp.where(bounded, xp.where(bounded, old, 0.0) * factor, old)


def _change(case: Case, place: Place, change: Change) -> Case:
    """The case with another value in one place."""
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


def _join_levels(inner: Array, outer: Array) -> Array:
    """Levels in a row, which may vary with different cells."""
    cells = xp.broadcast_shapes(inner.shape[1:], outer.shape[1:])
    levels = (xp.broadcast_to(each, (each.shape[0], *cells)) for each in (inner, outer))
    return xp.concatenate(tuple(levels))
