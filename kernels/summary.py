"""Summaries: what remains of a line of PE counts, how far a strategy scales and what stops it.

Minima and maxima along the PE counts, the first dimension of the cells, for every slice across
them, inside the compiled program. A line comes in parts, the larger PE counts later.

One reduction a statistic, each over cells that the cache holds. Rows folded one by one, times and
rows packed into one word, were 1.0 to 1.4 times as fast alone (2026-11, 2**17 cells), and three
files more.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Flags, Limits
from kernels.flags import FORBIDS, Limit
from kernels.statistics import COUNTS, STATISTICS

# The flags of a PE count that stands in another part of the line, too: it does not count here. No
# cell has both: a group that does not divide p has no other flag (`kernels.limits`).
REPEATED = Limit.GROUP_DOES_NOT_DIVIDE | Limit.UNEVEN
# Of one that the group merely does not divide: that says nothing about scaling.
STOPS = FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE
# No row: beyond the last one.
NO_ROW = 2**31 - 1
FASTEST = ("fastest_pe", "fastest_time", "fastest_comp_time", "fastest_memory")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Line:
    """Answers for PE counts `p`, ascending, along the first dimension of the cells.

    Times [s per epoch], memory [B], flags; enough: PE seconds in which an epoch is still efficient,
    of size 1 along that dimension.
    """

    p: Cells
    comp_time: Cells
    comm_time: Cells
    memory: Cells
    limit: Limits
    enough: Cells

    @property
    def row(self) -> Array:
        """The numbers of the rows, from 0."""
        rows, *others = jnp.shape(self.limit)
        return jnp.arange(rows, dtype=jnp.int32).reshape(-1, *[1] * len(others))

    @property
    def allowed(self) -> Flags:
        """What nothing forbids."""
        return jnp.equal(self.limit & jnp.uint8(FORBIDS), 0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Summary:
    """What remains of each slice across a line; PE counts are 0 where there is none.

    fastest_*: the PE count of the least epoch time that nothing forbids, with its times [s per
    epoch] and memory [B]; infinite where there is none. efficient_pe: the largest that is
    efficient. largest_pe: the largest that nothing forbids; forbidden_by: the flags that forbid the
    next one, 0 at the end of the axis; counts: how many PE counts each limit forbids or marks, in
    the order of `Limit`. The last three have size 1 along dimensions where no flags vary.
    """

    fastest_pe: Cells
    fastest_time: Cells
    fastest_comp_time: Cells
    fastest_memory: Cells
    efficient_pe: Cells
    largest_pe: Cells
    forbidden_by: Limits
    counts: Cells


def summarise_nothing(shape: tuple[int, ...], of_limits: tuple[int, ...]) -> Summary:
    """The summary of no PE counts: `shape` slices, of which flags tell `of_limits` apart."""
    none = jnp.zeros(shape, jnp.float32)
    return Summary(
        fastest_pe=jnp.zeros(shape),
        fastest_time=none + jnp.inf,
        fastest_comp_time=none,
        fastest_memory=none,
        efficient_pe=jnp.zeros(shape),
        largest_pe=jnp.zeros(of_limits),
        forbidden_by=jnp.zeros(of_limits, jnp.uint8),
        counts=jnp.zeros((len(Limit), *of_limits), jnp.int32),
    )


def summarise(line: Line) -> Summary:
    """The summary of a line, or of a part of one; of size 1 along dimensions where none varies."""
    # In single precision, as cells are stored: what is kept is what a reader of the cells finds.
    time = jnp.asarray(line.comp_time + line.comm_time, jnp.float32)
    # NaN, where there is no such configuration, is no time either.
    time = jnp.where(line.allowed & jnp.isfinite(time), time, jnp.inf)
    fastest_time = jnp.min(time, axis=0)
    # Two minima in place of argmin, which XLA does not vectorise on a CPU.
    fastest = jnp.min(jnp.where(time == fastest_time, line.row, NO_ROW), axis=0)
    is_efficient = time * jnp.asarray(line.p, jnp.float32) <= jnp.asarray(line.enough, jnp.float32)
    efficient = jnp.max(jnp.where(is_efficient, line.row, -1), axis=0)
    largest = jnp.max(jnp.where(line.allowed, line.row, -1), axis=0)
    stops = line.limit & jnp.uint8(STOPS)
    # Beyond the largest one that is allowed: gaps below it stop nothing.
    stopped = jnp.min(jnp.where((stops > 0) & (line.row > largest), line.row, NO_ROW), axis=0)
    p = jnp.asarray(line.p, float)
    return Summary(
        fastest_pe=jnp.where(jnp.isinf(fastest_time), 0, _take_row(p, fastest)),
        fastest_time=fastest_time,
        fastest_comp_time=_take_row(jnp.asarray(line.comp_time, jnp.float32), fastest),
        fastest_memory=_take_row(jnp.asarray(line.memory, jnp.float32), fastest),
        efficient_pe=jnp.where(efficient < 0, 0, _take_row(p, efficient)),
        largest_pe=jnp.where(largest < 0, 0, _take_row(p, largest)),
        forbidden_by=jnp.where(stopped == NO_ROW, jnp.uint8(0), _take_row(stops, stopped)),
        counts=_count_limits(jnp.asarray(line.limit)),
    )


def extend_summary(earlier: Summary, line: Line) -> Summary:
    """The summary with the PE counts of `line` besides, which are larger."""
    part: Summary = jax.tree.map(
        lambda each, like: jnp.broadcast_to(each, like.shape).astype(like.dtype),
        summarise(line),
        earlier,
    )
    return merge_summaries(earlier, part)


def merge_summaries(earlier: Summary, later: Summary) -> Summary:
    """The summary of a line from those of two parts, `later` of the larger PE counts."""
    # Strictly less: of PE counts as fast as each other the smallest stays, as within a part.
    is_later = jnp.less(later.fastest_time, earlier.fastest_time)
    # Where nothing of the later part is allowed, the largest is the earlier's, and so is what
    # forbids the next one.
    stopped = jnp.equal(later.largest_pe, 0) & jnp.greater(earlier.forbidden_by, 0)
    fastest = {
        name: jnp.where(is_later, getattr(later, name), getattr(earlier, name)) for name in FASTEST
    }
    return Summary(
        **fastest,
        efficient_pe=jnp.maximum(earlier.efficient_pe, later.efficient_pe),
        largest_pe=jnp.maximum(earlier.largest_pe, later.largest_pe),
        forbidden_by=jnp.where(stopped, earlier.forbidden_by, later.forbidden_by),
        counts=jnp.add(earlier.counts, later.counts),
    )


def tabulate(summary: Summary) -> Array:
    """The statistics, in their order, of every slice: float64 [statistic, slices].

    NaN for the times and the memory of none.
    """
    values = vars(summary).copy()
    values |= dict(zip(COUNTS, jnp.asarray(summary.counts), strict=True))
    some = jnp.greater(summary.fastest_pe, 0)
    for name in FASTEST[1:]:
        values[name] = jnp.where(some, values[name], jnp.nan)
    shape = jnp.shape(summary.fastest_pe)
    return jnp.stack([jnp.broadcast_to(values[name], shape).astype(float) for name in STATISTICS])


def tabulate_line(line: Line) -> Array:
    """The statistics of a whole line: float64 [statistic, slices]."""
    others = jnp.broadcast_shapes(*(jnp.shape(each)[1:] for each in vars(line).values()))
    nothing = summarise_nothing(others, jnp.shape(line.limit)[1:])
    return tabulate(extend_summary(nothing, line))


def _take_row(values: Array, row: Array) -> Array:
    """The value in a row of each slice, of values along a line; any where there is no such row."""
    values = jnp.asarray(values)
    row = jnp.clip(row, 0, values.shape[0] - 1)
    others = jnp.meshgrid(*map(jnp.arange, row.shape), indexing="ij", sparse=True)
    index = zip((row, *others), values.shape, strict=True)
    return values[tuple(each if size > 1 else 0 for each, size in index)]


def _count_limits(limit: Array) -> Array:
    """How many PE counts have each limit, along a leading dimension."""
    counted = jnp.where(jnp.equal(limit, jnp.uint8(REPEATED)), jnp.uint8(0), limit)
    has = [(counted & jnp.uint8(each)) > 0 for each in Limit]
    return jnp.stack([jnp.sum(each, axis=0, dtype=jnp.int32) for each in has])
