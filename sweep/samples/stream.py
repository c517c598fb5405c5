"""Streams: batches of features, targets and gradients without an end, made on the fly.

A batch is some stripes, each of one problem under one strategy. Draws are independent and uniform
over ranges, labels and listed values; nothing is written.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from grids.models.layers import Floats
from grids.ranges import Range
from grids.reading.errors import InputError, shorten
from kernels.compiled import put_on_device
from kernels.points import Points
from kernels.streams import STREAMED, Law, draw_stripe
from sweep.engine.compile_cache import keep_programs
from sweep.engine.resources import cores
from sweep.samples.draw import Draw
from sweep.samples.features import FEATURES, OUTER_LINKS, describe_rows
from sweep.samples.space import Problem, Source, Space, read_space
from sweep.samples.tables import make_tables

# Stripes of a batch that there are at least, if they are no smaller than it pays to start programs
# for; beyond the largest, programs leave the processor's cache.
STRIPES = 16
LEAST_STRIPE, LARGEST_STRIPE = 1024, 4096
MOST_ROWS = 2**26


class Batch(NamedTuple):
    """features [row, feature], targets [row, 5], gradients [row, 4, input]: single precision.

    Rows that are no configuration have NaN for targets.
    """

    features: Array
    targets: Array
    gradients: Array


# A table, what its rows are, and machines: where programs run.
_Stripe = tuple[Points, Array, dict[str, Array]]


class Stream(Iterator[Batch]):
    """An endless iterator of batches, each another; `features`, `targets` and `inputs` name the
    columns.
    """

    targets: tuple[str, ...] = STREAMED

    def __init__(self, space: Space, batch_size: int, key: Array, *, gradients: bool) -> None:
        self._space, self._key, self._number = space, key, 0
        self._count = _cut_stripes(batch_size)
        self._stripes = batch_size // self._count
        self._kinds = [
            (problem, strategy)
            for problem in space.problems
            for strategy in range(len(space.grid.strategies))
        ]
        self._ready: dict[int, _Stripe] = {}
        self._pool = ThreadPoolExecutor(cores(), "paradl-stream")
        shared = make_tables(space, space.problems[0], 0).machines
        self._laws = tuple(
            _describe_law(name, drawn) for name, drawn in space.drawn.items() if name not in shared
        )
        self._described = _list_described(space)
        self.features = (*self._described, *sorted(space.drawn))
        self.inputs = space.inputs if gradients else ()

    def __next__(self) -> Batch:
        key = jax.random.fold_in(self._key, self._number)
        self._number += 1
        chosen, *keys = jax.random.split(key, self._stripes + 1)
        kinds = np.asarray(jax.random.randint(chosen, (self._stripes,), 0, len(self._kinds)))
        # Prepared one after the other, then drawn side by side: else several would compile alike.
        for kind in set(kinds.tolist()) - set(self._ready):
            self._ready[kind] = self._prepare(*self._kinds[kind])
            jax.block_until_ready(self._draw(kind, self._key))
        made = list(self._pool.map(self._draw, kinds.tolist(), keys))
        return Batch(*(jnp.concatenate(parts) for parts in zip(*made, strict=True)))

    def _draw(self, kind: int, key: Array) -> tuple[Array, Array, Array]:
        """One stripe."""
        table, described, machines = self._ready[kind]
        return draw_stripe(
            table,
            described,
            machines,
            key,
            count=self._count,
            laws=self._laws,
            parameters=self.inputs,
        )

    def _prepare(self, problem: Problem, strategy: int) -> _Stripe:
        """The table of a kind of points, and what its rows are."""
        tables = make_tables(self._space, problem, 0)
        positions = np.stack(np.unravel_index(np.arange(np.prod(tables.shape)), tables.shape))
        # Of what is drawn any value will do: its columns are not among these.
        values = {name: np.zeros(positions.shape[1]) for name in self._space.drawn}
        rows = describe_rows(self._space.grid, problem, strategy, Draw(tables, positions, values))
        described = np.stack([rows[name] for name in self._described], axis=1)
        stripe: Any = tables.points[strategy], described.astype(np.float32), tables.machines
        ready: _Stripe = put_on_device(stripe)
        return ready


def batches(
    spec: Source, batch_size: int, key: Array | int = 0, *, gradients: bool = False
) -> Stream:
    """An endless stream of batches (features, targets, gradients) over a spec's space, or a cube's.

    key: of `jax.random`, or a seed. gradients: elasticities of the first four targets in the
    `inputs` of the stream; without them the last array has no columns. Programs are kept on disk;
    each problem under each strategy is prepared when it first comes, in some milliseconds.
    """
    if not isinstance(batch_size, int) or not 1 <= batch_size <= MOST_ROWS:
        raise InputError(
            f"expected 1 to {MOST_ROWS:,} rows, got {shorten(batch_size)}", where="batch_size"
        )
    keep_programs()
    start = jax.random.key(key) if isinstance(key, int) else key
    return Stream(read_space(spec), batch_size, start, gradients=gradients)


def _cut_stripes(batch_size: int) -> int:
    """Rows of a stripe: the most, up to what is wanted, that divide a batch."""
    wanted = min(max(batch_size // STRIPES, LEAST_STRIPE), LARGEST_STRIPE)
    return max(each for each in range(1, min(wanted, batch_size) + 1) if batch_size % each == 0)


def _describe_law(name: str, drawn: Range | Floats) -> Law:
    if isinstance(drawn, Range):
        return Law(name, drawn.law, drawn.low, drawn.high, drawn.whole)
    return Law(name, "listed", values=tuple(drawn.tolist()))


def _list_described(space: Space) -> tuple[str, ...]:
    """Features that follow from a table's row: all but what is drawn, and what follows from it."""
    following = {name for name in OUTER_LINKS if f"inter_{name.rpartition('_')[2]}" in space.drawn}
    return tuple(name for name in FEATURES if name not in following and name not in space.drawn)
