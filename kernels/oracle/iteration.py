"""An iteration of the machine oracle: computing, exchanges on rails, and what overlaps.

In closed form (docs/machine.md, Network and Overlap). Symbols: p PEs = p1 replicas x p2; B global
batch, b samples of one of A passes through a replica, B = A b p1; S segments; a bytes per item, g
per gradient; omega, the share of compute time that hides communication.
"""

from collections.abc import Mapping
from functools import reduce
from operator import add, mul
from typing import Any

from paradl.kernels.arrays import Cells, pytree, xp
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.hosts import find_slowest
from paradl.kernels.configuration.run import Run, Seconds
from paradl.kernels.machine.library_collectives import (
    Costs,
    contend,
    limit_to_first,
    reduce_costs,
    time_fastest,
)
from paradl.kernels.machine.network import Cost, Ring, find_path, nodes
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.names.terms import NOTHING, TERMS
from paradl.kernels.parallelism.layout import (
    count_segments,
    count_steps,
    list_exchanges,
    list_parts,
    time_besides,
)
from paradl.kernels.parallelism.parallelism import Exchange
from paradl.kernels.parallelism.spatial import Halos, find_halo_path
from paradl.kernels.work.compute import wait_for_launches
from paradl.kernels.work.group import GroupWork, count_exchanged

# Terms of a pass that take longer on a slow PE.
PASSING = ("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait")


@pytree
class Paths:
    """Costs of exchanges that do not depend on bytes; computed once, before the cells.

    gradients: all-reduces across replicas, of HSDP across its shards. copies: across groups of
    shards; None without HSDP. groups: exchanges inside a group, by parallelism. hosts [s]: of
    gradients that pass through host memory. slowest: z(p), of standard deviations.
    """

    gradients: Costs
    copies: Costs | None
    groups: Mapping[str, Any]
    hosts: Cells
    slowest: Cells


def find_paths(case: Case) -> Paths:
    """Compute the costs of a case's exchanges."""
    run, fabric = case.run, Fabric.from_network(case.network, case.software)
    replicas, copies = case.find_replicas(), case.find_copies()
    hosts = (
        parallelism.reduce_through_hosts(sent, case, fabric.gradients, replicas)
        for parallelism, sent in list_parts(case)
    )

    def reduce_over(ring: Ring) -> Costs:
        """List the costs of gradients on a ring."""
        costs = reduce_costs(fabric.gradients, ring, case.options.algorithm)
        if case.options.algorithm == "auto":  # rings come first
            costs = limit_to_first(costs, case.network.whole_gradients)
        return contend(costs, run.phi)

    return Paths(
        gradients=reduce_over(case.find_shards()),
        copies=None if copies is None else reduce_over(copies),
        groups={
            parallelism.name: parallelism.find_paths(sent, case, fabric)
            for parallelism, sent in list_parts(case)
        },
        hosts=reduce(add, hosts, xp.zeros(())),
        slowest=find_slowest(run.p),
    )


def exchange(case: Case, computing: Seconds, paths: Paths) -> Seconds:
    """Add exchanges to the compute terms of one pass, by name."""
    # Of the segments' own steps as they run: while a PE waits for its host, it receives.
    fixed = computing["pass_overhead"] + computing["launch_wait"]
    own = computing["forward_backward"] + fixed * (count_segments(case) / count_steps(case))
    left = case.software.overlap * own
    seconds: dict[str, Cells] = dict.fromkeys(TERMS, NOTHING) | dict(computing)
    # In the order in which they use up the time that can hide them.
    inside = list_exchanges(case, paths.groups)
    # p tau per iteration: every PE opens a log file, one after another in one folder. Terms of a
    # pass are paid A times, this one only once.
    per_pass = xp.where(xp.greater(case.run.replicas, 1), 1 / case.run.accumulate, 0.0)
    open_logs = Exchange("log_files", per_pass * case.run.p * case.software.log_open)
    for sent in (*inside, _exchange_gradients(case, paths), open_logs):
        # Exchanges of the same term add up.
        seconds[sent.term] = seconds[sent.term] + sent.steps * sent.seconds
        if sent.hideable is None:  # subtracting zeros took a tenth of a cell's time
            continue
        once = xp.minimum(sent.hideable, sent.share * xp.maximum(left, 0.0) / sent.cuts)
        hidden = sent.steps * once
        seconds[sent.term] = seconds[sent.term] - hidden
        # An iteration has A passes, each of which hides its exchanges.
        times = 1.0 if TERMS[sent.term].once else case.run.accumulate
        seconds["hidden_communication"] = seconds["hidden_communication"] + times * hidden
        if sent.before:
            left = left - sent.cuts * once
    # Once per pass; updates follow after it.
    passing = reduce(add, (computing[name] for name in PASSING if name in computing))
    seconds["straggler_wait"] = case.software.jitter * paths.slowest * passing
    return seconds


