"""The calibrated oracle: Table III's terms, with what measured runs show that they leave out.

Built on the same reductions of the layers. b samples a replica; p PEs = p1 replicas x p2 in n =
p / PEs of a node, at least one; delta bytes an item. Where each equation comes from, and its effect
on cross-validated accuracy, stand in docs/accuracy.md.
"""

from dataclasses import replace

import jax.numpy as jnp

from kernels.arrays import Cells
from kernels.calibration import LARGE_MESSAGE, Calibration
from kernels.case import Case
from kernels.collectives import all_gather, all_reduce
from kernels.compute import PE
from kernels.exchanges_by_level import halo_exchange, stage_to_stage
from kernels.group import GroupWork
from kernels.network import Link, Network, link, nodes
from kernels.options import Options
from kernels.run import Run
from kernels.strategy import accumulate_passes, pipeline_bubble
from kernels.terms import Terms

# Overheads are a part of the time that was measured: at most this one, so that some is left for
# arithmetic, however small the layers. No parameter of the fit.
OVERHEADS = 0.8


def iteration_terms(case: Case) -> Terms:
    """Seconds an iteration, of a case with a calibration."""
    work, run, network, pe, options = case.work, case.run, case.network, case.pe, case.options
    calibration = case.calibration
    assert calibration is not None  # which is why these formulas were chosen
    forward_backward = computing(work, run, pe, calibration)
    # Exactly 1 within one node. Without it, communication of left-out configurations is 79.9 %
    # accurate, and 81.8 % with it (docs/accuracy.md, What the calibration adds; so all below).
    congested = 1 + calibration.congestion * elsewhere(run.p, network)
    terms = Terms(
        forward_backward=forward_backward,
        pipeline_bubble=pipeline_bubble(work, run, forward_backward),
        # As in Table III: no term that was found corrects it.
        weight_update=jnp.asarray(work.update),
        pass_overhead=jnp.zeros(()),  # part of the serial time, of which `computing` takes it
        gradient_packing=jnp.zeros(()),
        input_wait=jnp.zeros(()),
        split_overhead=split_overhead(work, run, network, pe, calibration),
        gradient_exchange=congested * gradient_exchange(work, run, network, calibration, options),
        layer_collectives=congested * layer_collectives(work, run, network, calibration, options),
        halo_exchange=congested * halo_exchange(work, run, _halo_path(network, calibration)),
        # Table III's name, but no gather: what spatial runs show is how their samples come in.
        split_gather=congested * input_scatter(work, run, network, calibration),
        sample_scatter=jnp.zeros(()),
        point_to_point=congested * stage_to_stage(work, run, network),
        straggler_wait=jnp.zeros(()),
        hidden_communication=jnp.zeros(()),
    )
    return accumulate_passes(terms, run)


def elsewhere(p: Cells, network: Network) -> Cells:
    """(n-1)/n: the part of a PE's peers that are in other nodes."""
    return jnp.asarray(1 - 1 / nodes(p, network))


def computing(work: GroupWork, run: Run, pe: PE, calibration: Calibration) -> Cells:
    """Convolutions divide by p2, and in a spatial group what is elementwise; the rest stays.

    Elementwise layers move their items `elementwise_passes` times, and each layer has an overhead
    of its own: both are part of the serial time b sum(FW+BW).
    """
    serial = run.batch * work.serial
    # Compute of left-out series: 84.7 % without what elementwise layers move, 80.8 % without the
    # overhead of layers, 87.9 % with both.
    moved = run.batch * run.delta * work.elementwise
    elementwise = calibration.elementwise_passes * moved / pe.memory_bandwidth
    overhead = calibration.layer_overhead * work.layers
    # 1e-30 s stands for none at all, of which the whole is kept.
    most = jnp.minimum(1.0, OVERHEADS * serial / jnp.maximum(elementwise + overhead, 1e-30))
    elementwise, overhead = most * elementwise, most * overhead
    arithmetic = serial - elementwise - overhead
    # In the proportion of the layers' times: what was measured is the total of a model.
    convolutions = arithmetic * work.convolution / work.serial
    # By filter and channel activations are gathered, and each PE passes over all of their items.
    divided = convolutions + work.replicated * elementwise
    rest = serial - divided
    # 1 or 0: of these marks a group has one at most.
    split = _by_layer(work) + work.replicated
    whole = jnp.where(jnp.equal(split, 1), divided / run.p2 + rest, serial)
    # A pipeline's slowest stage has the part of the whole that it has of the layers' times.
    return jnp.where(
        jnp.equal(work.pipelined, 1), serial * work.forward_backward / work.serial, whole
    )


def split_overhead(
    work: GroupWork, run: Run, network: Network, pe: PE, calibration: Calibration
) -> Cells:
    """What dividing layers costs a PE beside arithmetic.

    Gathered activations are put together: (p2-1)/p2 of each output, once by channel, by filter
    forward and backward, where each peer's part has an overhead, too. Gradients that go through
    host memory are copied there and back. By channel, what is slow of their exchange is paid again.
    """
    # By channel, activations are gathered on the way back alone.
    copies = 2 * work.by_filter + work.by_channel
    gathered = run.batch * run.delta * jnp.sum(work.gathered, axis=0) * (1 - 1 / run.p2)
    together = copies * gathered / (calibration.assembly * pe.memory_bandwidth)
    # A time for each peer's part, whatever its size. By channel no such time was fitted.
    parts = 2 * work.by_filter * jnp.sum(work.gathers, axis=0) * (run.p2 - 1)
    staged = _staged(work, run)
    # To host memory and back. Compute of left-out configurations: 86.7 % without, 92.0 % with it.
    packed = 2 * staged * _staging(network) / calibration.packing
    # One series of runs shows it, and no mechanism is known. Compute of left-out configurations:
    # 90.2 % without, 92.0 % with it.
    slow = work.by_channel * _slow(staged, run, network, calibration)
    return together + parts * calibration.chunk_overhead + packed + slow


