"""Summaries of lines of PE counts: how far a strategy scales, and what stops it.

Minima and maxima along the PE counts, the first dimension of the cells, for every slice, inside the
compiled program. A line comes in parts, with the larger PE counts later.

Each statistic is one reduction over cells in the cache, except for those of times, which are the
most expensive and go row by row.
"""

from dataclasses import replace
from functools import partial

import jax

from paradl.kernels.arrays import (
    LIMITS,
    AnyArray,
    Cells,
    Flags,
    Limits,
    in_numpy,
    on_gpu,
    pytree,
    xp,
)
from paradl.kernels.names.flags import FORBIDS, STOPS, Limit
from paradl.kernels.names.statistics import BEST, COUNTS, STATISTICS, Objective

# Flags of a PE count that is also in another part of the line, and does not count here. No real
# cell has both: a group that does not divide p has no other flag (`kernels.oracle.limits`).
REPEATED = Limit.GROUP_DOES_NOT_DIVIDE | Limit.UNEVEN
# Number of a missing row, beyond the last one.
NO_ROW = 2**31 - 1
# From this number of slices on, rows are processed one by one, since XLA does not vectorise
# reductions across them on a CPU. A cell's share of the race takes 0.8 ns of CPU instead of 4.6
# with 4096 slices, and instead of 1.3 with 256; with 64 both take 1.2 (2026-11). A GPU launches
# each step: by rows, 2**25 cells take 1.2 to 1.8 times as long (H100, 2026-11).
STEP_CELLS = 2**8
# Rows per step of the loop, whose steps cost as much as a row: blocks of 4.2 million cells take 0.5
# (paper) to 0.7 (machine) of the CPU time that they take row by row; with 4 or 16 rows per step 1.2
# times as long as with 8, with 32 four times (2026-11).
STEPS = 8
# The least time of each slice, its row, and the last efficient row.
Race = tuple[AnyArray, AnyArray, AnyArray]


@pytree
class Line:
    """Answers for ascending PE counts `p`, along the first dimension of the cells.

    Times [s per epoch], memory [B], flags. enough: PE seconds in which an epoch is still efficient,
    of size 1 along that dimension. epochs: to the target; None without a law of epochs.
    epochs_alone: on one PE, also of size 1.
    """

    p: Cells
    comp_time: Cells
    comm_time: Cells
    memory: Cells
    limit: Limits
    enough: Cells
    epochs: Cells | None = None
    epochs_alone: Cells | None = None

    @property
    def row(self) -> AnyArray:
        """Numbers of the rows, from 0."""
        return _number_rows(self.limit)

    @property
    def allowed(self) -> Flags:
        """True for feasible PE counts."""
        return xp.equal(self.limit & LIMITS(FORBIDS), 0)

    @property
    def epoch_time(self) -> AnyArray:
        """Time of an epoch [s] in single precision."""
        # As stored, so that summaries agree with the cells.
        return xp.asarray(self.comp_time + self.comm_time, xp.float32)


@pytree
class Best:
    """The feasible PE count of the least time, of each slice; 0 if there is none.

    time: of an epoch, or to the target [s]; infinite if there is none. comp_time [s per epoch],
    memory [B], epochs (NaN without a law): at that count. efficient_pe: largest efficient count.
    """

    pe: Cells
    time: Cells
    comp_time: Cells
    memory: Cells
    epochs: Cells
    efficient_pe: Cells


@pytree
class Summary:
    """Summary of each slice across a line; PE counts are 0 if there is none.

    best: by objective; the time to the target only with a law of epochs. largest_pe: largest
    feasible count. forbidden_by: flags of the next one, 0 at the end of the axis. counts: number of
    PE counts with each limit or mark, in the order of `Limit`. The last three have size 1 along
    dimensions where flags do not vary.
    """

    best: dict[Objective, Best]
    largest_pe: Cells
    forbidden_by: Limits
    counts: Cells


