"""Make rows: labels, features, answers and slopes of a problem's slices, column by column."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.kernels.blocks.labels import compile_ahead, label_points
from paradl.kernels.compiled import fetch
from paradl.kernels.configuration.case import Points
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.cube.variables import find_allowed, join_limits
from paradl.sweep.samples.columns import Columns, name_slope
from paradl.sweep.samples.draw import (
    Draw,
    Tables,
    draw_slices,
    identify_tables,
    join_draws,
    join_tables,
    make_tables,
)
from paradl.sweep.samples.edges import Shares, move_to_edges
from paradl.sweep.samples.features import describe_problem, describe_slices
from paradl.sweep.samples.space import Problem, SampleSpace
from paradl.sweep.samples.splits import name_label

# Chunks of a problem share its tables.
_keep_tables = lru_cache(maxsize=2)(make_tables)
# Slices evaluated at once, of one problem or several: larger programs are no faster.
CHUNK = 4096


@dataclass(frozen=True)
class Request:
    """Rows to draw. gradients: compute slopes. marked: mark rows near a kink."""

    rows: int
    seed: int = 0
    shares: Shares = field(default_factory=Shares)
    gradients: bool = True
    marked: bool = True


@dataclass(frozen=True)
class Chunk:
    """Slices `first` to `first + count` of a problem whose first slice has the number `number`.

    size: number of slices to evaluate; those beyond `count` are dropped.
    """

    problem: Problem
    number: int
    first: int
    count: int
    size: int


def list_batches(space: SampleSpace, rows: int) -> list[list[Chunk]]:
    """Divide rows into batches of chunks that are evaluated together.

    Problems have equal numbers of slices, give or take one.
    """
    slices, problems = ceil(rows / len(space.grid.strategies)), space.problems
    # Chunks of one size share a compiled program.
    size = min(CHUNK, 1 << (ceil(slices / len(problems)) - 1).bit_length())
    chunks, number = [], 0
    for position, problem in enumerate(problems):
        share = slices // len(problems) + (position < slices % len(problems))
        for first in range(0, share, size):
            count = min(size, share - first)
            chunks.append(Chunk(problem, number, first, count, size))
        number += share
    # Networks differ in their numbers of layers, which rows of a layered space sum, and in blocks.
    is_alone = space.layered or any(space.grid.transformers)
    together = 1 if is_alone else min(CHUNK // size, len(chunks))
    return [chunks[first : first + together] for first in range(0, len(chunks), together)]


@dataclass(frozen=True, eq=False)
class DrawnBatch:
    """Slices of a batch's chunks, padded to those of a full one. origin [slice]."""

    chunks: Sequence[Chunk]
    draw: Draw
    origin: NDArray[np.str_]


def draw_batch(
    space: SampleSpace, chunks: Sequence[Chunk], together: int, request: Request
) -> Iterator[DrawnBatch]:
    """Draw the slices of a batch, in parts whose tables join. together: chunks of a full one."""
    drawn = [(chunk, *_draw_chunk(space, chunk, request)) for chunk in chunks]
    for _, alike in groupby(drawn, key=lambda part: identify_tables(part[1].tables)):
        some, draws, origins = zip(*alike, strict=True)
        yield DrawnBatch(some, join_draws(draws, together), np.concatenate(origins))


def _draw_chunk(
    space: SampleSpace, chunk: Chunk, request: Request
) -> tuple[Draw, NDArray[np.str_]]:
    problem, seed = chunk.problem, request.seed
    tables = _keep_tables(space, problem, seed)
    drawn = draw_slices(space, tables, problem, seed, chunk.first, chunk.size)
    return move_to_edges(space, drawn, problem, (seed, chunk.first), request.shares)


def compile_first(
    pool: Executor, space: SampleSpace, chunks: Sequence[Chunk], request: Request
) -> None:
    """Compile the programs of a full batch in the pool, before any of its slices is drawn.

    The tables of its first problem have the shapes of all, as a rule.
    """
    tables = join_tables([_keep_tables(space, chunks[0].problem, request.seed)], len(chunks))
    _compile(pool, space, tables, sum(chunk.size for chunk in chunks), request)


