"""Computing in an iteration of the machine oracle, in closed form, and what hosts supply to it.

Symbols: p PEs = p1 replicas x p2; B global batch, b samples of one of A passes through a replica,
B = A b p1; S segments; omega, the share of compute time that hides communication.
"""

from functools import reduce
from operator import mul

from paradl.kernels.arrays import Cells, xp
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.run import Seconds
from paradl.kernels.machine.network import nodes
from paradl.kernels.parallelism.layout import count_steps, list_parts, time_besides
from paradl.kernels.work.compute import wait_for_launches


def time_computing(case: Case) -> Seconds:
    """Compute seconds of a pass by term, without exchanges; updates once per iteration."""
    work, run = case.machine_work, case.run
    seconds = {
        "forward_backward": run.batch * work.forward_backward,
        "weight_update": _update(case),
        "pass_overhead": count_steps(case) * work.fixed,
        "launch_wait": _wait_for_launches(case),
    }
    for term, besides in time_besides(case):
        seconds[term] = seconds[term] + besides if term in seconds else besides
    return seconds


def time_feed(case: Case) -> Cells:
    """Compute seconds in which the hosts of a node supply an iteration's samples.

    B / n samples; or all of a replica's if a group spans nodes that need whole samples: every node
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
    return xp.asarray(samples / case.network.input_rate)


def _share_fed(case: Case) -> Cells:
    """Return the share of each sample that a node needs if PEs divide its rows."""
    alike = case.find_alike()
    if alike is None:
        return 1.0
    # A node has PEs of pes_per_node / stride of the parts; of one part at least, of all at most.
    share = case.network.pes_per_node / (alike.degree * alike.stride)
    return xp.minimum(xp.maximum(share, 1 / alike.degree), 1.0)


def _update(case: Case) -> Cells:
    """Compute seconds of the update; with ZeRO for a shard of the weights."""
    update = xp.asarray(case.machine_work.update)
    return update / case.find_shards().degree if case.options.zero else update


def _wait_for_launches(case: Case) -> Cells:
    """Compute seconds of waiting for launches in all steps of a pass."""
    work, run = case.machine_work, case.run
    # Each step of a pipeline is a pass of its own: it launches all layers for a segment's samples.
    cuts = (part.cut_steps(case) for part, _ in list_parts(case))
    device = run.batch / reduce(mul, cuts, 1.0) * work.forward_backward + work.fixed
    waiting = wait_for_launches(device, case.software.layer_overhead * work.launches)
    return count_steps(case) * waiting
