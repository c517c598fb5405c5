"""Slopes of stage one: d work / d log x, in parameters of a PE that layers' times depend on.

Layers are differentiated once, when they are summed, so that a cell's elasticity takes only a few
sums, like its time. The layout of layers stays fixed.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from kernels.compiled import compiled
from kernels.configuration.places import PLACES, scale_bounded
from kernels.derivatives.slopes import Factors, push_forward
from kernels.oracle.formulas import reduce_work
from kernels.work.division import Division

# Fields of a group's work that depend on a PE; Table III has no `fixed`.
TIMED = ("forward_backward", "update", "fixed")


@compiled("parameters")
def differentiate_layers(
    division: Division, *, parameters: tuple[str, ...]
) -> dict[str, dict[str, Array]]:
    """Compute d work / d log parameter [cells], by parameter and field of a group's work [s]."""

    def reduce_scaled(factors: Factors) -> dict[str, Array]:
        fields = {PLACES[name].field: factor for name, factor in factors.items()}
        scaled = {
            field: scale_bounded(jnp.asarray(getattr(division.pe, field)), factor)
            for field, factor in fields.items()
        }
        work = reduce_work(replace(division, pe=replace(division.pe, **scaled)))
        return {name: jnp.asarray(getattr(work, name)) for name in TIMED if hasattr(work, name)}

    return {name: push_forward(reduce_scaled, name) for name in parameters}
