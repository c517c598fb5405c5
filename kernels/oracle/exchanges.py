"""Exchanges: what PEs send each other, on rails, and what of it computing hides.

The machine oracle's terms of communication (docs/machine.md, Network and Overlap). Symbols: p PEs =
p1 replicas x p2; b samples of one of A passes; a bytes an item, g a gradient; S segments; omega the
part of the time computing that hides communication.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import jax

from kernels.arrays import Cells, PerLevel
from kernels.configuration.case import Case
from kernels.configuration.run import Run
from kernels.machine.library_collectives import (
    Costs,
    contend,
    limit_to_first,
    reduce_costs,
    time_fastest,
)
from kernels.machine.network import Link, Network, nodes
from kernels.machine.rings import ClusteredRing, Ring, find_path
from kernels.machine.software import Software
from kernels.names.terms import TERMS, Terms
from kernels.namespace import find_quantile, xp
from kernels.options import Options
from kernels.parallelism.layout import count_segments, list_exchanges, list_parts
from kernels.parallelism.parallelism import Exchange, Reach
from kernels.parallelism.spatial import Halos, find_halo_path
from kernels.work.group import GroupWork
from kernels.work.touched import count_exchanged

# What of a pass takes longer on a slow PE.
PASSING = ("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Paths:
    """Costs of exchanges that no bytes change, by flow; computed once, ahead of the cells.

    gradients: all-reduces across replicas. groups: what each parallelism sends inside a group.
    hosts [s]: of gradients that pass through host memory. slowest: z(p), how far the slowest of p
    PEs is from their mean, in standard deviations.
    """

    gradients: Costs
    groups: Mapping[str, Any]
    hosts: Cells
    slowest: Cells


def find_paths(case: Case) -> Paths:
    """The paths of a case's flows."""
    run, reach, of_gradients = case.run, find_reach(case), _reach_gradients(case)
    replicas = ring_replicas(case)
    hosts = (
        parallelism.reduce_through_hosts(sent, case, of_gradients, reach.slowest_node, replicas)
        for parallelism, sent in list_parts(case)
    )
    costs = reduce_costs(of_gradients, replicas, case.options.algorithm)
    if case.options.algorithm == "auto":  # of which rings are the first
        costs = limit_to_first(costs, case.network.whole_gradients)
    return Paths(
        gradients=contend(costs, run.phi),
        groups={
            parallelism.name: parallelism.find_paths(sent, case, reach)
            for parallelism, sent in list_parts(case)
        },
        hosts=reduce(add, hosts, xp.zeros(())),
        slowest=find_slowest(run.p),
    )


def exchange(case: Case, computing: Mapping[str, Cells], paths: Paths) -> Terms:
    """The terms of one pass `computing`, by name, and those of what its PEs exchange."""
    left = case.software.overlap * computing["forward_backward"]
    seconds: dict[str, Cells] = dict.fromkeys(TERMS, xp.zeros(())) | dict(computing)
    for sent in _list_exchanges(case, paths):
        # Of several a term is the sum.
        seconds[sent.term] = seconds[sent.term] + sent.steps * sent.seconds
        if sent.hideable is None:  # subtracting zeros took a tenth of a cell's time
            continue
        once = xp.minimum(sent.hideable, sent.share * xp.maximum(left, 0.0) / sent.cuts)
        hidden = sent.steps * once
        seconds[sent.term] = seconds[sent.term] - hidden
        # An iteration hides what is exchanged in each of its passes A times.
        often = 1.0 if TERMS[sent.term].once else case.run.accumulate
        seconds["hidden_communication"] = seconds["hidden_communication"] + often * hidden
        if sent.before:
            left = left - sent.cuts * once
    seconds["straggler_wait"] = _wait_for_slowest(case, computing, paths)
    return Terms(**seconds)


def _list_exchanges(case: Case, paths: Paths) -> list[Exchange]:
    """Those inside groups, of layers, come before gradients, which then find less to hide them."""
    inside = list_exchanges(case, paths.groups)
    return [*inside, _exchange_gradients(case, paths), _log_gradients(case)]


