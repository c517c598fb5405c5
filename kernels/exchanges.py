"""Exchanges: what PEs send each other, on rails, and what of it computing hides.

The machine oracle's terms of communication (docs/machine.md, Network and Overlap). Symbols: p PEs =
p1 replicas x p2; b samples of one of A passes; a bytes an item, g a gradient; S segments; omega the
part of the time computing that hides communication.
"""

from dataclasses import dataclass, replace
from functools import reduce

import jax

from kernels.arrays import Cells, PerLevel
from kernels.case import Case
from kernels.group import GroupWork
from kernels.hosts import exchange_staged, scatter_samples
from kernels.library_collectives import (
    Cost,
    Costs,
    gather_costs,
    reduce_costs,
    time_fastest,
    tree_costs,
)
from kernels.namespace import find_quantile, xp
from kernels.network import Link, Network, nodes
from kernels.options import Options
from kernels.rings import Ring, find_flow, find_path
from kernels.run import Run
from kernels.software import Software
from kernels.terms import Terms
from kernels.touched import count_exchanged


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Paths:
    """What exchanges cost whatever their bytes, by flow; found once, ahead of the cells.

    gradients: all-reduces across replicas. gathers, trees: all that a group gathers, or reduces by
    trees, of the layers, for each class of sizes: seconds a pass, and seconds a sample. ends:
    gathers where a spatial split ends. halos, stages: from PE to PE. hosts [s]: of gradients that
    pass through host memory. slowest, slowest_node: z(p) and z(n), how far the slowest of p PEs,
    and of n nodes, is from their mean, in standard deviations.
    """

    gradients: Costs
    gathers: tuple[Costs, ...]
    trees: tuple[Costs, ...]
    ends: Costs
    halos: Link
    stages: Link
    hosts: Cells
    slowest: Cells
    slowest_node: Cells


@dataclass(frozen=True)
class Flow:
    """Seconds of a flow: exposed, and while PEs compute."""

    exposed: Cells
    hidden: Cells


def find_paths(case: Case) -> Paths:
    """The paths of a case's flows."""
    work, run, software = case.machine_work, case.run, case.software
    algorithm = case.options.algorithm
    network = _reach(case.network, software)
    of_layers = _reach_inside(network, software.node_collective)
    of_gradients = _reach_inside(network, software.node_reduce)
    staged = _stage_through_hosts(network, software)
    inside = Ring(run.p2, xp.ones(()), run.p)
    slowest_node = find_slowest(nodes(run.p, network))
    halos = find_flow(staged, run.p, inside.span, work.halo_stride)
    return Paths(
        gradients=_contend(
            reduce_costs(of_gradients, ring_replicas(work, run), case.options.gradients), run.phi
        ),
        gathers=_add_messages(gather_costs(of_layers, inside, algorithm), work, run),
        trees=_add_messages(tree_costs(of_layers, inside, algorithm), work, run),
        ends=_contend(gather_costs(of_layers, inside, algorithm), network.phi_gather),
        halos=halos.contended(network.phi_halo),
        stages=find_path(network, inside),
        hosts=exchange_staged(work, run, of_gradients, software, slowest_node),
        slowest=find_slowest(run.p),
        slowest_node=slowest_node,
    )


def exchange(case: Case, computing: Terms, paths: Paths) -> Terms:
    """The terms of one pass `computing`, and those of what its PEs exchange."""
    work, run, options = case.machine_work, case.run, case.options
    window = case.software.overlap * computing.forward_backward
    halos = _hide(_time_halos(work, run, paths.halos), window)
    stages = _send_stages(work, run, paths.stages, window)
    backward = _take_backward(options)
    # What halos hide of the backward pass, gradients cannot.
    left = backward * xp.maximum(window - halos.hidden, 0.0)
    gradients = _exchange_gradients(
        case, paths.gradients, paths.hosts, left / count_segments(work, run)
    )
    return replace(
        computing,
        gradient_exchange=gradients.exposed,
        layer_collectives=_time_layers(case, paths),
        halo_exchange=halos.exposed,
        split_gather=_time_ends(case, paths.ends),
        sample_scatter=scatter_samples(work, run, case.network, case.software, paths.slowest_node),
        point_to_point=stages.exposed + _send_on_path(work, run, paths.stages),
        log_files=_open_logs(case),
        straggler_wait=_wait_for_slowest(case, computing, paths),
        hidden_communication=gradients.hidden + run.accumulate * (halos.hidden + stages.hidden),
    )


