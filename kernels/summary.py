"""Summaries: what remains of a line of PE counts, how far a strategy scales and what stops it.

Reduced inside the compiled program, for every slice across the line.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from kernels import fastest, reasons
from kernels.fastest import Fastest, defined, faster
from kernels.line import Line
from kernels.reasons import Reasons, longer


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


def complete(found: Summary) -> Summary:
    """Once no PE counts are to come."""
    return replace(found, fastest=defined(found.fastest))


def summarise(line: Line) -> Summary:
    """Of a whole line."""
    others = jnp.broadcast_shapes(*(jnp.shape(each)[1:] for each in vars(line).values()))
    return complete(lengthened(nothing(others, jnp.shape(line.limit)[1:]), line))
