"""Table III, stage two: seconds of an iteration, and bytes of the fullest PE, in closed form.

ParaDL, Table III and section 4.5 (hybrids). Symbols: p PEs = p1 replicas x p2; b samples of one
pass through a replica; S segments; delta bytes an item; gamma memory reuse; phi contention, made by
hand. Each flow has the smallest level of the network that spans it.
"""

from kernels.arrays import Cells
from kernels.configuration.case import Case
from kernels.configuration.run import Run
from kernels.machine.collectives import all_gather, all_reduce, point_to_point
from kernels.machine.network import Network, link, staged_link
from kernels.names.terms import TERMS, Terms
from kernels.namespace import xp
from kernels.options import Algorithm, Options
from kernels.paper.work import TableWork
from kernels.work.group import find_fullest


def time_pass(case: Case, work: TableWork) -> Terms:
    """Seconds of an iteration of one pass of b samples a replica."""
    run, network, options = case.run, case.network, case.options
    forward_backward = run.batch * work.forward_backward
    # All other terms are the machine's alone.
    nothing = dict.fromkeys(TERMS, xp.zeros(()))
    terms = {
        "forward_backward": forward_backward,
        # Of b (p2+S-1)/S the rest: b itself is `forward_backward`.
        "pipeline_bubble": xp.asarray(
            work.pipelined * (run.group - 1) / run.segments * forward_backward
        ),
        "weight_update": xp.asarray(work.update),
        "gradient_exchange": time_gradients(work, run, network, options),
        "layer_collectives": time_layers(work, run, network, options.algorithm),
        "halo_exchange": time_halos(work, run, network),
        "split_gather": time_split(work, run, network, options.algorithm),
        "point_to_point": time_stages(work, run, network),
    }
    return Terms(**nothing | terms)


def time_gradients(work: TableWork, run: Run, network: Network, options: Options) -> Cells:
    """AR(p1 of p, delta |w|), or of all p PEs where the group replicates the weights.

    Replicated weights reduce in one ring of p (the paper's table), or inside each group and then
    across the groups (`hierarchical`, as the authors ran it).
    """
    m = run.gradient_delta * work.gradient
    # p, not p1: replicas' PEs lie as far apart as the whole run reaches.
    across = link(network, run.p).contended(run.phi)
    if options.allreduce == "ring":
        ring = xp.where(xp.equal(work.replicated, 1), run.p, run.replicas)
        return all_reduce(ring, m, across, options.algorithm)
    # No phi inside a group: it is that of rings that leave a node.
    inside = all_reduce(run.group, m, link(network, run.group), options.algorithm)
    return work.replicated * inside + all_reduce(run.replicas, m, across, options.algorithm)


def time_layers(work: TableWork, run: Run, network: Network, algorithm: Algorithm) -> Cells:
    """sum_{l<G, s_l=1} AG(p2, b delta y_l) + AR(p2, b delta y_l)."""
    m = run.batch * run.delta * work.gathered
    ring = link(network, run.group)
    # By filter AG forward and AR backward, by channel the other way round: one sum for both.
    gather = all_gather(run.group, m, ring, algorithm, work.gathers)
    reduction = all_reduce(run.group, m, ring, algorithm, work.gathers)
    # The dimension of messages: one, or with `best`, chosen for each by itself, one a layer.
    return xp.sum(gather + reduction, axis=0)


def time_halos(work: TableWork, run: Run, network: Network) -> Cells:
    """sum over K_l > 1 of 2 P2P(b delta halo(x_l)) + 2 P2P(b delta halo(dL/dy_l))."""
    path = staged_link(network, run.group).contended(network.phi_halo)
    # Items are of both directions already, and so count twice; messages, four a layer.
    m = 2 * run.batch * run.delta * work.halo_items
    return point_to_point(m, path, messages=4 * work.halo_exchanges)


def time_split(work: TableWork, run: Run, network: Network, algorithm: Algorithm) -> Cells:
    """2 AG(p2, b delta y_split), where a spatial split ends before the last layer."""
    path = staged_link(network, run.group).contended(network.phi_gather)
    m = run.batch * run.delta * work.split_items
    # The parts forward, and their gradients backward.
    gather = 2 * all_gather(run.group, m, path, algorithm)
    # An exchange of nothing would still have its start-ups.
    return xp.where(xp.greater(work.split_items, 0), gather, 0.0)


def time_stages(work: TableWork, run: Run, network: Network) -> Cells:
    """2 (p2+S-2) max_{i<p2} P2P(b/S delta y_Gi); a single stage sends nothing."""
    m = run.batch / run.segments * run.delta * work.stage_items
    steps = 2 * (run.group + run.segments - 2)
    send = work.pipelined * steps * point_to_point(m, link(network, run.group))
    # For p2 = 1 there would be 2 (S-1) start-ups to nobody.
    return xp.where(xp.greater(run.group, 1), send, 0.0)


def find_bound(case: Case, work: TableWork) -> Cells:
    """gamma delta (2b (|x|+|y|) + 2|w| + |bi|) of the fullest stage [B].

    ParaDL, Table III, column Maximum Memory: every activation and weight with its gradient, every
    bias; gamma in (0, 1] is the part that buffer reuse leaves. It takes ResNet-50 for six times as
    large as it is.
    """
    run = case.run
    items = find_fullest(work.activations, work.parameters, run.batch)
    return xp.asarray(run.gamma * run.delta * items)