def ring_replicas(work: GroupWork, run: Run) -> Ring:
    """Each PE with its likes in other replicas; where all have all weights, all PEs."""
    whole = xp.equal(work.replicated, 1)
    return Ring(xp.where(whole, run.p, run.p1), xp.where(whole, 1.0, run.p2), run.p)


def count_segments(work: GroupWork, run: Run) -> Cells:
    """S, in which a pipeline or a placed group of several PEs goes backward; 1 of all others."""
    several = xp.equal(work.segmented, 1) & xp.greater(run.p2, 1)
    return xp.where(several, run.segments, 1.0)


def _contend(costs: Costs, phi: Cells) -> Costs:
    """The costs where `phi` flows share the bandwidth."""
    return tuple(replace(each, beta=each.beta * phi) for each in costs)


def _reach(network: Network, software: Software) -> Network:
    """The network as software reaches it: what of its links, and how soon."""
    # By their spans: a machine of one node has its level several times (grids/inputs/machine.py).
    beyond = xp.greater(network.span, network.span[0])
    of_level = xp.expand_dims(beyond, tuple(range(beyond.ndim, xp.ndim(network.latency))))

    def scale(stated: PerLevel, factor: Cells) -> PerLevel:
        return stated * xp.where(of_level, factor, 1.0)

    return replace(
        network,
        latency=scale(network.latency, software.startup),
        bandwidth=scale(network.bandwidth, software.rail),
        # A share of what is stated, as the rail's: here it is of what that leaves.
        flow=software.flow / software.rail,
    )


def _reach_inside(network: Network, share: Cells) -> Network:
    """The network with a share of the bandwidth inside a node."""
    inside = network.bandwidth[0] * share
    others = xp.broadcast_to(network.bandwidth[1:], (len(network.span) - 1, *xp.shape(inside)))
    return replace(network, bandwidth=xp.concatenate([inside[None], others]))


def _stage_through_hosts(network: Network, software: Software) -> Network:
    """The network as it is through host memory, where PEs do not see each other's."""
    startup = software.halo_startup * network.staging_latency
    # All paths begin inside a node: what bounds it bounds them.
    # So that infinite bandwidth, of who has no such path, divides: else there are no derivatives.
    share = 1 / xp.maximum(network.bandwidth[0] / network.staging_bandwidth, 1.0)
    return _reach_inside(replace(network, latency=xp.maximum(network.latency, startup)), share)


def find_slowest(p: Cells) -> Cells:
    """z(p), the expected largest of p standard normal numbers (Blom 1958); 0 of one."""
    return xp.where(xp.greater(p, 1), find_quantile((p - 0.375) / (p + 0.25)), 0.0)


def _exchange_gradients(case: Case, costs: Costs, hosts: Cells, window: Cells) -> Flow:
    """K messages, of which all but the last can leave while the backward pass runs."""
    work, run, software = case.machine_work, case.run, case.software
    m = run.gradient_delta * count_gradient(work, run)
    # None at all where nothing has weights.
    messages = xp.minimum(xp.maximum(m / software.bucket, 1.0), work.tensors)
    # A spatial group's either pass through host memory, or in one ring of all PEs.
    staged = xp.equal(work.replicated, 1) & xp.isfinite(case.network.staging_bandwidth)
    seconds = xp.where(staged, 0.0, time_fastest(costs, m, messages))
    part = 1 / xp.maximum(messages, 1.0)
    last = seconds * part
    early = _hide(seconds - last, (1 - part) * window)
    return Flow(hosts + last + early.exposed, early.hidden)


def count_gradient(work: GroupWork, run: Run) -> Cells:
    """Weights of the all-reduce of gradients: of tables, the rows of an iteration's samples."""
    if work.touched is None:
        return work.gradient
    return count_exchanged(work.touched, run.accumulate * run.batch, run.p1)


def count_sent(case: Case) -> float:
    """Weights whose gradients one cell's all-reduce takes as long as."""
    return float(xp.max(xp.asarray(count_gradient(case.machine_work, case.run))))


def _add_messages(costs: Costs, work: GroupWork, run: Run) -> tuple[Costs, ...]:
    """Seconds a pass, and a sample, of all messages of each class of sizes."""
    # A tuple: slices of an array with a dimension of classes are a tenth as fast in the cells.
    return tuple(
        tuple(Cost(messages * each.startup, run.delta * items * each.beta) for each in costs)
        for messages, items in zip(work.gathers, work.gathered, strict=True)
    )


