"""Summaries: what remains of a line of PE counts, how far a strategy scales and what stops it.

Minima and maxima along the PE counts, the first dimension of the cells, for every slice across
them, inside the compiled program. A line comes in parts, the larger PE counts later.

One reduction a statistic, each over cells that the cache holds; but those of times, of which there
are the most, row after row.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
from jax import Array

from kernels.arrays import LIMITS, AnyArray, Cells, Flags, Limits
from kernels.names.flags import FORBIDS, STOPS, Limit
from kernels.names.statistics import BEST, COUNTS, STATISTICS, Objective
from kernels.namespace import in_numpy, repeat, xp

# The flags of a PE count that stands in another part of the line, too: it does not count here. No
# cell has both: a group that does not divide p has no other flag (`kernels.oracle.limits`).
REPEATED = Limit.GROUP_DOES_NOT_DIVIDE | Limit.UNEVEN
# No row: beyond the last one.
NO_ROW = 2**31 - 1
# Slices from which on rows are looked at one after the other: XLA does not vectorise reductions
# across them on a CPU. Of 4096 slices a cell takes 0.8 to 1.5 ns of CPU less (paper 3.7 -> 2.8,
# machine 5.1 -> 3.9; 2026-11), of 256 1.2 ns, of 64 0.5 ns more.
STEP_CELLS = 2**8
# The least time of each slice, its row, and the last row that is efficient.
Race = tuple[Array, Array, Array]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Line:
    """Answers for PE counts `p`, ascending, along the first dimension of the cells.

    Times [s per epoch], memory [B], flags; enough: PE seconds in which an epoch is still efficient,
    of size 1 along that dimension. epochs: to the target; None where no law is known. epochs_alone:
    those on one PE, of size 1 as well.
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
    def row(self) -> Array:
        """The numbers of the rows, from 0."""
        return _number_rows(self.limit)

    @property
    def allowed(self) -> Flags:
        """What nothing forbids."""
        return xp.equal(self.limit & LIMITS(FORBIDS), 0)

    @property
    def epoch_time(self) -> Array:
        """[s an epoch], in single precision, as cells are stored."""
        # What is kept is what a reader of the cells finds.
        return xp.asarray(self.comp_time + self.comm_time, xp.float32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Best:
    """The PE count of the least time that nothing forbids, of each slice; 0 where there is none.

    time: of an epoch, or to the target [s], infinite where there is none; comp_time [s an epoch],
    memory [B] and epochs (NaN where no law is known) at that count. efficient_pe: the largest count
    that is efficient.
    """

    pe: Cells
    time: Cells
    comp_time: Cells
    memory: Cells
    epochs: Cells
    efficient_pe: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Summary:
    """What remains of each slice across a line; PE counts are 0 where there is none.

    best: by objective; without a law of epochs, none of the time to the target. largest_pe: the
    largest that nothing forbids; forbidden_by: the flags that forbid the next one, 0 at the end of
    the axis; counts: how many PE counts each limit forbids or marks, in the order of `Limit`. The
    last three have size 1 along dimensions where no flags vary.
    """

    best: dict[Objective, Best]
    largest_pe: Cells
    forbidden_by: Limits
    counts: Cells


def summarise_nothing(shape: tuple[int, ...], of_limits: tuple[int, ...], trains: bool) -> Summary:
    """The summary of no PE counts: `shape` slices, of which flags tell `of_limits` apart.

    trains: whether epochs to a target are known.
    """
    none = xp.zeros(shape, xp.float32)
    best = Best(
        pe=xp.zeros(shape),
        time=none + xp.inf,
        comp_time=none,
        memory=none,
        epochs=none,
        efficient_pe=xp.zeros(shape),
    )
    return Summary(
        best={name: best for name in BEST if trains or name == "epoch_time"},
        largest_pe=xp.zeros(of_limits),
        forbidden_by=xp.zeros(of_limits, LIMITS),
        counts=xp.zeros((len(Limit), *of_limits), xp.int32),
    )


def summarise(line: Line) -> Summary:
    """The summary of a line, or of a part of one; of size 1 along dimensions where none varies."""
    largest = xp.max(xp.where(line.allowed, line.row, -1), axis=0)
    stops = xp.asarray(line.limit & LIMITS(STOPS))
    # Beyond the largest one that is allowed: gaps below it stop nothing.
    stopped = xp.min(xp.where((stops > 0) & (line.row > largest), line.row, NO_ROW), axis=0)
    p = xp.asarray(line.p, float)
    return Summary(
        best=_find_best(line),
        largest_pe=xp.where(largest < 0, 0, _take_row(p, largest)),
        forbidden_by=xp.where(stopped == NO_ROW, LIMITS(0), _take_row(stops, stopped)),
        counts=_count_limits(xp.asarray(line.limit)),
    )


def _find_best(line: Line) -> dict[Objective, Best]:
    """The best PE count by each objective."""
    time, enough = line.epoch_time, xp.asarray(line.enough, xp.float32)
    best: dict[Objective, Best] = {"epoch_time": _find_fastest(line, time, enough)}
    if line.epochs is not None:
        epochs, alone = (xp.asarray(each, xp.float32) for each in (line.epochs, line.epochs_alone))
        best["train_time"] = _find_fastest(line, time * epochs, enough * alone)
    return best


def _find_fastest(line: Line, time: Array, enough: Array) -> Best:
    """The PE count of the least time, and the largest in which PE seconds are enough."""
    # NaN, where there is no such configuration, is no time either.
    time = xp.where(line.allowed & xp.isfinite(time), time, xp.inf)
    race = _race_at_once if in_numpy() or time[0].size < STEP_CELLS else _race_by_rows
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


def _race_at_once(time: Array, p: Array, enough: Array) -> Race:
    """The least time of each slice, the first row that has it, and the last that is efficient."""
    row, least = _number_rows(time), xp.min(time, axis=0)
    # Two minima in place of argmin, which XLA does not vectorise on a CPU.
    fastest = xp.min(xp.where(time == least, row, NO_ROW), axis=0)
    return least, fastest, xp.max(xp.where(time * p <= enough, row, -1), axis=0)


def _number_rows(values: AnyArray) -> Array:
    rows, *others = xp.shape(values)
    return xp.arange(rows, dtype=xp.int32).reshape(-1, *[1] * len(others))


def _race_by_rows(time: Array, p: Array, enough: Array) -> Race:
    """The same, each cell looked at once."""
    others = time.shape[1:]

    def take(values: Array, number: Cells) -> Array:
        row: Array = jax.lax.dynamic_index_in_dim(values, number, keepdims=False)
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
    return repeat(len(time), step, at_first)


def extend_summary(earlier: Summary, line: Line) -> Summary:
    """The summary with the PE counts of `line` besides, which are larger."""
    part: Summary = jax.tree.map(
        lambda each, like: xp.broadcast_to(each, like.shape).astype(like.dtype),
        summarise(line),
        earlier,
    )
    return merge_summaries(earlier, part)


def merge_summaries(earlier: Summary, later: Summary) -> Summary:
    """The summary of a line from those of two parts, `later` of the larger PE counts."""
    # Where nothing of the later part is allowed, the largest is the earlier's, and so is what
    # forbids the next one.
    stopped = xp.equal(later.largest_pe, 0) & xp.greater(earlier.forbidden_by, 0)
    return Summary(
        best={name: _merge_best(best, later.best[name]) for name, best in earlier.best.items()},
        largest_pe=xp.maximum(earlier.largest_pe, later.largest_pe),
        forbidden_by=xp.where(stopped, earlier.forbidden_by, later.forbidden_by),
        counts=xp.add(earlier.counts, later.counts),
    )


def _merge_best(earlier: Best, later: Best) -> Best:
    # Strictly less: of PE counts as fast as each other the smallest stays, as within a part.
    is_later = xp.less(later.time, earlier.time)
    best: Best = jax.tree.map(partial(xp.where, is_later), later, earlier)
    return replace(best, efficient_pe=xp.maximum(earlier.efficient_pe, later.efficient_pe))


def tabulate(summary: Summary) -> Array:
    """The statistics, in their order, of every slice: float64 [statistic, slices].

    NaN for the times, the memory and the epochs of none.
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
    some = xp.greater(best.pe, 0)
    counts = ("pe", "efficient_pe")
    return {
        name: value if field in counts else xp.where(some, value, xp.nan)
        for field, name in names.items()
        for value in [getattr(best, field)]
    }


def tabulate_line(line: Line) -> Array:
    """The statistics of a whole line: float64 [statistic, slices]."""
    leaves = jax.tree.leaves(line)
    others = xp.broadcast_shapes(*(xp.shape(each)[1:] for each in leaves))
    nothing = summarise_nothing(others, xp.shape(line.limit)[1:], trains=line.epochs is not None)
    return tabulate(extend_summary(nothing, line))


def _take_row(values: Array, row: Array) -> Array:
    """The value in a row of each slice, of values along a line; any where there is no such row."""
    values = xp.asarray(values)
    row = xp.clip(row, 0, values.shape[0] - 1)
    others = xp.meshgrid(*map(xp.arange, row.shape), indexing="ij", sparse=True)
    index = zip((row, *others), values.shape, strict=True)
    return values[tuple(each if size > 1 else 0 for each, size in index)]


def _count_limits(limit: Array) -> Array:
    """How many PE counts have each limit, along a leading dimension."""
    counted = xp.where(xp.equal(limit, LIMITS(REPEATED)), LIMITS(0), limit)
    has = [(counted & LIMITS(each)) > 0 for each in Limit]
    return xp.stack([xp.sum(each, axis=0, dtype=xp.int32) for each in has])
