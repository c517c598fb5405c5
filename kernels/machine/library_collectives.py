"""Collectives as libraries run them: by rings, trees, or in two levels, whichever is the fastest.

Each algorithm is affine in its bytes: a start-up a message, and seconds a byte. Docs/machine.md,
Collectives; the tree is NCCL's (Jeaugey 2019, "Massively scale your deep learning training with
NCCL 2.4"). q PEs at stride s; h of them share each of n nodes.
"""

from dataclasses import dataclass, replace
from functools import reduce

import jax

from kernels.arrays import Cells, Flags
from kernels.machine.network import Link, Network
from kernels.machine.rings import Ring, count_chains, count_in_node, find_path
from kernels.namespace import xp
from kernels.options import Algorithm


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cost:
    """A collective by one algorithm: `startup` [s a message], `beta` [s/B]."""

    startup: Cells
    beta: Cells

    def time(self, m: Cells, messages: Cells) -> Cells:
        """Seconds of `messages` collectives of m bytes in all."""
        return messages * self.startup + m * self.beta


ROUNDING = 1e-9
# The algorithms that may be chosen, of which the fastest is.
Costs = tuple[Cost, ...]


def time_fastest(costs: Costs, m: Cells, messages: Cells) -> Cells:
    """Seconds of `messages` collectives of m bytes in all, by the fastest algorithm."""
    return reduce(xp.minimum, (cost.time(m, messages) for cost in costs))


def contend(costs: Costs, phi: Cells) -> Costs:
    """The costs where `phi` flows share the bandwidth."""
    return tuple(replace(cost, beta=cost.beta * phi) for cost in costs)


def limit_to_first(costs: Costs, limited: Flags | bool) -> Costs:
    """The costs, all of them the first algorithm's where `limited`: one program for both."""
    first, *others = costs
    return first, *(
        Cost(
            xp.where(limited, first.startup, other.startup),
            xp.where(limited, first.beta, other.beta),
        )
        for other in others
    )


def gather_costs(network: Network, ring: Ring, algorithm: Algorithm) -> Costs:
    """An all-gather, or a reduce-scatter, of `m` bytes in the end."""
    by_ring, in_levels = _gather_by_ring(network, ring), _gather_in_levels(network, ring)
    match algorithm:
        case "two-level":
            return (in_levels,)
        case "auto":
            lines = network.list_lines("all_gather")
            return tuple(_gather_as_measured(line, ring) for line in lines) or (by_ring, in_levels)
        case _:  # a gather has no tree
            return (by_ring,)


def reduce_costs(network: Network, ring: Ring, algorithm: Algorithm) -> Costs:
    """An all-reduce of m bytes: a reduce-scatter and a gather, or a tree."""
    lines = network.list_lines("all_reduce") if algorithm == "auto" else ()
    if lines:
        return tuple(_reduce_as_measured(line, ring) for line in lines)
    trees = tree_costs(network, ring, algorithm)
    if algorithm == "tree":
        return trees
    gathers = gather_costs(replace(network, measured=None), ring, algorithm)
    return *(Cost(2 * cost.startup, 2 * cost.beta) for cost in gathers), *trees


def _gather_as_measured(line: Network, ring: Ring) -> Cost:
    """A ring's seconds a byte, and the start-ups of two levels, which grow with nodes alone."""
    return Cost(_gather_in_levels(line, ring).startup, _gather_by_ring(line, ring).beta)


def _reduce_as_measured(line: Network, ring: Ring) -> Cost:
    """Twice a ring's seconds a byte, and a tree's start-ups."""
    return Cost(_reduce_by_tree(line, ring).startup, 2 * _gather_by_ring(line, ring).beta)


def tree_costs(network: Network, ring: Ring, algorithm: Algorithm) -> Costs:
    """An all-reduce of m bytes by a tree, where there may be one."""
    return (_reduce_by_tree(network, ring),) if algorithm in ("tree", "auto") else ()


def _gather_by_ring(network: Network, ring: Ring) -> Cost:
    """(q-1)(alpha + m/q beta)."""
    return _pass_around(ring.degree, find_path(network, ring), 1.0)


def _gather_in_levels(network: Network, ring: Ring) -> Cost:
    """(n-1)(alpha_r + m/(h n) beta_r) between nodes, (h-1)(alpha_0 + m/h beta_0) inside them."""
    share = count_in_node(network, ring)
    between = ring.thin(share)
    inside = Link(network.latency[0], 1 / network.bandwidth[0])
    across = _pass_around(between.degree, find_path(network, between), share)
    within = _pass_around(share, inside, 1.0)
    return Cost(across.startup + within.startup, across.beta + within.beta)


def _pass_around(degree: Cells, path: Link, parts: Cells) -> Cost:
    """(q-1)(alpha + m/(parts q) beta)."""
    steps = degree - 1
    return Cost(steps * path.alpha, steps / (parts * degree) * path.beta)


def _reduce_by_tree(network: Network, ring: Ring) -> Cost:
    """2 ((h_t-1) alpha_0 + ceil(log2 n_t) alpha + m beta); nothing for one PE."""
    (share, nodes), path = count_chains(network, ring), find_path(network, ring)
    # Rounding may leave the logarithm of a power of two above its whole number.
    levels = xp.ceil(xp.log2(nodes) - ROUNDING)
    startup = (share - 1) * network.latency[0] + levels * path.alpha
    several = xp.where(xp.greater(ring.degree, 1), 2.0, 0.0)
    return Cost(several * startup, several * path.beta)
