"""Choose the formulas of the oracle: Table III, or the machine by layers or by blocks.

No other module does.
"""

from dataclasses import replace

from paradl.kernels.arrays import LIMITS, Cells, Flags, PerLayer, divides, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case, Work
from paradl.kernels.configuration.run import (
    BlockTerms,
    Times,
    accumulate_passes,
    add_terms,
    wait_for_input,
)
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Cost
from paradl.kernels.names.flags import Limit
from paradl.kernels.options import Options
from paradl.kernels.oracle import blocks, iteration, reduction, table_iii
from paradl.kernels.oracle.iteration import Paths, exchange, find_paths, time_computing, time_feed
from paradl.kernels.oracle.limits import (
    InvariantFlags,
    find_group_flags,
    find_invariant_flags,
    flag,
)
from paradl.kernels.paper.inputs import TableWork
from paradl.kernels.parallelism import layout
from paradl.kernels.work import memory
from paradl.kernels.work.compute import layer_times, slowdown
from paradl.kernels.work.division import Division
from paradl.kernels.work.group import GroupWork
from paradl.kernels.work.layers import Layers, LayerTimes
from paradl.kernels.work.schedules import INTERLEAVES, leave_micro_batches


@compiled("options", numpy=True)
def time_layers(layers: Layers, pe: PE, delta: Cells, options: Options) -> LayerTimes:
    """Compute the times of layers with items of `delta` bytes."""
    if options.oracle == "paper":
        return table_iii.time_layers(layers, pe, delta, options.optimizer)
    return layer_times(layers, pe, delta, options)


@compiled("options", numpy=True)
def find_slowdown(
    layers: Layers,
    pe: PE,
    delta: Cells,
    seconds: PerLayer,
    batch: Cells,
    launch: Cells,
    options: Options,
) -> PerLayer:
    """Return measured over computed times, on the PE of the measurement.

    seconds: measured FW_l + BW_l per sample, with `batch` samples at once. launch: seconds in which
    that host launches a layer. Table III ignores the last two.
    """
    if options.oracle == "paper":
        return table_iii.find_slowdown(layers, pe, delta, seconds)
    return slowdown(layers, pe, delta, seconds, batch, launch)


def time_part(division: Division) -> LayerTimes:
    """Compute the layers' times on one PE of the group; in Table III those of whole layers."""
    # Table III divides a layer's time; on a machine, a part may still read all inputs or weights.
    if division.options.oracle == "paper":
        return time_layers(division.layers, division.pe, division.delta, division.options)
    return reduction.time_part(division)


def reduce_work(division: Division) -> Work:
    """Compute the work of a group's busiest PE: stage one."""
    if division.options.oracle == "paper":
        return table_iii.reduce_table(division, time_part(division))
    return reduction.reduce_part(division, time_part(division))


# Compiled, for callers outside of programs.
reduce_layers = compiled(numpy=True)(reduce_work)
time_parts = compiled(numpy=True)(time_part)


def find_fixed_paths(case: Case) -> Paths | None:
    """Compute costs of exchanges that do not depend on bytes; None for Table III and blocks."""
    return find_paths(case) if isinstance(case.work, GroupWork) else None


def find_existing(case: Case) -> Flags:
    """Return where a configuration can exist."""
    if case.of_blocks:
        return case.bounds.defined
    run = case.run
    # False if serial has several PEs or a group does not divide p, since p1 is then rounded.
    exists = xp.equal(run.replicas * run.group, run.p) & case.bounds.defined
    exists = exists & _divide_whole(case)
    if "segments" in case.choices:  # less than a sample each is no choice; one segment always is
        exists = exists & xp.less_equal(run.segments, xp.maximum(run.batch, 1.0))
    return exists


def find_flags(case: Case) -> InvariantFlags:
    """Compute the flags that do not depend on memory."""
    if case.of_blocks:
        group = find_group_flags(case.bounds, case.run, case.network)
        of_layouts = xp.asarray(blocks.flag_cells(case.whole_blocks), LIMITS)
        return InvariantFlags(group | of_layouts, *[xp.zeros((), LIMITS)] * 2)
    flags = find_invariant_flags(case.bounds, case.run, case.network, count_segments(case))
    indivisible = flag(xp.logical_not(_divide_whole(case)), Limit.DOES_NOT_DIVIDE)
    return replace(flags, group=flags.group | indivisible)


