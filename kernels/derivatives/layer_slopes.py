"""Slopes of stage one: d work / d log x, in parameters of a PE that the times of layers depend on.

The layers are differentiated once, beside their reduction: what a cell's elasticity then takes is a
few sums, as its time does. How layers are laid out stays as it is.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from kernels.compiled import compiled
from kernels.configuration.places import PLACES, scale_bounded
from kernels.derivatives.slopes import Factors, push_forward
from kernels.oracle.formulas import reduce_work
from kernels.work.division import Division

# Times of layers alone depend on a PE: of a group's work these, of which Table III has no `fixed`.
TIMED = ("forward_backward", "update", "fixed")


@compiled("parameters")
def differentiate_layers(
    division: Division, *, parameters: tuple[str, ...]
) -> dict[str, dict[str, Array]]:
    """d work / d log parameter [cells], by parameter and field of a group's work [s]."""

    def reduce_scaled(factors: Factors) -> dict[str, Array]:
        fields = {PLACES[name].field: factor for name, factor in factors.items()}
        scaled = {
            field: scale_bounded(jnp.asarray(getattr(division.pe, field)), factor)
            for field, factor in fields.items()
        }
        work = reduce_work(replace(division, pe=replace(division.pe, **scaled)))
        return {each: jnp.asarray(getattr(work, each)) for each in TIMED if hasattr(work, each)}

    return {name: push_forward(reduce_scaled, name) for name in parameters}