def ring_replicas(case: Case) -> Ring:
    """Each PE with its likes in other replicas; where all have all weights, all PEs."""
    run, alike = case.run, case.find_alike()
    if alike is None:
        return Ring(run.replicas, run.group, run.p)
    degree, others = run.replicas * alike.degree, run.group / alike.degree
    if len(run.degrees) == 1:
        return Ring(degree, others, run.p)
    several = xp.greater(run.replicas, 1)
    return ClusteredRing(
        degree,
        alike.stride,
        run.p,
        xp.where(several, run.p, alike.span),
        near=alike.degree,
        clusters=others / alike.stride,
        several=several,
        thinned=xp.ones(()),
    )


def find_links(case: Case) -> tuple[Link, Link, Link]:
    """The paths from PE to PE of a group, of its PEs with their likes, and of a halo."""
    run, reach = case.run, find_reach(case)
    inside, one = Ring(run.group, xp.ones(()), run.p), xp.ones(())
    halos = [
        (case.find_ring(part.name), sent.stride)
        for part, sent in list_parts(case)
        if isinstance(sent, Halos)
    ]
    return (
        find_path(reach.plain, inside),
        find_path(case.network, ring_replicas(case)),
        find_halo_path(*(halos[0] if halos else (inside, one)), reach.staged),
    )


def find_reach(case: Case) -> Reach:
    """The network as the exchanges inside a group reach it."""
    network, software = _reach(case.network, case.software), case.software
    return Reach(
        plain=network,
        layers=_reach_inside(network, software.node_collective),
        staged=_stage_through_hosts(network, software),
        slowest_node=find_slowest(nodes(case.run.p, case.network)),
    )


def _reach_gradients(case: Case) -> Network:
    """The network as the exchange of gradients reaches it."""
    return _reach_inside(_reach(case.network, case.software), case.software.node_reduce)


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


def _exchange_gradients(case: Case, paths: Paths) -> Exchange:
    """K messages, of which all but the last can leave while the backward pass runs."""
    run, software = case.run, case.software
    m = run.gradient_delta * count_gradient(case.machine_work, run)
    # None at all where nothing has weights.
    messages = xp.minimum(xp.maximum(m / software.bucket, 1.0), case.machine_work.tensors)
    seconds = time_fastest(paths.gradients, m, messages)
    alike = case.find_alike()
    if alike is not None:  # they pass through host memory, where there is such a path
        staged = xp.isfinite(case.network.staging_bandwidth) & xp.greater(alike.degree, 1)
        seconds = xp.where(staged, 0.0, seconds)
    hosts = paths.hosts
    if case.options.zero == 3:
        # Weights are gathered in each pass forward and backward, gradients reduced once
        # (Rajbhandari et al. 2020, ZeRO): each takes half as long as an all-reduce.
        seconds, hosts = ((run.accumulate + 0.5) * each for each in (seconds, hosts))
    early = 1 - 1 / xp.maximum(messages, 1.0)
    share = early * _take_backward(case.options) / count_segments(case)
    return Exchange("gradient_exchange", hosts + seconds, early * seconds, share)


def _log_gradients(case: Case) -> Exchange:
    """p tau an iteration: log files that every PE opens, one after the other in one folder."""
    run = case.run
    often = xp.where(xp.greater(run.replicas, 1), 1 / run.accumulate, 0.0)
    return Exchange("log_files", often * run.p * case.software.log_open)


def count_gradient(work: GroupWork, run: Run) -> Cells:
    """Weights of the all-reduce of gradients: of tables, the rows of an iteration's samples."""
    if work.touched is None:
        return work.gradient
    return count_exchanged(work.touched, run.accumulate * run.batch, run.replicas)


def count_sent(case: Case) -> float:
    """Weights whose gradients one cell's all-reduce takes as long as."""
    return float(xp.max(xp.asarray(count_gradient(case.machine_work, case.run))))


def _take_backward(options: Options) -> float:
    """The part of forward and backward passes that is backward; layers run again are part of it."""
    return 2 / 3 if options.recompute == "none" else 3 / 4


def _wait_for_slowest(case: Case, computing: Mapping[str, Cells], paths: Paths) -> Cells:
    """For the slowest PE, once a pass; updates follow when all PEs have waited."""
    passing = reduce(add, (computing[name] for name in PASSING if name in computing))
    return case.software.jitter * paths.slowest * passing
