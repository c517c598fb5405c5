"""A strategy as terms of time: a group strategy inside p2 PEs, data parallelism across p1.

ParaDL, Table III and section 4.5 (hybrids). Symbols: p PEs = p1 replicas x p2; B global batch,
b = B/p1 samples a replica; D samples an epoch; I = D/B iterations; S segments; delta bytes an item;
phi contention.
"""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from kernels import filter_channel, pipeline, spatial
from kernels.arrays import Cells
from kernels.collectives import Algorithm, all_gather, all_reduce, point_to_point
from kernels.compute import Optimizer
from kernels.group import GroupWork, Placement, shared_work
from kernels.layers import Layers, LayerTimes
from kernels.network import Network, link, staged_link

GroupStrategy = Literal["none", "spatial", "pipeline", "filter", "channel"]


@dataclass(frozen=True)
class Options:
    """Choices that select a formula, fixed when the program is compiled.

    iterations: "exact" counts D/B of them; "ceil" rounds up, so that the last, smaller batch pays a
    whole iteration's communication and update, but computes no sample that is not there.
    """

    algorithm: Algorithm = "ring"
    allreduce: Literal["ring", "hierarchical"] = "ring"
    iterations: Literal["exact", "ceil"] = "exact"
    optimizer: Optimizer = "sgd"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Run:
    """One configuration a cell. `phi` is the contention of the gradient exchange."""

    p: Cells
    p1: Cells
    p2: Cells
    batch: Cells
    global_batch: Cells
    samples: Cells
    segments: Cells
    delta: Cells
    gamma: Cells
    phi: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Terms:
    """Seconds of each part: three of compute, then five of communication."""

    forward_backward: Cells
    pipeline_bubble: Cells
    weight_update: Cells
    gradient_exchange: Cells
    layer_collectives: Cells
    halo_exchange: Cells
    split_gather: Cells
    point_to_point: Cells

    @property
    def compute(self) -> Cells:
        """[s] computing."""
        return self.forward_backward + self.pipeline_bubble + self.weight_update

    @property
    def communication(self) -> Cells:
        """[s] communicating."""
        return (
            self.gradient_exchange
            + self.layer_collectives
            + self.halo_exchange
            + self.split_gather
            + self.point_to_point
        )


def group_work(
    group: GroupStrategy,
    layers: Layers,
    times: LayerTimes,
    placement: Placement,
    p2: Cells,
    b: Cells,
    algorithm: Algorithm,
) -> GroupWork:
    """Stage one: reduce the layers to what the busiest PE of a group does."""
    match group:
        case "none":
            return shared_work(layers, times, jnp.ones((1,) * jnp.ndim(layers.x)), b)
        case "spatial":
            return spatial.work(layers, times, placement, p2, b)
        case "pipeline":
            return pipeline.work(layers, times, placement, p2, b)
        case "filter" | "channel":
            return filter_channel.work(layers, times, placement, p2, b, algorithm)


def iteration_terms(work: GroupWork, run: Run, network: Network, options: Options) -> Terms:
    """Stage two: seconds an iteration, closed-form in everything that a sweep varies."""
    forward_backward = run.batch * work.forward_backward
    return Terms(
        forward_backward=forward_backward,
        pipeline_bubble=work.pipelined * (run.p2 - 1) / run.segments * forward_backward,
        weight_update=jnp.asarray(work.update),
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
    m = run.delta * work.gradient
    across = link(network, run.p).contended(run.phi)
    if options.allreduce == "ring":
        ring = jnp.where(jnp.equal(work.replicated, 1), run.p, run.p1)
        return all_reduce(ring, m, across, options.algorithm)
    inside = all_reduce(run.p2, m, link(network, run.p2), options.algorithm)
    return work.replicated * inside + all_reduce(run.p1, m, across, options.algorithm)


def layer_collectives(work: GroupWork, run: Run, network: Network, algorithm: Algorithm) -> Cells:
    """sum_{l<G, s_l=1} AG(p2, b delta y_l) + AR(p2, b delta y_l)."""
    m = run.batch * run.delta * work.gathered
    ring = link(network, run.p2)
    gather = all_gather(run.p2, m, ring, algorithm, work.gathers)
    reduce = all_reduce(run.p2, m, ring, algorithm, work.gathers)
    return jnp.sum(gather + reduce, axis=0)


def halo_exchange(work: GroupWork, run: Run, network: Network) -> Cells:
    """sum over K_l > 1 of 2 P2P(b delta halo(x_l)) + 2 P2P(b delta halo(dL/dy_l))."""
    path = staged_link(network, run.p2).contended(network.phi_halo)
    m = 2 * run.batch * run.delta * work.halo_items
    return point_to_point(m, path, messages=4 * work.halo_exchanges)


def split_gather(work: GroupWork, run: Run, network: Network, algorithm: Algorithm) -> Cells:
    """2 AG(p2, b delta y_split), where a spatial split ends before the last layer."""
    path = staged_link(network, run.p2).contended(network.phi_gather)
    m = run.batch * run.delta * work.split_items
    gather = 2 * all_gather(run.p2, m, path, algorithm)
    return jnp.where(jnp.greater(work.split_items, 0), gather, 0.0)


def stage_to_stage(work: GroupWork, run: Run, network: Network) -> Cells:
    """2 (p2+S-2) max_{i<p2} P2P(b/S delta y_Gi); a single stage sends nothing."""
    m = run.batch / run.segments * run.delta * work.stage_items
    steps = 2 * (run.p2 + run.segments - 2)
    send = work.pipelined * steps * point_to_point(m, link(network, run.p2))
    return jnp.where(jnp.greater(run.p2, 1), send, 0.0)


def epoch_terms(terms: Terms, run: Run, options: Options) -> Terms:
    """Seconds an epoch: what a sample costs D/B times, what an iteration costs I times."""
    passes = run.samples / run.global_batch
    iterations = jnp.ceil(passes) if options.iterations == "ceil" else passes
    return Terms(
        forward_backward=terms.forward_backward * passes,
        pipeline_bubble=terms.pipeline_bubble * passes,
        weight_update=terms.weight_update * iterations,
        gradient_exchange=terms.gradient_exchange * iterations,
        layer_collectives=terms.layer_collectives * iterations,
        halo_exchange=terms.halo_exchange * iterations,
        split_gather=terms.split_gather * iterations,
        point_to_point=terms.point_to_point * iterations,
    )
