"""Endless batches of features, targets and gradients, computed on the fly.

Rows are evaluated in stripes, each of one problem under one strategy. A batch takes a row of each
stripe in turn and only then looks up their features. Draws are random, by the law of a range and
uniform over listed values.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.blocks.labels import label_points
from paradl.kernels.compiled import fetch, put_on_device
from paradl.kernels.configuration.case import Points
from paradl.kernels.configuration.places import ENDLESS
from paradl.kernels.names.arrays import Floats
from paradl.sweep.cube.variables import find_allowed
from paradl.sweep.engine.resources import cores, keep_programs
from paradl.sweep.samples.columns import LEARNT
from paradl.sweep.samples.draw import Draw, make_tables, read_quantiles
from paradl.sweep.samples.features import FEATURES, FOLLOWED, describe_problem, describe_slices
from paradl.sweep.samples.space import Problem, SampleSpace, Source, read_space

Singles = NDArray[np.float32]

# [B] JAX takes a numpy array without copying it if its memory is aligned to this.
ALIGNMENT = 64


def make_array(shape: tuple[int, ...]) -> Singles:
    """Make an uninitialised array that JAX takes without copying it.

    A copy makes batches of 65,536 rows of 214 features take 1.7 times as long (2026-11).
    """
    count = math.prod(shape)
    memory = np.empty(count + ALIGNMENT // 4, np.float32)
    first = -memory.ctypes.data % ALIGNMENT // 4
    return memory[first : first + count].reshape(shape)


# Stripes whose rows take turns, so that a batch mixes problems and strategies.
STRIPES = 16
# Rows per stripe: starting a program takes as long as evaluating 4096 rows. With slopes,
# percentiles or layers to sum, programs of more than 4096 rows overflow the CPU's cache.
STRIPE, HEAVY_STRIPE = 2**15, 2**12
# Rows per stripe where the oracle chooses degrees: a row takes about 0.1 ms of CPU.
CHOSEN_STRIPE = 2**9
# Rows of a stripe that share a point of its table: 4096 rows take 0.35 ms at 64 or 256 points, but
# 1.2 ms at 4096, since values are then gathered one by one.
TOGETHER = 64
# Rows whose features one thread looks up at a time.
DESCRIBED = 2**12
MOST_ROWS = 2**26


class Batch(NamedTuple):
    """Rows in single precision: features [row, feature], targets [row, target], gradients
    [row, 4, input]. Targets of impossible configurations are NaN.
    """

    features: Array
    targets: Array
    gradients: Array


class ProblemTable(NamedTuple):
    """Table of one problem under one strategy, which rows pick from.

    points: on the device. machines: shared values [machine] by parameter. features [row, feature]:
    1 where rows draw their own values.
    """

    points: Points
    machines: dict[str, Floats]
    features: Singles


class Stream(Iterator[Batch]):
    """Endless iterator of batches; `features`, `targets` and `inputs` name their columns.

    The last target is 1 where a row is feasible, else 0. notes: why targets lack outputs of a
    store.
    """

    features = tuple(FEATURES)

    def __init__(self, space: SampleSpace, batch_size: int, key: Array) -> None:
        self._space, self._batch_size = space, batch_size
        self.targets = (*LEARNT, *space.outputs, "feasible")
        self.inputs = space.inputs
        self.notes = space.notes
        self._drawn = tuple(space.drawn)
        # Features that follow a drawn value, as (column, index of the value).
        followed = (FOLLOWED.get(name, name) for name in self.features)
        self._varying = [
            (column, self._drawn.index(name))
            for column, name in enumerate(followed)
            if name in self._drawn
        ]
        strategies = range(len(space.grid.strategies))
        self._names = [(problem, strategy) for problem in space.problems for strategy in strategies]
        self._make_tables = cache(partial(make_tables, space, seed=0))
        self._kinds: dict[int, ProblemTable] = {}
        self._table: Singles  # features of the stripes' kinds [place, feature]
        self._pool = ThreadPoolExecutor(cores(), "paradl-stream")
        stripe = HEAVY_STRIPE if space.inputs or space.layered or space.outputs else STRIPE
        if any(strategy.choices for strategy in space.grid.strategies):
            stripe = CHOSEN_STRIPE
        shape = (STRIPES, stripe // TOGETHER, TOGETHER)
        columns = len(self._drawn) + len(self.targets) + len(self.inputs) * len(LEARNT)
        # Rows without features [stripe, point, row]: their places in the feature table, and their
        # drawn values, targets and gradients [..., column].
        self._places: NDArray[np.int64] = np.empty(shape, np.int64)
        self._numbers: Singles = np.empty((*shape, columns), np.float32)
        # A row of each stripe in turn; rows that share a point are far apart.
        self._order = np.arange(math.prod(shape)).reshape(shape).T.ravel()
        self._used = len(self._order)  # rows already handed out
        self._seed = np.asarray(jax.random.key_data(key)).tolist()
        self._made = 0

    def __next__(self) -> Batch:
        size = self._batch_size
        shapes = (len(self.features),), (len(self.targets),), (len(LEARNT), len(self.inputs))
        batch = [make_array((size, *shape)) for shape in shapes]
        filled = 0
        while filled < size:
            if self._used == len(self._order):
                self._answer_rows()
            rows = self._order[self._used :][: size - filled]
            self._describe(rows, *(array[filled : filled + len(rows)] for array in batch))
            filled, self._used = filled + len(rows), self._used + len(rows)
        return Batch(*jax.device_put(batch, may_alias=True))

    def _answer_rows(self) -> None:
        """Replace the used rows by newly drawn and evaluated ones."""
        # From 1: numpy ignores trailing zeros of a seed.
        self._made += 1
        seed = [*self._seed, self._made]
        chosen = np.random.default_rng(seed).integers(len(self._names), size=STRIPES).tolist()
        # Drawn once each before the threads start, which would otherwise compile programs twice.
        for number in sorted(set(chosen) - set(self._kinds)):
            self._kinds[number] = self._prepare(*self._names[number])
            self._draw(self._kinds[number], seed, self._places[0], self._numbers[0])
        kinds = [self._kinds[number] for number in chosen]
        seeds = [[*seed, stripe] for stripe in range(1, STRIPES + 1)]
        list(self._pool.map(self._draw, kinds, seeds, self._places, self._numbers))
        self._table = np.concatenate([kind.features for kind in kinds])
        first = np.cumsum([0, *(len(kind.features) for kind in kinds[:-1])])
        self._places += first[:, None, None]
        self._used = 0

    def _draw(
        self, kind: ProblemTable, seed: list[int], places: NDArray[np.int64], numbers: Singles
    ) -> None:
        """Draw and evaluate the rows of a stripe [point, row]."""
        rng = np.random.default_rng(seed)
        size = len(kind.features)
        rows = rng.integers(size, size=(len(places), 1))
        values = {
            name: kind.machines[name][rows // (size // kind.machines[name].size)]
            if name in kind.machines
            else read_quantiles(law, rng.random(places.shape))
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
            # As in features, an unlimited value is 0.
            *(np.where(values[name] >= ENDLESS, 0.0, values[name]) for name in self._drawn),
            *(answers[name] for name in self.targets[:-1]),
            find_allowed(np.asarray(answers["limit"])),
            *(slopes[name][parameter] for name in LEARNT for parameter in self.inputs),
        ]
        places[:] = rows
        for number, column in enumerate(columns):
            numbers[..., number] = column

    def _describe(
        self, rows: NDArray[np.int64], features: Singles, targets: Singles, gradients: Singles
    ) -> None:
        """Fill arrays of a batch with these of the evaluated rows."""
        first, last = len(self._drawn), len(self._drawn) + len(self.targets)
        places = self._places.ravel()
        numbers = self._numbers.reshape(len(places), -1)

        def describe(start: int) -> None:
            part = slice(start, start + DESCRIBED)
            taken = np.take(numbers, rows[part], 0)
            np.take(self._table, places[rows[part]], 0, features[part], "clip")
            for column, drawn in self._varying:
                features[part, column] *= taken[:, drawn]
            targets[part] = taken[:, first:last]
            gradients[part] = taken[:, last:].reshape(gradients[part].shape)

        list(self._pool.map(describe, range(0, len(rows), DESCRIBED)))

    def _prepare(self, problem: Problem, strategy: int) -> ProblemTable:
        """Make the table of a problem under a strategy."""
        tables = self._make_tables(problem)
        positions = np.stack(np.unravel_index(np.arange(np.prod(tables.shape)), tables.shape))
        ones = {name: np.ones(positions.shape[1]) for name in self._drawn}
        grid = self._space.grid
        rows = describe_slices(grid, strategy, Draw(tables, positions, ones))
        described: dict[str, Floats | float] = {**rows, **describe_problem(grid, problem)}
        features = np.empty((positions.shape[1], len(self.features)), np.float32)
        for number, name in enumerate(self.features):
            features[:, number] = described[name]
        points = tables.points[strategy]
        points = points if points.case.in_numpy else put_on_device(points)
        return ProblemTable(points, tables.machines, features)


def batches(
    spec: Source, batch_size: int, key: Array | int = 0, *, gradients: bool = False
) -> Stream:
    """Return an endless stream of batches (features, targets, gradients) over a spec or a cube.

    key: of `jax.random`, or a seed. gradients: add elasticities of the first four targets in the
    stream's `inputs`; otherwise the last array has no columns. Programs are cached on disk; a
    problem under a strategy takes some milliseconds when it first appears.

    InputError: a bad batch size or spec, no continuous axis.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> space = {"axes": axes | {"pe": 64, "batch": {"loguniform": [8, 256]}}, "oracle": "paper"}
    >>> stream = paradl.batches(space, 1000)
    >>> features, targets, gradients = next(stream)
    >>> targets.shape, stream.targets
    ((1000, 5), ('epoch_time', 'comp_time', 'comm_time', 'memory', 'feasible'))
    """
    if not isinstance(batch_size, int) or not 1 <= batch_size <= MOST_ROWS:
        raise InputError(
            f"expected 1 to {MOST_ROWS:,} rows, got {shorten(batch_size)}", where="batch_size"
        )
    keep_programs()
    start = jax.random.key(key) if isinstance(key, int) else key
    return Stream(read_space(spec, () if gradients else None), batch_size, start)
