"""An iteration of the machine oracle, in closed form: stage two.

Symbols: p PEs = p1 replicas x p2; B global batch, b samples of one of A passes through a replica,
B = A b p1; S segments; omega the part of the time computing that hides communication.
"""

from collections.abc import Mapping
from functools import reduce
from operator import mul

from kernels.arrays import Cells
from kernels.configuration.case import Case
from kernels.machine.network import nodes
from kernels.names.terms import Terms
from kernels.namespace import xp
from kernels.oracle.exchanges import Paths, exchange, ring_replicas
from kernels.parallelism.layout import count_steps, list_parts, time_besides
from kernels.work.compute import wait_for_launches


def time_pass(case: Case, paths: Paths) -> Terms:
    """Seconds of one pass, and what follows it once an iteration; paths: found ahead of the cells.

    Closed-form in everything that a sweep varies.
    """
    return exchange(case, _time_computing(case), paths)


def time_feed(case: Case) -> Cells:
    """Seconds in which the hosts of a node feed an iteration.

    B / n samples; or all of a replica's, where a group of several nodes needs them whole: each node
    of a filter or channel group, and a pipeline's first.
    """
    run = case.run
    samples = run.global_batch / nodes(run.p, case.network)
    for part, _ in list_parts(case):
        if part.feeds_all:
            all_of_them = run.accumulate * run.batch * _share_fed(case)
            whole = xp.where(xp.greater(part.find_degree(case), 1), all_of_them, 0.0)
            samples = xp.maximum(samples, whole)
    return xp.asarray(samples / case.network.input_rate)


def _share_fed(case: Case) -> Cells:
    """The part of each sample that a node needs whose PEs divide rows, of which each has some."""
    alike = case.find_alike()
    if alike is None:
        return 1.0
    share = case.network.pes_per_node / (alike.degree * alike.stride)
    return xp.minimum(xp.maximum(share, 1 / alike.degree), 1.0)


def _time_computing(case: Case) -> Mapping[str, Cells]:
    """Seconds of a pass by term, of a PE that sends nothing; updates, once an iteration."""
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


def _update(case: Case) -> Cells:
    """Seconds of the update: with ZeRO of a replica's part of the weights."""
    update = xp.asarray(case.machine_work.update)
    return update / ring_replicas(case).degree if case.options.zero else update


def _wait_for_launches(case: Case) -> Cells:
    """Time to launch N layers beyond the device's time, in each step of a pass."""
    work, run = case.machine_work, case.run
    cuts = (part.cut_steps(case) for part, _ in list_parts(case))
    device = run.batch / reduce(mul, cuts, 1.0) * work.forward_backward + work.fixed
    waiting = wait_for_launches(device, case.software.layer_overhead * work.launches)
    return count_steps(case) * waiting
