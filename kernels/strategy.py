"""A strategy as terms of time: a group strategy inside p2 PEs, data parallelism across p1.

ParaDL, Table III and section 4.5 (hybrids). Symbols: p PEs = p1 replicas x p2; B global batch,
b samples of one of A passes through a replica, B = A b p1; D samples an epoch; I = D/B iterations;
S segments.
"""

from dataclasses import replace

from kernels import filter_channel, pipeline, placed, spatial
from kernels.arrays import Cells
from kernels.case import Case
from kernels.compute import wait_for_launches
from kernels.division import Division
from kernels.exchanges import Paths, count_segments, exchange
from kernels.group import GroupWork, whole_work
from kernels.hosts import pack_gradients
from kernels.layers import LayerTimes
from kernels.memory import hold_alive
from kernels.namespace import xp
from kernels.network import Network, nodes
from kernels.run import Run
from kernels.software import Software
from kernels.split_overhead import split_overhead
from kernels.terms import Terms


def group_work(division: Division, times: LayerTimes) -> GroupWork:
    """The layers reduced to what the busiest PE of a group does: stage one."""
    work = hold_alive(_divide_work(division, times), division)
    if division.group not in ("filter", "channel"):
        # No messages, and not one of nothing, so that cells have nothing to compute of them.
        work = replace(work, gathered=work.gathered[:0], gathers=work.gathers[:0])
    return work


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
        case "placement":
            return placed.work(division, times)


def time_pass(case: Case, paths: Paths) -> Terms:
    """Seconds of one pass, and what follows it once an iteration; paths: found ahead of the cells.

    Closed-form in everything that a sweep varies: stage two.
    """
    return exchange(case, _time_computing(case), paths)


def _time_computing(case: Case) -> Terms:
    """Seconds an iteration that has one pass of b samples a replica, and sends nothing."""
    work, run, software = case.machine_work, case.run, case.software
    forward_backward = run.batch * work.forward_backward
    nothing = xp.zeros(())
    return Terms(
        forward_backward=forward_backward,
        pipeline_bubble=pipeline_bubble(work, run, forward_backward),
        weight_update=xp.asarray(work.update),
        pass_overhead=pass_overhead(work, run),
        launch_wait=launch_wait(work, run, software),
        split_overhead=split_overhead(work, run, case.pe, software),
        gradient_packing=pack_gradients(work, run, case.network, software),
        input_wait=nothing,  # it depends on all the others: `kernels.run.wait_for_input`
        gradient_exchange=nothing,
        layer_collectives=nothing,
        halo_exchange=nothing,
        split_gather=nothing,
        sample_scatter=nothing,
        point_to_point=nothing,
        log_files=nothing,
        straggler_wait=nothing,
        hidden_communication=nothing,
    )


def feed_seconds(work: GroupWork, run: Run, network: Network) -> Cells:
    """Seconds in which the hosts of a node feed an iteration.

    B / n samples; or all of a replica's, where a group of several nodes needs them whole: each node
    of a filter or channel group, and a pipeline's first.
    """
    shared = run.global_batch / nodes(run.p, network)
    whole = (work.by_filter + work.by_channel + work.pipelined) * run.accumulate * run.batch
    return xp.asarray(xp.maximum(shared, whole) / network.input_rate)


def pipeline_bubble(work: GroupWork, run: Run, forward_backward: Cells) -> Cells:
    """(p2-1)/S of the slowest stage's time, while the pipeline fills and drains."""
    # Of b (p2+S-1)/S the rest: b itself is `forward_backward`.
    return xp.asarray(work.pipelined * (run.p2 - 1) / run.segments * forward_backward)


def pass_overhead(work: GroupWork, run: Run) -> Cells:
    """sum f_l, or of a pipeline's slowest stage in each of its p2 + S - 1 steps."""
    return xp.asarray(count_steps(work, run) * work.fixed)


def launch_wait(work: GroupWork, run: Run, software: Software) -> Cells:
    """What launching N layers takes beyond the device's own time, in each step of a pass."""
    # A step of a pipeline has one segment; the critical path of a placed group has all of them.
    cut = xp.where(xp.equal(work.pipelined, 1), count_segments(work, run), 1.0)
    device = run.batch / cut * work.forward_backward + work.fixed
    waiting = wait_for_launches(device, software.layer_overhead * work.launches)
    return xp.asarray(count_steps(work, run) * waiting)


def count_steps(work: GroupWork, run: Run) -> Cells:
    """1, or p2 + S - 1 of a pipeline: a segment is a pass of its own.

    A pipeline of one stage is not cut into segments.
    """
    more = xp.where(xp.greater(run.p2, 1), run.p2 + run.segments - 2, 0.0)
    return 1 + work.pipelined * more
