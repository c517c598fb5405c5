"""Exchanges of Table III: each flow has the smallest level of the network that spans it.

ParaDL, Table III and section 4.5 (hybrids). Symbols: p PEs = p1 replicas x p2; b samples of one
pass; S segments; delta bytes an item; phi contention, made by hand.
"""

from dataclasses import replace

from kernels.arrays import Cells
from kernels.case import Case
from kernels.collectives import Algorithm, all_gather, all_reduce, point_to_point
from kernels.group import GroupWork
from kernels.namespace import xp
from kernels.network import Network, link, staged_link
from kernels.options import Options
from kernels.run import Run
from kernels.terms import Terms


def exchange_by_levels(case: Case, computing: Terms) -> Terms:
    """The terms of one pass `computing`, and those of what its PEs exchange."""
    work, run, network, options = case.work, case.run, case.network, case.options
    return replace(
        computing,
        gradient_exchange=gradient_exchange(work, run, network, options),
        layer_collectives=layer_collectives(work, run, network, options.algorithm),
        halo_exchange=halo_exchange(work, run, network),
        split_gather=split_gather(work, run, network, options.algorithm),
        point_to_point=stage_to_stage(work, run, network),
    )


def gradient_exchange(work: GroupWork, run: Run, network: Network, options: Options) -> Cells:
    """AR(p1 of p, delta |w|), or of all p PEs where the group replicates the weights.

    Replicated weights reduce in one ring of p (the paper's table), or inside each group and then
    across the groups (`hierarchical`, as the authors ran it).
    """
    m = run.gradient_delta * work.gradient
    # p, not p1: replicas' PEs lie as far apart as the whole run reaches.
    across = link(network, run.p).contended(run.phi)
    if options.allreduce == "ring":
        ring = xp.where(xp.equal(work.replicated, 1), run.p, run.p1)
        return all_reduce(ring, m, across, options.algorithm)
    # No phi inside a group: it is that of rings that leave a node.
    inside = all_reduce(run.p2, m, link(network, run.p2), options.algorithm)
    return work.replicated * inside + all_reduce(run.p1, m, across, options.algorithm)


def layer_collectives(work: GroupWork, run: Run, network: Network, algorithm: Algorithm) -> Cells:
    """sum_{l<G, s_l=1} AG(p2, b delta y_l) + AR(p2, b delta y_l)."""
    m = run.batch * run.delta * work.gathered
    ring = link(network, run.p2)
    # By filter AG forward and AR backward, by channel the other way round: one sum for both.
    gather = all_gather(run.p2, m, ring, algorithm, work.gathers)
    reduce = all_reduce(run.p2, m, ring, algorithm, work.gathers)
    # The dimension of messages: one, or with `best`, chosen for each by itself, one a layer.
    return xp.sum(gather + reduce, axis=0)


def halo_exchange(work: GroupWork, run: Run, network: Network) -> Cells:
    """sum over K_l > 1 of 2 P2P(b delta halo(x_l)) + 2 P2P(b delta halo(dL/dy_l))."""
    path = staged_link(network, run.p2).contended(network.phi_halo)
    # Items are of both directions already, and so count twice; messages, four a layer.
    m = 2 * run.batch * run.delta * work.halo_items
    return point_to_point(m, path, messages=4 * work.halo_exchanges)


def split_gather(work: GroupWork, run: Run, network: Network, algorithm: Algorithm) -> Cells:
    """2 AG(p2, b delta y_split), where a spatial split ends before the last layer."""
    path = staged_link(network, run.p2).contended(network.phi_gather)
    m = run.batch * run.delta * work.split_items
    # The parts forward, and their gradients backward.
    gather = 2 * all_gather(run.p2, m, path, algorithm)
    # An exchange of nothing would still have its start-ups.
    return xp.where(xp.greater(work.split_items, 0), gather, 0.0)


def stage_to_stage(work: GroupWork, run: Run, network: Network) -> Cells:
    """2 (p2+S-2) max_{i<p2} P2P(b/S delta y_Gi); a single stage sends nothing."""
    m = run.batch / run.segments * run.delta * work.stage_items
    steps = 2 * (run.p2 + run.segments - 2)
    send = work.pipelined * steps * point_to_point(m, link(network, run.p2))
    # For p2 = 1 there would be 2 (S-1) start-ups to nobody.
    return xp.where(xp.greater(run.p2, 1), send, 0.0)