def _time_layers(case: Case, paths: Paths) -> Cells:
    """By filter AG forward, and RS backward; by channel AR forward, and AG backward.

    Each class of sizes takes its fastest algorithm.
    """
    work, batch, algorithm = case.machine_work, case.run.batch, case.options.algorithm
    seconds = xp.zeros(())
    for of_class, by_tree in zip(paths.gathers, paths.trees, strict=True):
        gather = time_fastest(of_class, batch, 1.0)
        # An all-reduce is a reduce-scatter and a gather, or a tree.
        rings = () if algorithm == "tree" else (2 * gather,)
        reduction = reduce(xp.minimum, (*rings, *(each.time(batch, 1.0) for each in by_tree)))
        often = 2 * work.by_filter + work.by_channel
        seconds = seconds + often * gather + work.by_channel * reduction
    return seconds


def _time_halos(work: GroupWork, run: Run, path: Link) -> Cells:
    """sum of 2 P2P(b a halo(x_l)) + 2 P2P(b a halo(dL/dy_l))."""
    m = 2 * run.batch * run.delta * work.halo_items
    return 4 * work.halo_exchanges * path.alpha + m * path.beta


def _time_ends(case: Case, costs: Costs) -> Cells:
    """2 AG(p2, m), m = b a y_split, where a spatial split ends before the last layer.

    Through host memory 2 (1 - 1/p2) m / (gather_rate SB), whatever the number of layers: forward
    MPI gathers, and backward sends back, what PEs and hosts share page by page.
    """
    work, run, network = case.machine_work, case.run, case.network
    m = run.batch * run.delta * work.split_items
    gathers = xp.where(xp.greater(work.split_items, 0), 1.0, 0.0)
    beta = network.phi_gather / (case.software.gather_rate * xp.asarray(network.staging_bandwidth))
    through_hosts = 2 * (1 - 1 / run.p2) * m * beta
    staged = xp.isfinite(network.staging_bandwidth)
    return xp.where(staged, through_hosts, 2 * time_fastest(costs, m, gathers))


def _open_logs(case: Case) -> Cells:
    """(2 L_c + 1/A) p tau: log files that every PE opens, one after the other in one folder.

    Twice a pass at each of the L_c convolutions that a group of several PEs exchanges, and once an
    iteration where replicas exchange gradients (ChainerMNX, as ParaDL's authors ran it).
    """
    work, run = case.machine_work, case.run
    layers = xp.where(xp.greater(run.p2, 1), 2 * work.logged, 0.0)
    gradients = xp.where(xp.greater(run.p1, 1), 1 / run.accumulate, 0.0)
    return (layers + gradients) * run.p * case.software.log_open


def _send_stages(work: GroupWork, run: Run, path: Link, window: Cells) -> Flow:
    """2 (p2+S-2) P2P(b/S a c), of which 2 (S-1) can pass while stages compute."""
    m = run.batch / run.segments * run.delta * work.stage_items
    # A single stage sends nothing.
    several = work.pipelined * xp.where(xp.greater(run.p2, 1), 1.0, 0.0)
    once = several * (path.alpha + m * path.beta)
    waiting = run.segments - 1
    steady = _hide(2 * waiting * once, waiting / run.segments * window)
    return Flow(2 * (run.p2 - 1) * once + steady.exposed, steady.hidden)


def _send_on_path(work: GroupWork, run: Run, path: Link) -> Cells:
    """What passes on a placed group's critical path: all of it is waited for."""
    return work.path_messages * path.alpha + run.batch * run.delta * work.path_items * path.beta


def _hide(seconds: Cells, window: Cells) -> Flow:
    """What a window hides of a flow."""
    exposed = xp.maximum(seconds - window, 0.0)
    return Flow(exposed, seconds - exposed)


def _take_backward(options: Options) -> float:
    """The part of forward and backward passes that is backward; layers run again are part of it."""
    return 2 / 3 if options.recompute == "none" else 3 / 4


def _wait_for_slowest(case: Case, computing: Terms, paths: Paths) -> Cells:
    """For the slowest PE, once a pass; updates follow when all PEs have waited."""
    passing = computing.forward_backward + computing.pipeline_bubble
    passing = passing + computing.pass_overhead + computing.launch_wait
    return case.software.jitter * paths.slowest * passing