def summarise_nothing(shape: tuple[int, ...], of_limits: tuple[int, ...], trains: bool) -> Summary:
    """Return the summary of no PE counts: `shape` slices, and `of_limits` slices of flags.

    trains: whether there is a law of epochs.
    """
    none = xp.zeros(shape, xp.float32)
    no_pe = xp.zeros(shape)
    best = Best(no_pe, none + xp.inf, none, none, none, efficient_pe=no_pe)
    return Summary(
        best={name: best for name in BEST if trains or name == "epoch_time"},
        largest_pe=xp.zeros(of_limits),
        forbidden_by=xp.zeros(of_limits, LIMITS),
        counts=xp.zeros((len(Limit), *of_limits), xp.int32),
    )


def summarise(line: Line) -> Summary:
    """Summarise a line or part of one; of size 1 along dimensions where nothing varies."""
    largest = xp.max(xp.where(line.allowed, line.row, -1), axis=0)
    stops = xp.asarray(line.limit & LIMITS(STOPS))
    # Only beyond the largest feasible count: gaps below it do not end scaling.
    stopped = xp.min(xp.where((stops > 0) & (line.row > largest), line.row, NO_ROW), axis=0)
    p, limit = xp.asarray(line.p, float), xp.asarray(line.limit)
    counted = xp.where(xp.equal(limit, LIMITS(REPEATED)), LIMITS(0), limit)
    masks = [(counted & LIMITS(flag)) > 0 for flag in Limit]
    return Summary(
        best=_find_best(line),
        largest_pe=xp.where(largest < 0, 0, _take_row(p, largest)),
        forbidden_by=xp.where(stopped == NO_ROW, LIMITS(0), _take_row(stops, stopped)),
        counts=xp.stack([xp.sum(mask, axis=0, dtype=xp.int32) for mask in masks]),
    )


def _find_best(line: Line) -> dict[Objective, Best]:
    """Find the best PE count by each objective."""
    time, enough = line.epoch_time, xp.asarray(line.enough, xp.float32)
    best: dict[Objective, Best] = {"epoch_time": _find_fastest(line, time, enough)}
    if line.epochs is not None:
        epochs, alone = (xp.asarray(n, xp.float32) for n in (line.epochs, line.epochs_alone))
        best["train_time"] = _find_fastest(line, time * epochs, enough * alone)
    return best


def _find_fastest(line: Line, time: AnyArray, enough: AnyArray) -> Best:
    """Find the PE count of the least time, and the largest efficient one."""
    # NaN, of configurations that do not exist, becomes infinite.
    time = xp.where(line.allowed & xp.isfinite(time), time, xp.inf)
    at_once = in_numpy() or on_gpu() or time[0].size < STEP_CELLS
    race = _race_at_once if at_once else _race_by_rows
    least, fastest, efficient = race(time, xp.asarray(line.p, xp.float32), enough)
    p = xp.asarray(line.p, float)
    epochs = xp.nan * p if line.epochs is None else line.epochs
    return Best(
        pe=xp.where(xp.isinf(least), 0, _take_row(p, fastest)),
        time=least,
        comp_time=_take_row(xp.asarray(line.comp_time, xp.float32), fastest),
        memory=_take_row(xp.asarray(line.memory, xp.float32), fastest),
        epochs=_take_row(xp.asarray(epochs, xp.float32), fastest),
        efficient_pe=xp.where(efficient < 0, 0, _take_row(p, efficient)),
    )


def _race_at_once(time: AnyArray, p: AnyArray, enough: AnyArray) -> Race:
    """Return the least time of each slice, its first row, and the last efficient row."""
    row, least = _number_rows(time), xp.min(time, axis=0)
    # Two minima instead of argmin, which XLA does not vectorise on a CPU.
    fastest = xp.min(xp.where(time == least, row, NO_ROW), axis=0)
    return least, fastest, xp.max(xp.where(time * p <= enough, row, -1), axis=0)


def _number_rows(values: AnyArray) -> AnyArray:
    rows, *others = xp.shape(values)
    return xp.arange(rows, dtype=xp.int32).reshape(-1, *[1] * len(others))


