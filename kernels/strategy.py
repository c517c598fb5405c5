"""A strategy as terms of time: a group strategy inside p2 PEs, data parallelism across p1.

ParaDL, Table III and section 4.5 (hybrids). Symbols: p PEs = p1 replicas x p2; B global batch,
b samples of one of A passes through a replica, B = A b p1; D samples an epoch; I = D/B iterations;
S segments; delta bytes an item; phi contention.
"""

from dataclasses import replace

import jax.numpy as jnp

from kernels import filter_channel, pipeline, spatial
from kernels.arrays import Cells
from kernels.case import Case
from kernels.collectives import Algorithm, all_gather, all_reduce, point_to_point
from kernels.division import Division
from kernels.group import GroupWork, whole_work
from kernels.layers import LayerTimes
from kernels.memory import hold_alive
from kernels.network import Network, link, nodes, staged_link
from kernels.options import Options
from kernels.run import Run
from kernels.terms import TERMS, Terms


def group_work(division: Division, times: LayerTimes) -> GroupWork:
    """The layers reduced to what the busiest PE of a group does: stage one."""
    work = _divide_work(division, times)
    return work if division.options.memory == "bound" else hold_alive(work, division)


def _divide_work(division: Division, times: LayerTimes) -> GroupWork:
    match division.group:
        case "none":
            return whole_work(division.layers, times)
        case "spatial":
            return spatial.work(division, times)
        case "pipeline":
            return pipeline.work(division, times)
        case "filter" | "channel":
            return filter_channel.work(division, times, division.group)


def iteration_terms(case: Case) -> Terms:
    """Seconds an iteration, closed-form in everything that a sweep varies: stage two."""
    return accumulate_passes(_time_one_pass(case), case.run)


def accumulate_passes(terms: Terms, run: Run) -> Terms:
    """The terms of A passes whose gradients are added up, and exchanged and applied once."""
    often = {name: getattr(terms, name) for name, term in TERMS.items() if not term.once}
    return replace(terms, **{name: run.accumulate * seconds for name, seconds in often.items()})


def _time_one_pass(case: Case) -> Terms:
    """Seconds an iteration that has one pass of b samples a replica."""
    work, run, network, options = case.work, case.run, case.network, case.options
    forward_backward = run.batch * work.forward_backward
    return Terms(
        forward_backward=forward_backward,
        pipeline_bubble=pipeline_bubble(work, run, forward_backward),
        weight_update=jnp.asarray(work.update),
        pass_overhead=pass_overhead(work, run, options),
        split_overhead=jnp.zeros(()),
        input_wait=jnp.zeros(()),  # it depends on all the others: `kernels.run.wait_for_input`
        gradient_exchange=gradient_exchange(work, run, network, options),
        layer_collectives=layer_collectives(work, run, network, options.algorithm),
        halo_exchange=halo_exchange(work, run, network),
        split_gather=split_gather(work, run, network, options.algorithm),
        point_to_point=stage_to_stage(work, run, network),
    )


def feed_seconds(work: GroupWork, run: Run, network: Network) -> Cells:
    """Seconds in which the hosts of a node feed an iteration.

    B / n samples; or all of a replica's, where a group of several nodes needs them whole: each node
    of a filter or channel group, and a pipeline's first.
    """
    shared = run.global_batch / nodes(run.p, network)
    whole = (work.by_filter + work.by_channel + work.pipelined) * run.accumulate * run.batch
    return jnp.asarray(jnp.maximum(shared, whole) / network.input_rate)


def pipeline_bubble(work: GroupWork, run: Run, forward_backward: Cells) -> Cells:
    """(p2-1)/S of the slowest stage's time, while the pipeline fills and drains."""
    # Of Table III's b (p2+S-1)/S the rest: b itself is `forward_backward`.
    return jnp.asarray(work.pipelined * (run.p2 - 1) / run.segments * forward_backward)


def pass_overhead(work: GroupWork, run: Run, options: Options) -> Cells:
    """sum f_l, or of a pipeline's slowest stage in each of its p2 + S - 1 steps."""
    if options.weights_read == "sample":  # Table III has none
        return jnp.zeros(())
    # A segment is a pass of its own; a pipeline of one stage is not cut into any.
    more = jnp.where(jnp.greater(run.p2, 1), run.p2 + run.segments - 2, 0.0)
    return jnp.asarray((1 + work.pipelined * more) * work.fixed)


def gradient_exchange(work: GroupWork, run: Run, network: Network, options: Options) -> Cells:
    """AR(p1 of p, delta |w|), or of all p PEs where the group replicates the weights.

    Replicated weights reduce in one ring of p (the paper's table), or inside each group and then
    across the groups (`hierarchical`, as the authors ran it).
    """
    m = run.gradient_delta * work.gradient
    # p, not p1: replicas' PEs lie as far apart as the whole run reaches.
    across = link(network, run.p).contended(run.phi)
    if options.allreduce == "ring":
        ring = jnp.where(jnp.equal(work.replicated, 1), run.p, run.p1)
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
    return jnp.sum(gather + reduce, axis=0)


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
    return jnp.where(jnp.greater(work.split_items, 0), gather, 0.0)


def stage_to_stage(work: GroupWork, run: Run, network: Network) -> Cells:
    """2 (p2+S-2) max_{i<p2} P2P(b/S delta y_Gi); a single stage sends nothing."""
    m = run.batch / run.segments * run.delta * work.stage_items
    steps = 2 * (run.p2 + run.segments - 2)
    send = work.pipelined * steps * point_to_point(m, link(network, run.p2))
    # For p2 = 1 there would be 2 (S-1) start-ups to nobody.
    return jnp.where(jnp.greater(run.p2, 1), send, 0.0)