def gradient_exchange(
    work: GroupWork, run: Run, network: Network, calibration: Calibration, options: Options
) -> Cells:
    """One ring of the replicas' PEs; or through host memory inside each node, then between nodes.

    The latter takes all weights of a spatial group, and those that a single group does not divide.
    """
    ring, between = _reduce_paths(network, run.p, calibration)
    several = jnp.where(jnp.greater(run.p2, 1), calibration.contention, 1.0)
    # The fitted factor may be below 1, but no ring is faster than one that has its links alone.
    contention = jnp.maximum(1.0, several * run.phi)
    m = run.delta * work.gradient
    rings = all_reduce(run.p1, m, ring.contended(contention), options.algorithm)
    staged = _staged(work, run)
    inside = jnp.minimum(run.p, network.pes_per_node)
    within, _ = _reduce_paths(network, inside, calibration)
    levels = all_reduce(inside, staged, within, options.algorithm) + all_reduce(
        nodes(run.p, network), staged, between, options.algorithm
    )
    # Table III has a spatial group reduce in one ring of p. Here host memory takes its weights.
    direct = (1 - work.replicated) * rings
    # Where nothing is staged there is no start-up either, which `levels` would have.
    return direct + jnp.where(staged > 0, levels, 0.0) + _slow(staged, run, network, calibration)


def layer_collectives(
    work: GroupWork, run: Run, network: Network, calibration: Calibration, options: Options
) -> Cells:
    """By filter AG forward, and RS backward; by channel AR forward, and AG backward."""
    m = run.batch * run.delta * work.gathered
    path = link(network, run.p2)
    inside = jnp.less_equal(run.p2, network.pes_per_node)
    faster = jnp.where(inside, calibration.node_collective, calibration.collective)
    later = jnp.where(inside, 1.0, calibration.reduce_latency)
    ring = Link(path.alpha * later, path.beta / faster)
    # A reduce-scatter is timed as the all-gather that it is in reverse.
    once = all_gather(run.p2, m, ring, options.algorithm, work.gathers)
    # Table III has an AG and an AR, 3 rings, for both: totals of left-out configurations are then
    # 91.2 % accurate, and 92.7 % with 2 by filter.
    return (2 * work.by_filter + 3 * work.by_channel) * jnp.sum(once, axis=0)


def input_scatter(work: GroupWork, run: Run, network: Network, calibration: Calibration) -> Cells:
    """The part of a spatial group's samples that is slow on its way through host memory."""
    m = run.batch * run.delta * work.sample
    slow = jnp.maximum(m - LARGE_MESSAGE, 0) * _staging(network) / calibration.large_message
    return jnp.where(jnp.greater(run.p2, 1), work.replicated * slow, 0.0)


def _by_layer(work: GroupWork) -> Cells:
    return work.by_filter + work.by_channel


def _staged(work: GroupWork, run: Run) -> Cells:
    """Bytes of gradients that go through host memory."""
    # Table III has no exchange where there is one replica. What a filter or channel group does not
    # divide, each of its PEs has gradients of: totals 89.5 % without this, 92.7 % with it.
    alone = jnp.where(jnp.equal(run.p1, 1) & jnp.greater(run.p2, 1), _by_layer(work), 0.0)
    spatial = jnp.where(jnp.greater(run.p, 1), work.replicated, 0.0)
    return run.delta * (spatial + alone) * work.undivided


def _slow(m: Cells, run: Run, network: Network, calibration: Calibration) -> Cells:
    """Sending and receiving what of `m` bytes is beyond LARGE_MESSAGE, to other nodes."""
    # Totals of left-out configurations: 79.1 % without large messages, 92.7 % with them.
    large = 2 * elsewhere(run.p, network) * jnp.maximum(m - LARGE_MESSAGE, 0)
    return jnp.asarray(large * _staging(network) / calibration.large_message)


def _staging(network: Network) -> Cells:
    """[s/B] through host memory: 0 where there is no such path, and its bandwidth is infinite.

    Inverted before a parameter divides it, the derivative in that one is 0, too, and not 0 x inf.
    """
    return 1 / jnp.asarray(network.staging_bandwidth)


def _reduce_paths(network: Network, q: Cells, calibration: Calibration) -> tuple[Link, Link]:
    """The path of an all-reduce among `q` PEs, and the one between the nodes that they fill."""
    path = link(network, q)
    between = Link(path.alpha * calibration.reduce_latency, path.beta / calibration.reduce)
    inside = jnp.less_equal(q, network.pes_per_node)
    return Link(
        jnp.where(inside, path.alpha, between.alpha),
        jnp.where(inside, path.beta / calibration.node_reduce, between.beta),
    ), between


def _halo_path(network: Network, calibration: Calibration) -> Network:
    """The network with the start-up of halo messages that was measured."""
    return replace(network, staging_latency=calibration.halo_latency * network.staging_latency)