def _race_by_rows(time: AnyArray, p: AnyArray, enough: AnyArray) -> Race:
    """Return the same, reading each cell once."""
    others = time.shape[1:]

    def take(values: AnyArray, number: Cells) -> AnyArray:
        row: AnyArray = jax.lax.dynamic_index_in_dim(values, number, keepdims=False)
        return row

    def step(number: Cells, so_far: Race) -> Race:
        least, fastest, efficient = so_far
        now, number = take(time, number), xp.asarray(number, xp.int32)
        is_efficient = now * take(p, number) <= enough[0]
        return (
            xp.minimum(least, now),
            xp.where(now < least, number, fastest),
            xp.where(is_efficient, number, efficient),
        )

    first = xp.zeros(others, xp.int32)
    at_first: Race = (xp.full(others, xp.inf, time.dtype), first, first - 1)
    race: Race = jax.lax.fori_loop(0, len(time), step, at_first, unroll=STEPS)
    return race


def extend_summary(earlier: Summary, line: Line) -> Summary:
    """Extend a summary by a line of larger PE counts."""
    part: Summary = jax.tree.map(
        lambda leaf, like: xp.broadcast_to(leaf, like.shape).astype(like.dtype),
        summarise(line),
        earlier,
    )
    return merge_summaries(earlier, part)


def merge_summaries(earlier: Summary, later: Summary) -> Summary:
    """Merge the summaries of two parts of a line; `later` has the larger PE counts."""
    # If no later count is feasible, the largest and the flags of the next one are the earlier's.
    stopped = xp.equal(later.largest_pe, 0) & xp.greater(earlier.forbidden_by, 0)
    best = {}
    for name, here in earlier.best.items():
        there = later.best[name]
        # Strictly less: of equally fast PE counts the smallest stays, as within a part.
        is_later = xp.less(there.time, here.time)
        kept: Best = jax.tree.map(partial(xp.where, is_later), there, here)
        best[name] = replace(kept, efficient_pe=xp.maximum(here.efficient_pe, there.efficient_pe))
    return Summary(
        best=best,
        largest_pe=xp.maximum(earlier.largest_pe, later.largest_pe),
        forbidden_by=xp.where(stopped, earlier.forbidden_by, later.forbidden_by),
        counts=xp.add(earlier.counts, later.counts),
    )


def tabulate(summary: Summary) -> AnyArray:
    """Return the statistics of every slice, in order: float64 [statistic, slices].

    Times, memory and epochs are NaN if there is no feasible PE count.
    """
    values = {"largest_pe": summary.largest_pe, "forbidden_by": summary.forbidden_by}
    values |= dict(zip(COUNTS, xp.asarray(summary.counts), strict=True))
    for objective, names in BEST.items():
        values |= _name_best(summary.best.get(objective), names)
    shape = xp.shape(summary.best["epoch_time"].pe)
    return xp.stack([xp.broadcast_to(values[name], shape).astype(float) for name in STATISTICS])


def _name_best(best: Best | None, names: dict[str, str]) -> dict[str, Cells]:
    if best is None:
        return dict.fromkeys(names.values(), xp.nan)
    exists = xp.greater(best.pe, 0)
    counts = ("pe", "efficient_pe")
    return {
        name: value if field in counts else xp.where(exists, value, xp.nan)
        for field, name in names.items()
        for value in [getattr(best, field)]
    }


def tabulate_line(line: Line) -> AnyArray:
    """Return the statistics of a whole line: float64 [statistic, slices]."""
    others = xp.broadcast_shapes(*(xp.shape(leaf)[1:] for leaf in jax.tree.leaves(line)))
    nothing = summarise_nothing(others, xp.shape(line.limit)[1:], trains=line.epochs is not None)
    return tabulate(extend_summary(nothing, line))


def _take_row(values: AnyArray, row: AnyArray) -> AnyArray:
    """Take the value in a row of each slice; any value if there is no such row."""
    values = xp.asarray(values)
    row = xp.clip(row, 0, values.shape[0] - 1)
    others = xp.meshgrid(*map(xp.arange, row.shape), indexing="ij", sparse=True)
    index = zip((row, *others), values.shape, strict=True)
    return values[tuple(number if size > 1 else 0 for number, size in index)]