def compile_labels(pool: Executor, space: SampleSpace, batch: DrawnBatch, request: Request) -> None:
    """Compile the programs of a batch in the pool, before the first call of `make_rows`."""
    _compile(pool, space, batch.draw.tables, len(batch.draw), request)


def _compile(
    pool: Executor, space: SampleSpace, tables: Tables, slices: int, request: Request
) -> None:
    # Only shapes and types matter.
    rows, labels = np.empty(slices, np.int64), _choose_labels(space, request)
    values = {name: np.empty(slices) for name in (*space.drawn, *tables.machines)}
    for points in tables.points:
        compile_ahead(pool, points, rows, values, **labels)


def make_rows(space: SampleSpace, batch: DrawnBatch, request: Request) -> Columns:
    """Make all columns of a batch's rows, ordered by slice, then by strategy."""
    chunks, draw = batch.chunks, batch.draw
    parts = [
        _label_strategy(space, strategy, points, draw, request)
        for strategy, points in enumerate(draw.tables.points)
    ]
    strategies, size = len(parts), chunks[0].size
    within = np.concatenate([np.arange(size) < chunk.count for chunk in chunks])
    slices = np.concatenate([chunk.number + chunk.first + np.arange(size) for chunk in chunks])
    numbers = np.repeat(slices, strategies)
    # In the very last slice some strategies may exceed the requested number of rows.
    of_last = numbers * strategies + np.tile(np.arange(strategies), slices.size) >= request.rows
    kept = np.repeat(within, strategies) & ~of_last
    columns = {
        name: np.stack([part[name][: slices.size] for part in parts], 1).ravel()[kept]
        for name in parts[0]
    }
    origin = np.repeat(batch.origin, strategies)[kept]
    # More than half of the columns: made once per problem, not under every strategy.
    constant = [
        _label_problem(space, chunk.problem) | describe_problem(space.grid, chunk.problem)
        for chunk in chunks
    ]
    counts = np.add.reduceat(kept.astype(int), np.arange(0, kept.size, size * strategies))
    return {
        "slice": numbers[kept],
        **columns,
        "origin": origin,
        **{name: np.repeat([of[name] for of in constant], counts) for name in constant[0]},
    }


def _label_problem(space: SampleSpace, problem: Problem) -> dict[str, str]:
    labels = zip(space.grid.labels.items(), problem, strict=False)
    return {name_label(dim): names[index] for (dim, names), index in labels}


def _choose_labels(space: SampleSpace, request: Request) -> dict[str, Any]:
    return {
        "parameters": space.inputs if request.gradients else (),
        "outputs": space.outputs,
        "marked": request.marked and request.gradients,
    }


def _label_strategy(
    space: SampleSpace,
    strategy: int,
    points: Points,
    draw: Draw,
    request: Request,
) -> Columns:
    """Make the columns of all slices under one strategy that differ within the problem."""
    labels = label_points(points, draw.rows, dict(draw.values), **_choose_labels(space, request))
    answers, slopes, kinks = fetch(labels)
    return {
        "strategy": np.full(len(draw), space.grid.labels["strategy"][strategy]),
        **describe_slices(space.grid, strategy, draw),
        **_read_answers(answers),
        **{
            name_slope(target, parameter): np.asarray(slope, np.float32)
            for target, by_parameter in slopes.items()
            for parameter, slope in by_parameter.items()
        },
        "near_kink": np.asarray(kinks),
    }


def _read_answers(fetched: Mapping[str, Any]) -> Columns:
    """Return targets, limits, and the degrees that the oracle chose."""
    answers = {name: np.asarray(answer) for name, answer in fetched.items()}
    flags = answers.pop("limit")
    texts, indices = join_limits(flags)
    return {
        "feasible": find_allowed(flags),
        "defined": np.isfinite(answers[EPOCH]) & np.isfinite(answers["memory"]),
        "limit_names": np.array(texts)[indices],
        **{name: answer.astype(np.float32) for name, answer in answers.items()},
    }
