"""Streams: batches of features, targets and gradients without an end, made on the fly.

Rows are drawn uniformly over ranges, labels and listed values, and answered some stripes at a time,
each of one problem under one strategy; batches of any size are cut off them. Nothing is written.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids.reading.errors import InputError, shorten
from kernels.compiled import fetch
from kernels.labels import EPOCH, TARGETS, label_points
from sweep.engine.compile_cache import keep_programs
from sweep.samples.draw import place_slices
from sweep.samples.edges import is_feasible
from sweep.samples.features import FEATURES, describe_problem, describe_slices
from sweep.samples.rows import CHUNK
from sweep.samples.space import Problem, Source, Space, read_space
from sweep.samples.tables import Tables, make_tables

# Stripes whose rows take turns, so that a batch has rows of several problems and strategies.
STRIPES = 16
# Rows of a stripe where the oracle chooses: all choices of a row take some 0.1 ms of CPU.
CHOSEN_STRIPE = 2**9
MOST_ROWS = 2**26
# The targets that there are slopes of.
SLOPED = (EPOCH, *TARGETS)

Singles = NDArray[np.float32]


class Batch(NamedTuple):
    """features [row, feature], targets [row, target], gradients [row, 4, input]: single precision.

    Rows that are no configuration have NaN for targets.
    """

    features: Array
    targets: Array
    gradients: Array


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
        chosen = any(strategy.choices for strategy in space.grid.strategies)
        self._stripe = CHOSEN_STRIPE if chosen else CHUNK
        self._tables: dict[Problem, Tables] = {}
        self._rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        self._waiting: list[Singles] = []

    def __next__(self) -> Batch:
        parts, missing = [], self._batch_size
        while missing:
            if not self._waiting or not len(self._waiting[0]):
                self._waiting = self._answer_rows()
            parts.append([array[:missing] for array in self._waiting])
            self._waiting = [array[missing:] for array in self._waiting]
            missing -= len(parts[-1][0])
        return Batch(*map(jax.device_put, map(np.concatenate, zip(*parts, strict=True))))

    def _answer_rows(self) -> list[Singles]:
        """Features, targets and gradients of some stripes, a row of each in turn."""
        problems, strategies = self._space.problems, len(self._space.grid.strategies)
        kinds = self._rng.integers(len(problems) * strategies, size=STRIPES).tolist()
        shapes = (len(self.features),), (len(self.targets),), (len(SLOPED), len(self.inputs))
        rows = [np.empty((self._stripe, STRIPES, *shape), np.float32) for shape in shapes]
        for number, kind in enumerate(kinds):
            stripe = (array[:, number] for array in rows)
            self._fill_stripe(problems[kind // strategies], kind % strategies, *stripe)
        return [
            array.reshape(STRIPES * self._stripe, *shape)
            for array, shape in zip(rows, shapes, strict=True)
        ]

    def _fill_stripe(
        self,
        problem: Problem,
        strategy: int,
        features: Singles,
        targets: Singles,
        gradients: Singles,
    ) -> None:
        """Draw and answer the rows of one problem under one strategy."""
        space = self._space
        if problem not in self._tables:
            self._tables[problem] = make_tables(space, problem, 0)
        tables = self._tables[problem]
        sizes = len(tables.shape) + len(space.drawn), self._stripe
        draw = place_slices(space, tables, self._rng.random(sizes))
        points, values = tables.points[strategy], dict(draw.values)
        labels = label_points(
            points, draw.rows, values, parameters=self.inputs, outputs=space.outputs
        )
        answers, slopes, _ = fetch(labels)
        constant = describe_problem(space.grid, problem)
        varying = describe_slices(space.grid.strategies[strategy], points.case, draw)
        # Whole lines, then the few columns that vary: all columns one by one took twice as long.
        features[:] = [constant.get(name, 0.0) for name in FEATURES]
        for name, column in varying.items():
            features[:, self.features.index(name)] = column
        for number, name in enumerate(self.targets[:-1]):
            targets[:, number] = answers[name]
        targets[:, -1] = is_feasible(np.asarray(answers["limit"]))
        for number, name in enumerate(SLOPED):
            for place, parameter in enumerate(self.inputs):
                gradients[:, number, place] = slopes[name][parameter]


def batches(
    spec: Source, batch_size: int, key: Array | int = 0, *, gradients: bool = False
) -> Stream:
    """An endless stream of batches (features, targets, gradients) over a spec's space, or a cube's.

    key: of `jax.random`, or a seed. gradients: elasticities of the first four targets in the
    `inputs` of the stream; without them the last array has no columns. Programs are kept on disk;
    each problem is prepared when it first comes, in some milliseconds.
    """
    if not isinstance(batch_size, int) or not 1 <= batch_size <= MOST_ROWS:
        raise InputError(
            f"expected 1 to {MOST_ROWS:,} rows, got {shorten(batch_size)}", where="batch_size"
        )
    keep_programs()
    start = jax.random.key(key) if isinstance(key, int) else key
    return Stream(read_space(spec), batch_size, start, gradients=gradients)
