"""Streams: batches of features, targets and gradients without an end, made on the fly.

Rows are answered many at a time: some stripes, each of one problem under one strategy, which take
turns. Batches of any size are cut off them and described. Draws are uniform over ranges, labels and
listed values; nothing is written.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from grids.models.layers import Floats
from grids.reading.errors import InputError, shorten
from kernels.blocks.labels import EPOCH, TARGETS, label_points
from kernels.compiled import fetch, put_on_device
from kernels.configuration.places import ENDLESS
from kernels.oracle.points import Points
from sweep.engine.compile_cache import keep_programs
from sweep.engine.resources import cores
from sweep.samples.draw import Draw
from sweep.samples.edges import is_feasible
from sweep.samples.features import FEATURES, OUTER_LINKS, describe_rows
from sweep.samples.room import Room, Singles, hand_over
from sweep.samples.space import Problem, Source, Space, read_space
from sweep.samples.tables import Tables, make_tables, read_parts

# Stripes whose rows take turns, so that a batch has rows of several problems and strategies.
STRIPES = 16
# Rows of a stripe: to start a program takes as long as it runs on 4096 of them; where there are
# slopes, draws of percentiles, or layers to reduce, programs of more leave the processor's cache.
STRIPE, HEAVY_STRIPE = 2**15, 2**12
# Rows of a stripe where the oracle chooses: all choices of a row take some 0.1 ms of CPU.
CHOSEN_STRIPE = 2**9
# Rows of a stripe at the same place of its table: 4096 are answered in 0.35 ms at 64 or 256 places,
# and in 1.2 ms at 4096, whose numbers are looked up one by one.
TOGETHER = 64
# Rows that a thread describes at a time.
DESCRIBED = 2**12
MOST_ROWS = 2**26
# The targets that there are slopes of.
SLOPED = (EPOCH, *TARGETS)


class Batch(NamedTuple):
    """features [row, feature], targets [row, target], gradients [row, 4, input]: single precision.

    Rows that are no configuration have NaN for targets.
    """

    features: Array
    targets: Array
    gradients: Array


class Kind(NamedTuple):
    """The table that rows of one problem under one strategy are drawn from.

    points: where programs run. machines: values [machine] of what rows share. first: the place of
    its first row among those of all kinds; size: how many it has.
    """

    points: Points
    machines: dict[str, Floats]
    first: int
    size: int


class Rows(NamedTuple):
    """Rows that are answered, and not yet described.

    places [...]: among those of all kinds. numbers [..., column]: drawn values, targets, gradients.
    """

    places: NDArray[np.int64]
    numbers: Singles


class Stream(Iterator[Batch]):
    """An endless iterator of batches, each another; `features`, `targets` and `inputs` name the
    columns. The last target is 1 where nothing forbids a row, else 0. notes: outputs of a store
    that the targets lack.
    """

    features = tuple(FEATURES)

    def __init__(self, space: Space, batch_size: int, key: Array, *, gradients: bool) -> None:
        self._space, self._batch_size = space, batch_size
        self.targets = (*SLOPED, *space.outputs, "feasible")
        self.inputs = space.inputs if gradients else ()
        self.notes = space.notes
        self._drawn = tuple(space.drawn)
        self._varying = _list_varying(self._drawn)
        strategies = range(len(space.grid.strategies))
        self._names = [(problem, strategy) for problem in space.problems for strategy in strategies]
        self._tables: dict[Problem, Tables] = {}
        self._kinds: dict[int, Kind] = {}
        # Features of all kinds' places [place, feature]; 1 where rows have a value of their own.
        self._table: Singles = np.empty((0, len(self.features)), np.float32)
        self._placed = 0  # places that it has; there is room for more
        self._pool = ThreadPoolExecutor(cores(), "paradl-stream")
        self._room = Room()
        stripe = _size_stripe(space, gradients)
        shape = (STRIPES, stripe // TOGETHER, TOGETHER)
        columns = len(self._drawn) + len(self.targets) + len(self.inputs) * len(SLOPED)
        self._rows = Rows(np.empty(shape, np.int64), np.empty((*shape, columns), np.float32))
        # One of each stripe in turn; rows of one place of a table are far from each other.
        self._order = np.arange(math.prod(shape)).reshape(shape).T.ravel()
        self._used = len(self._order)  # rows that batches have had
        self._seed = np.asarray(jax.random.key_data(key)).tolist()
        self._made = 0

    def __next__(self) -> Batch:
        size = self._batch_size
        shapes = (len(self.features),), (len(self.targets),), (len(SLOPED), len(self.inputs))
        batch = [self._room.take((size, *shape)) for shape in shapes]
        filled = 0
        while filled < size:
            if self._used == len(self._order):
                self._answer_rows()
            rows = self._order[self._used :][: size - filled]
            self._describe(rows, *(array[filled : filled + len(rows)] for array in batch))
            filled, self._used = filled + len(rows), self._used + len(rows)
        return Batch(*hand_over(batch))

    def _answer_rows(self) -> None:
        """Draw and answer the rows of some stripes, in the place of those that were used."""
        # From 1: as a seed, words that end in 0 are those without it.
        self._made += 1
        seed = [*self._seed, self._made]
        chosen = np.random.default_rng(seed).integers(len(self._names), size=STRIPES).tolist()
        stripes = list(map(Rows, *self._rows))
        # Prepared one after the other, then drawn side by side: else several would compile alike.
        for number in sorted(set(chosen) - set(self._kinds)):
            self._kinds[number] = self._prepare(*self._names[number])
            self._draw(self._kinds[number], seed, stripes[0])
        kinds = [self._kinds[number] for number in chosen]
        seeds = [[*seed, stripe] for stripe in range(1, STRIPES + 1)]
        for _ in self._pool.map(self._draw, kinds, seeds, stripes):
            pass
        self._used = 0

    def _draw(self, kind: Kind, seed: list[int], stripe: Rows) -> None:
        """Draw and answer the rows of a stripe [place, row of it]."""
        rng = np.random.default_rng(seed)
        shape = stripe.places.shape
        rows = rng.integers(kind.size, size=(shape[0], 1))
        values = {
            name: kind.machines[name][rows // (kind.size // kind.machines[name].size)]
            if name in kind.machines
            else read_parts(law, rng.random(shape))
            for name, law in self._space.drawn.items()
        }
        labels = label_points(
            kind.points,
            rows.astype(np.int32),
            values,
            parameters=self.inputs,
            outputs=self._space.outputs,
        )
        answers, slopes, _ = fetch(labels)
        columns: list[ArrayLike] = [
            # As features have it, what has no bound is 0.
            *(np.where(values[name] >= ENDLESS, 0.0, values[name]) for name in self._drawn),
            *(answers[name] for name in self.targets[:-1]),
            is_feasible(np.asarray(answers["limit"])),
            *(slopes[name][parameter] for name in SLOPED for parameter in self.inputs),
        ]
        stripe.places[:] = kind.first + rows
        for number, column in enumerate(columns):
            stripe.numbers[..., number] = column

    def _describe(
        self, rows: NDArray[np.int64], features: Singles, targets: Singles, gradients: Singles
    ) -> None:
        """Fill a batch's columns, or a part of them, with these rows of those that are answered."""
        first, last = len(self._drawn), len(self._drawn) + len(self.targets)
        places, numbers = self._rows.places.ravel(), self._rows.numbers
        numbers = numbers.reshape(len(places), -1)

        def describe(start: int) -> None:
            part = slice(start, start + DESCRIBED)
            taken = np.take(numbers, rows[part], 0)
            np.take(self._table, places[rows[part]], 0, features[part], "clip")
            for column, drawn in self._varying:
                features[part, column] *= taken[:, drawn]
            targets[part] = taken[:, first:last]
            gradients[part] = taken[:, last:].reshape(gradients[part].shape)

        for _ in self._pool.map(describe, range(0, len(rows), DESCRIBED)):
            pass

    def _prepare(self, problem: Problem, strategy: int) -> Kind:
        """The table of a kind of points; the features of its places join those of all kinds."""
        if problem not in self._tables:
            self._tables[problem] = make_tables(self._space, problem, 0)
        tables = self._tables[problem]
        positions = np.stack(np.unravel_index(np.arange(np.prod(tables.shape)), tables.shape))
        ones = {name: np.ones(positions.shape[1]) for name in self._drawn}
        rows = describe_rows(self._space.grid, problem, strategy, Draw(tables, positions, ones))
        first, self._placed = self._placed, self._placed + positions.shape[1]
        if self._placed > len(self._table):
            # To twice its size at least: no place is copied again with each kind that comes.
            grown = np.empty((max(self._placed, 2 * first), len(self.features)), np.float32)
            grown[:first] = self._table[:first]
            self._table = grown
        for number, name in enumerate(self.features):
            self._table[first : self._placed, number] = rows[name]
        points = put_on_device(tables.points[strategy])
        return Kind(points, tables.machines, first, positions.shape[1])


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


def _size_stripe(space: Space, gradients: bool) -> int:
    """The rows of a stripe: fewer the more of them take."""
    if any(strategy.choices for strategy in space.grid.strategies):
        return CHOSEN_STRIPE
    return HEAVY_STRIPE if gradients or space.layered or space.outputs else STRIPE


def _list_varying(drawn: tuple[str, ...]) -> list[tuple[int, int]]:
    """Features that vary with what rows draw, with the number of the drawn value, by columns.

    Links of the outer levels follow the second one's.
    """
    sources = {name: f"inter_{name.rpartition('_')[2]}" for name in OUTER_LINKS}
    pairs = ((column, sources.get(name, name)) for column, name in enumerate(FEATURES))
    return [(column, drawn.index(name)) for column, name in pairs if name in drawn]
