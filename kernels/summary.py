"""Summaries: what remains of a line of PE counts, how far a strategy scales and what stops it.

Reduced inside the compiled program, for every slice across the line.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from kernels import fastest, reasons
from kernels.arrays import Cells
from kernels.fastest import Fastest, defined, faster
from kernels.flags import Limit
from kernels.fold import fold
from kernels.line import Line
from kernels.reasons import Reasons, counts, longer


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Summary:
    """Of each slice. reasons and counts: of those alone that their flags tell apart.

    counts: how many PE counts each limit forbids or marks, along a leading dimension in the order
    of `Limit`.
    """

    fastest: Fastest
    reasons: Reasons
    counts: Cells


def nothing(shape: tuple[int, ...], of_limits: tuple[int, ...]) -> Summary:
    """Of no PE counts: `shape` slices, of which flags tell `of_limits` apart."""
    return Summary(
        fastest=fastest.nothing(shape),
        reasons=reasons.nothing(of_limits),
        counts=jnp.zeros((len(Limit), *of_limits), jnp.int32),
    )


def lengthened(earlier: Summary, line: Line) -> Summary:
    """With the PE counts of `line` besides, which are larger."""
    shape, of_limits = earlier.fastest.fastest_pe.shape, earlier.reasons.largest_pe.shape
    fast = fold(line, fastest.of_each, faster, fastest.nothing, shape)
    why = fold(line, reasons.of_each, longer, reasons.nothing, of_limits)
    return Summary(
        fastest=faster(earlier.fastest, fast),
        reasons=longer(earlier.reasons, why),
        counts=jnp.add(earlier.counts, counts(line.limit)),
    )


def summarise(line: Line) -> Summary:
    """Of a whole line."""
    others = jnp.broadcast_shapes(*(jnp.shape(each)[1:] for each in vars(line).values()))
    found = lengthened(nothing(others, jnp.shape(line.limit)[1:]), line)
    return complete(found)


def complete(found: Summary) -> Summary:
    """Once no PE counts are to come."""
    return replace(found, fastest=defined(found.fastest))
