"""Collectives as libraries run them: the fastest of rings, trees, switches and two levels.

Each algorithm is affine in its bytes: a start-up per message, and seconds per byte
(docs/machine.md, Collectives). The tree is NCCL's (Jeaugey 2019, "Massively scale your deep
learning training with NCCL 2.4"). q PEs, each r from the next; q_0 of them in each of n nodes.

To add one: its name in `Algorithm` (`kernels.options`); its costs here, affine in messages and
bytes; its name in `collectives` of `grids.spec`, and in `REFUSED_CHOICES` what to write
where an oracle lacks it. Once more, independently: tests/helpers/reference_network.py.
Test: tests/kernels/test_library_collectives.py.
"""

from dataclasses import replace
from functools import reduce

from paradl.kernels.arrays import Cells, Flags, xp
from paradl.kernels.machine.network import (
    Cost,
    Network,
    Ring,
    SpanningRing,
    count_chains,
    count_in_node,
    find_path,
)
from paradl.kernels.options import Algorithm

ROUNDING = 1e-9
# Costs of the algorithms that may be used; the fastest counts.
Costs = tuple[Cost, ...]


def time_fastest(costs: Costs, m: Cells, messages: Cells) -> Cells:
    """Compute seconds of `messages` collectives of m bytes in total, by the fastest algorithm."""
    return reduce(xp.minimum, (cost.time(m, messages) for cost in costs))


def contend(costs: Costs, phi: Cells) -> Costs:
    """Return the costs if `phi` flows share the bandwidth."""
    return tuple(cost.contended(phi) for cost in costs)


def limit_to_first(costs: Costs, limited: Flags | bool) -> Costs:
    """Replace all costs by the first algorithm's where `limited`: one program serves both."""
    first, *others = costs
    return first, *(
        Cost(
            xp.where(limited, first.alpha, other.alpha),
            xp.where(limited, first.beta, other.beta),
        )
        for other in others
    )


def gather_costs(
    network: Network, ring: Ring, algorithm: Algorithm, collective: str = "all_gather"
) -> Costs:
    """List costs of an all-gather or reduce-scatter of `m` bytes, gathered size."""
    by_ring, in_levels = _gather_by_ring(network, ring), _gather_in_levels(network, ring)
    match algorithm:
        case "two-level":
            return (in_levels,)
        case "auto":
            return _gather_as_measured(network, ring, collective) or (
                *(by_ring, in_levels),
                *_use_switches(network, ring, gathers=1, traffic=0.0),
            )
        case _:  # gathers have no tree
            return (by_ring,)


def ring_costs(network: Network, ring: Ring, collective: str) -> Costs:
    """List costs of an all-gather or reduce-scatter by rings through all PEs, in nodes by switches.

    Start-ups (q-n) alpha_0 + (n-1) alpha: a ring passes each PE once, and n - 1 times between n
    nodes (NCCL, src/graph/tuning.cc).
    """
    measured = _gather_as_measured(network, ring, collective)
    if measured:
        return measured
    nodes = ring.thin(count_in_node(network, ring)).degree
    hops = (ring.degree - nodes) * network.latency[0]
    startups = hops + (nodes - 1) * find_path(network, ring).alpha
    by_ring = replace(_gather_by_ring(network, ring), alpha=startups)
    is_inside = xp.equal(nodes, 1)
    switches = _use_switches(network, ring, gathers=1, traffic=0.0)
    return by_ring, *(
        Cost(
            xp.where(is_inside, by_switch.alpha, by_ring.alpha),
            xp.where(is_inside, by_switch.beta, by_ring.beta),
        )
        for by_switch in switches
    )


def reduce_costs(network: Network, ring: Ring, algorithm: Algorithm) -> Costs:
    """List costs of an all-reduce of m bytes: a reduce-scatter and a gather, or one by itself."""
    whole = whole_costs(network, ring, algorithm)
    if not joins_gathers(network, algorithm):
        return whole
    # Two gathers by switches never beat the sum that they make at once.
    rings = gather_costs(replace(network, measured=None, switch_latency=None), ring, algorithm)
    return *(Cost(2 * cost.alpha, 2 * cost.beta) for cost in rings), *whole


def time_all_to_all(
    network: Network, ring: Ring, m: Cells, messages: Cells, alike: float = 1.0
) -> Cells:
    """Compute seconds of `messages` all-to-alls of m bytes per PE in total.

    Each PE sends to q_0-1 others in its node one by one, and to those beyond it over all links of
    the node, which its PEs use at once. alike: PEs that each part of m goes to, drawn at random;
    those of a node share one copy between nodes.
    """
    lines = network.list_lines("all_to_all") or (network,)
    return reduce(xp.minimum, (_send_to_all(line, ring, m, messages, alike) for line in lines))