def _divide_whole(case: Case) -> Flags:
    """Return where settings of a layout divide what they have to."""
    run = case.run
    whole: Flags = xp.ones((), bool)
    if run.shards is not None:
        whole = divides(run.shards, run.replicas)
    if case.options.chunks > 1:
        stages = run.degrees.get("pipeline", xp.ones(()))
        unfit = leave_micro_batches(run.segments, stages, stages)
        whole = whole & xp.logical_not(unfit) & (case.options.schedule == INTERLEAVES)
    return whole


def time_iteration(case: Case, paths: Paths | None = None) -> Times:
    """Compute the times of an iteration: stage two. paths: if already computed."""
    if isinstance(case.work, TableWork):
        return add_terms(accumulate_passes(table_iii.time_pass(case, case.work), case.run))
    if case.of_blocks:
        seconds = blocks.time_cells(case)
        return Times(BlockTerms(*seconds), xp.zeros(()), *blocks.add_seconds(seconds))
    terms = exchange(case, time_computing(case), paths or find_paths(case))
    times = add_terms(accumulate_passes(terms, case.run))
    # Last: hosts prepare samples during all of an iteration, so only what exceeds it is waited for.
    if not case.options.waits_for_input:
        return times
    return wait_for_input(times, time_feed(case))


def find_links(case: Case) -> tuple[Cost, Cost, Cost]:
    """Return the paths inside a group, across replicas and between halo neighbours."""
    if case.options.oracle == "paper":
        return table_iii.find_links(case)
    return iteration.find_links(case)


def mark_segmented(case: Case) -> Cells:
    """Return 1 where samples pass in segments, else 0."""
    if isinstance(case.work, TableWork):
        return case.work.pipelined
    if case.of_blocks:
        return 1.0
    return float(layout.is_segmented(case))


def count_segments(case: Case) -> Cells:
    """Return the number of segments; 1 for a single stage."""
    if isinstance(case.work, TableWork):
        return xp.where(xp.greater(case.run.group, 1), case.run.segments, 1.0)
    if case.of_blocks:
        return xp.asarray(case.blocks.passes, float)
    return layout.count_segments(case)


def list_segments(case: Case) -> Cells:
    """Return the segments that an answer states: the run's, or the micro-batches of blocks."""
    if case.of_blocks:
        return count_segments(case)
    return xp.where(xp.equal(mark_segmented(case), 1), case.run.segments, 1.0)


def find_memory(case: Case) -> Cells:
    """Compute bytes of the fullest PE of every cell."""
    if isinstance(case.work, TableWork):
        return table_iii.find_bound(case, case.work)
    if case.of_blocks:
        return blocks.measure_cells(case) + case.pe.reserved
    work, share = case.machine_work, find_share(case)
    if share is not None:
        work = replace(work, parameters=share * work.parameters + find_gathered(case, work))
    return memory.find_memory(work, case.run.batch, case.pe.reserved)


def find_share(case: Case) -> Cells | None:
    """Return the share of its weights' states that a PE holds; None without ZeRO."""
    if case.run.sharded is None:
        return None
    # Of N PEs each has 1/N of what the stage divides, and all of the rest.
    return 1 - case.run.sharded * (1 - 1 / case.find_shards().degree)


def find_gathered(case: Case, work: GroupWork) -> Cells:
    """Return bytes of weights that a PE gathers; none where it has all of them."""
    if work.gathered_weights is None:
        return 0.0
    return xp.where(xp.greater(case.find_shards().degree, 1), work.gathered_weights, 0.0)


def find_unit(case: Case) -> tuple[Cells, Cells]:
    """Return bytes per unit of memory in a case's work, and bytes outside of tensors."""
    if case.options.oracle == "paper":
        return case.run.gamma * case.run.delta, 0.0
    return 1.0, case.pe.reserved


def hold_layers(division: Division) -> tuple[PerLayer, PerLayer]:
    """Return what each layer keeps on one PE [B per sample], and its weights' states [B].

    For Table III all of its sum, without gamma.
    """
    if division.options.oracle == "paper":
        return table_iii.hold_layers(division)
    tensors, states = reduction.hold_layers(division)
    return tensors.kept, states
