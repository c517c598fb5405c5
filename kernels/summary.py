"""Summaries: what remains of a line of PE counts, how far a strategy scales and what stops it.

Reduced inside the compiled program, for every slice across the line.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from kernels import fastest, reasons
from kernels.fastest import Fastest, defined, faster
from kernels.line import Line
from kernels.reasons import Reasons, longer
from kernels.statistics import COUNTS, STATISTICS


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Summary:
    """Of each slice; the reasons have size 1 along dimensions where no flags vary."""

    fastest: Fastest
    reasons: Reasons


def nothing(shape: tuple[int, ...], of_limits: tuple[int, ...]) -> Summary:
    """Of no PE counts: `shape` slices, of which flags tell `of_limits` apart."""
    return Summary(fastest.nothing(shape), reasons.nothing(of_limits))


def lengthened(earlier: Summary, line: Line) -> Summary:
    """With the PE counts of `line` besides, which are larger."""
    shape, of_limits = jnp.shape(earlier.fastest.fastest_pe), jnp.shape(earlier.reasons.largest_pe)
    return Summary(
        faster(earlier.fastest, fastest.fastest(line, shape)),
        longer(earlier.reasons, reasons.reasons(line, of_limits)),
    )


def table(found: Summary) -> Array:
    """The statistics, in their order, of every slice: float64 [statistic, slices]."""
    values = vars(defined(found.fastest)) | vars(found.reasons)
    values |= dict(zip(COUNTS, values.pop("counts"), strict=True))
    shape = jnp.shape(found.fastest.fastest_pe)
    return jnp.stack([jnp.broadcast_to(values[name], shape).astype(float) for name in STATISTICS])


def summarise(line: Line) -> Array:
    """The table of a whole line."""
    others = jnp.broadcast_shapes(*(jnp.shape(each)[1:] for each in vars(line).values()))
    return table(lengthened(nothing(others, jnp.shape(line.limit)[1:]), line))