def _send_to_all(network: Network, ring: Ring, m: Cells, messages: Cells, alike: float) -> Cells:
    """Compute (q_0-1)(alpha_0 + m/q beta_0) + (n-1) alpha + (q-q_0)/q m share beta of a full node.

    share = n/k (1 - (1 - 1/n)^k), k = `alike`: nodes that k copies reach over k.
    """
    q, h = ring.degree, count_in_node(network, ring)
    latency = find_path(network, ring).alpha
    crowded = find_path(network, SpanningRing(q, ring.p, ring.p, ring.span)).beta
    inside = network.find_inside(ring.p).time(m / q, messages)
    n = xp.ceil(q / h)
    once = 1.0 if alike == 1 else n / alike * (1 - (1 - 1 / n) ** alike)
    between = (n - 1) * messages * latency + (q - h) / q * m * once * crowded
    return (h - 1) * inside + between


def joins_gathers(network: Network, algorithm: Algorithm) -> bool:
    """True if an all-reduce may be a reduce-scatter and a gather."""
    measured = algorithm == "auto" and (network.measured or {}).get("all_reduce")
    return algorithm != "tree" and not measured


def whole_costs(network: Network, ring: Ring, algorithm: Algorithm) -> Costs:
    """List costs of all-reduces that are no two gathers, as far as the algorithm allows them."""
    lines = network.list_lines("all_reduce") if algorithm == "auto" else ()
    if lines:
        # Twice a ring's cost per byte with a tree's start-ups.
        return tuple(
            Cost(_reduce_by_tree(line, ring).alpha, 2 * _gather_by_ring(line, ring).beta)
            for line in lines
        )
    if algorithm not in ("tree", "auto"):
        return ()
    switches = _use_switches(network, ring, gathers=2, traffic=1.0) if algorithm == "auto" else ()
    return _reduce_by_tree(network, ring), *switches


def _use_switches(network: Network, ring: Ring, gathers: int, traffic: float) -> Costs:
    """Return the costs by switches in nodes, and rings between them; none without switches.

    NVLink SHARP (NCCL's algorithm NVLS): the switch reads the buffers of q_0 PEs and sums them,
    or multicasts a part of each. So a PE sends m and, in an all-reduce, its summed part m/q_0: the
    factor (q_0-1)/(q_0+1) of nccl-tests. A gather sends less than a ring only in start-ups.
    """
    if network.switch_latency is None:
        return ()
    share = count_in_node(network, ring)
    between = ring.thin(share)
    across = _pass_around(between.degree, find_path(network, between), share)
    several = xp.where(xp.greater(share, 1), 1.0, 0.0)
    return (
        Cost(
            several * network.switch_latency + gathers * across.alpha,
            several * (1 + traffic / share) * network.find_inside(ring.p).beta
            + gathers * across.beta,
        ),
    )


def _gather_as_measured(network: Network, ring: Ring, collective: str) -> Costs:
    """Return the costs of measured lines; where only the other gather was measured, of that one.

    Both take a ring's steps. A ring's cost per byte with the start-ups of two levels, which grow
    with nodes.
    """
    names = sorted(("all_gather", "reduce_scatter"), key=lambda name: name != collective)
    lines = next(filter(None, map(network.list_lines, names)), ())
    return tuple(
        replace(_gather_by_ring(line, ring), alpha=_gather_in_levels(line, ring).alpha)
        for line in lines
    )


def _gather_by_ring(network: Network, ring: Ring) -> Cost:
    """Return the cost (q-1)(alpha + m/q beta)."""
    return _pass_around(ring.degree, find_path(network, ring), 1.0)


def _gather_in_levels(network: Network, ring: Ring) -> Cost:
    """Return (n-1)(alpha_n + m/(q_0 n) beta_n) between nodes + (q_0-1)(alpha_0 + m/q_0 beta_0)."""
    share = count_in_node(network, ring)
    between = ring.thin(share)
    across = _pass_around(between.degree, find_path(network, between), share)
    within = _pass_around(share, network.find_inside(ring.p), 1.0)
    return Cost(across.alpha + within.alpha, across.beta + within.beta)


def _pass_around(degree: Cells, path: Cost, parts: Cells) -> Cost:
    """Return the cost (q-1)(alpha + m/(parts q) beta)."""
    steps = degree - 1
    return Cost(steps * path.alpha, steps / (parts * degree) * path.beta)


def _reduce_by_tree(network: Network, ring: Ring) -> Cost:
    """Return the cost 2 ((q_t-1) alpha_0 + ceil(log2 n_t) alpha + m beta); 0 for one PE."""
    (share, nodes), path = count_chains(network, ring), find_path(network, ring)
    # Subtracted, since rounding may put the logarithm of a power of two above an integer.
    levels = xp.ceil(xp.log2(nodes) - ROUNDING)
    startup = (share - 1) * network.latency[0] + levels * path.alpha
    several = xp.where(xp.greater(ring.degree, 1), 2.0, 0.0)
    return Cost(several * startup, several * path.beta)
