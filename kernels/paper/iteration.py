"""Table III, stage two: seconds of an iteration and bytes of the fullest PE, in closed form.

ParaDL, Table III and section 4.5 (hybrids). Symbols: p PEs = p1 replicas x p2; b samples of one
pass through a replica; S segments; delta bytes per item; gamma memory reuse; phi contention, a
given factor. Each flow uses the smallest level of the network that spans it.
"""

from paradl.kernels.arrays import Cells, xp
from paradl.kernels.names.terms import NOTHING, TERMS
from paradl.kernels.options import Algorithm, Options
from paradl.kernels.paper.inputs import TableNetwork, TableRun, TableWork
from paradl.kernels.paper.network import (
    all_gather,
    all_reduce,
    find_path,
    find_staged_path,
    point_to_point,
)
from paradl.kernels.paper.sums import find_fullest


def time_pass(
    work: TableWork, run: TableRun, network: TableNetwork, options: Options
) -> dict[str, Cells]:
    """Compute the terms of an iteration of one pass, with b samples per replica."""
    forward_backward = run.batch * work.forward_backward
    # Others exist only in the machine oracle.
    return dict.fromkeys(TERMS, NOTHING) | {
        "forward_backward": forward_backward,
        # The table's factor is b (p2+S-1)/S, of which b is `forward_backward`.
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


def time_gradients(
    work: TableWork, run: TableRun, network: TableNetwork, options: Options
) -> Cells:
    """Compute AR(p1 of p, delta |w|), or of all p PEs if the group replicates the weights.

    Replicated weights reduce in one ring of p (the paper's table), or inside each group and then
    across groups (`hierarchical`, as the authors ran it).
    """
    m = run.gradient_delta * work.gradient
    # p, not p1: replicas are spread over all PEs of the run.
    across = find_path(network, run.p).contended(run.phi)
    if options.allreduce == "ring":
        ring = xp.where(xp.equal(work.replicated, 1), run.p, run.replicas)
        return all_reduce(ring, m, across, options.algorithm)
    # No phi inside a group, since it is the contention of rings that leave a node.
    inside = all_reduce(run.group, m, find_path(network, run.group), options.algorithm)
    return work.replicated * inside + all_reduce(run.replicas, m, across, options.algorithm)


def time_layers(
    work: TableWork, run: TableRun, network: TableNetwork, algorithm: Algorithm
) -> Cells:
    """Compute sum_{l<G, s_l=1} AG(p2, b delta y_l) + AR(p2, b delta y_l)."""
    m = run.batch * run.delta * work.gathered
    ring = find_path(network, run.group)
    # Filter: AG forward and AR backward; channel: the other way round. The sum is the same.
    gather = all_gather(run.group, m, ring, algorithm, work.gathers)
    reduction = all_reduce(run.group, m, ring, algorithm, work.gathers)
    # Over messages: one in total, or one per layer with `best`, which chooses for each message.
    return xp.sum(gather + reduction, axis=0)


def time_halos(work: TableWork, run: TableRun, network: TableNetwork) -> Cells:
    """Compute the sum over K_l > 1 of 2 P2P(b delta halo(x_l)) + 2 P2P(b delta halo(dL/dy_l))."""
    path = find_staged_path(network, run.group).contended(network.phi_halo)
    # `halo_items` sums halo(x) and halo(dL/dy), so times 2; a layer has four messages.
    m = 2 * run.batch * run.delta * work.halo_items
    return point_to_point(m, path, messages=4 * work.halo_exchanges)


def time_split(
    work: TableWork, run: TableRun, network: TableNetwork, algorithm: Algorithm
) -> Cells:
    """Compute 2 AG(p2, b delta y_split) if a spatial split ends before the last layer."""
    path = find_staged_path(network, run.group).contended(network.phi_gather)
    m = run.batch * run.delta * work.split_items
    # Activations forward, gradients backward.
    gather = 2 * all_gather(run.group, m, path, algorithm)
    # An empty exchange would still have start-ups.
    return xp.where(xp.greater(work.split_items, 0), gather, 0.0)


def time_stages(work: TableWork, run: TableRun, network: TableNetwork) -> Cells:
    """Compute 2 (p2+S-2) max_{i<p2} P2P(b/S delta y_Gi); 0 for a single stage."""
    m = run.batch / run.segments * run.delta * work.stage_items
    steps = 2 * (run.group + run.segments - 2)
    send = work.pipelined * steps * point_to_point(m, find_path(network, run.group))
    # The formula would have 2 (S-1) start-ups for p2 = 1.
    return xp.where(xp.greater(run.group, 1), send, 0.0)


def find_bound(work: TableWork, run: TableRun) -> Cells:
    """Compute gamma delta (2b (|x|+|y|) + 2|w| + |bi|) of the fullest stage [B].

    ParaDL, Table III, column Maximum Memory: activations and weights with gradients, and biases;
    gamma in (0, 1] accounts for reused buffers. With gamma = 1, six times ResNet-50's real memory.
    """
    items = find_fullest(work.activations, work.parameters, run.batch)
    return xp.asarray(run.gamma * run.delta * items)