def find_links(case: Case) -> tuple[Cost, Cost, Cost]:
    """Return the paths between PEs of a group, between replicas, and of halos."""
    run, fabric = case.run, Fabric.from_network(case.network, case.software)
    inside, one = Ring(run.group, xp.ones(()), run.p), xp.ones(())
    halos = [
        (case.find_ring(part.name), sent.stride)
        for part, sent in list_parts(case)
        if isinstance(sent, Halos)
    ]
    return (
        find_path(fabric.messages, inside),
        find_path(case.network, case.find_replicas()),
        find_halo_path(*(halos[0] if halos else (inside, one)), fabric, case.software),
    )


def _exchange_gradients(case: Case, paths: Paths) -> Exchange:
    """Compute the exchange of K messages; all but the last can overlap with the backward pass."""
    run, software = case.run, case.software
    m = run.gradient_delta * count_gradient(case.machine_work, run)
    # At most one per layer with weights: none if no layer has any.
    messages = xp.minimum(xp.maximum(m / software.bucket, 1.0), case.machine_work.tensors)
    seconds = time_fastest(paths.gradients, m, messages)
    alike = case.find_alike()
    if alike is not None:  # systems with staging send these through host memory
        staged = xp.isfinite(case.network.staging_bandwidth) & xp.greater(alike.degree, 1)
        seconds = xp.where(staged, 0.0, seconds)
    hosts = paths.hosts
    if case.options.zero == 3:
        # Each pass gathers weights forward and backward, an iteration reduces gradients once
        # (Rajbhandari et al. 2020, ZeRO); each of these is half an all-reduce.
        seconds, hosts = ((run.accumulate + 0.5) * time for time in (seconds, hosts))
    if paths.copies is not None:
        # HSDP: each shard is also reduced across groups, as of blocks (kernels.parallelism.data).
        seconds = seconds + time_fastest(paths.copies, m / case.find_shards().degree, messages)
    # The last message leaves when no backward pass is left to hide it.
    early = 1 - 1 / xp.maximum(messages, 1.0)
    # Backward takes twice as long as forward: 2 of 3, or of 4 if forward is run again, 3.
    backward = 2 / 3 if case.options.recompute == "none" else 3 / 4
    share = early * backward / count_segments(case)
    return Exchange("gradient_exchange", hosts + seconds, early * seconds, share)


def count_gradient(work: GroupWork, run: Run) -> Cells:
    """Count weights of the gradients' all-reduce; of tables, rows of an iteration's samples."""
    if work.touched is None:
        return work.gradient
    return count_exchanged(work.touched, run.accumulate * run.batch, run.replicas)


def count_sent(case: Case) -> float:
    """Return the weights of the gradients' all-reduce, for a case of one cell."""
    return float(xp.max(xp.asarray(count_gradient(case.machine_work, case.run))))


def time_computing(case: Case) -> Seconds:
    """Compute seconds of a pass by term, without exchanges; updates once per iteration."""
    work, run, update = case.machine_work, case.run, xp.asarray(case.machine_work.update)
    # Each step of a pipeline is a pass of its own: it launches all layers for a segment's samples.
    cuts = (part.cut_steps(case) for part, _ in list_parts(case))
    device = run.batch / reduce(mul, cuts, 1.0) * work.forward_backward + work.fixed
    waiting = wait_for_launches(device, case.software.layer_overhead * work.launches)
    seconds = {
        "forward_backward": run.batch * work.forward_backward,
        # With ZeRO for a shard of the weights.
        "weight_update": update / case.find_shards().degree if case.options.zero else update,
        "pass_overhead": count_steps(case) * work.fixed,
        "launch_wait": count_steps(case) * waiting,
    }
    for term, besides in time_besides(case):
        seconds[term] = seconds[term] + besides if term in seconds else besides
    return seconds


def count_fed(case: Case) -> Cells:
    """Count the samples that the hosts of a node supply for an iteration.

    B / n of them; or all of a replica's if a group spans nodes that need whole samples: every node
    of a filter or channel group, and a pipeline's first.
    """
    run = case.run
    # Not rounded where the last node is not full: the fullest node sets the pace.
    samples = run.global_batch / nodes(run.p, case.network)
    for part, _ in list_parts(case):
        if part.feeds_all:
            needed = run.accumulate * run.batch * _share_fed(case)
            whole = xp.where(xp.greater(part.find_degree(case), 1), needed, 0.0)
            samples = xp.maximum(samples, whole)
    return samples


def time_feed(case: Case) -> Cells:
    """Compute seconds in which the hosts of a node supply an iteration's samples."""
    return xp.asarray(count_fed(case) / case.network.input_rate)


def _share_fed(case: Case) -> Cells:
    """Return the share of each sample that a node needs if PEs divide its rows."""
    alike = case.find_alike()
    if alike is None:
        return 1.0
    # A node has PEs of pes_per_node / stride of the parts; of one part at least, of all at most.
    share = case.network.pes_per_node / (alike.degree * alike.stride)
    return xp.minimum(xp.maximum(share, 1 / alike.degree), 1.0)
