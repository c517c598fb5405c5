"""Make rows: labels, features, answers and slopes of a problem's slices, column by column."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil
from typing import Any

import numpy as np

from paradl.kernels.blocks.labels import label_points
from paradl.kernels.compiled import fetch
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.cube.variables import find_allowed, join_limits
from paradl.sweep.engine.resources import cores
from paradl.sweep.samples.columns import Columns, name_slope
from paradl.sweep.samples.draw import Draw, draw_slices, make_tables
from paradl.sweep.samples.features import describe_problem, describe_slices
from paradl.sweep.samples.space import Problem, SampleSpace
from paradl.sweep.samples.splits import name_label

# Chunks of a problem share its tables.
_keep_tables = lru_cache(maxsize=2)(make_tables)
# Slices evaluated at once: larger programs are no faster.
CHUNK = 4096


@dataclass(frozen=True)
class Request:
    """Rows to draw. gradients: compute slopes, and mark rows near a kink."""

    rows: int
    seed: int = 0
    gradients: bool = True


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


def list_chunks(space: SampleSpace, rows: int) -> list[Chunk]:
    """Divide rows into chunks; problems have equal numbers of slices, give or take one."""
    slices, problems = ceil(rows / len(space.grid.strategies)), space.problems
    # Chunks of one size share a compiled program.
    size = min(CHUNK, 1 << (ceil(slices / len(problems)) - 1).bit_length())
    chunks, number = [], 0
    for position, problem in enumerate(problems):
        share = slices // len(problems) + (position < slices % len(problems))
        for first in range(0, share, size):
            chunks.append(Chunk(problem, number, first, min(size, share - first), size))
        number += share
    return chunks


def make_rows(space: SampleSpace, request: Request, chunk: Chunk) -> Columns:
    """Make all columns of a chunk's rows, ordered by slice, then by strategy."""
    problem, seed = chunk.problem, request.seed
    tables = _keep_tables(space, problem, seed)
    draw = draw_slices(space, tables, problem, seed, chunk.first, chunk.size)
    strategies = len(space.grid.strategies)
    # In threads, so that their programs compile at the same time.
    with ThreadPoolExecutor(cores(), "paradl-labels") as pool:
        label = partial(_label_strategy, space, request, draw)
        parts = list(pool.map(label, range(strategies)))
    slices = np.arange(chunk.count)
    numbers = np.repeat(chunk.number + chunk.first + slices, strategies)
    # In the very last slice some strategies may exceed the requested number of rows.
    count = min(numbers.size, request.rows - int(numbers[0]) * strategies)
    columns = {name: np.stack([part[name] for part in parts], 1) for name in parts[0]}
    # More than half of the columns: made once per problem, not under every strategy.
    labels = zip(space.grid.labels.items(), problem, strict=False)
    constant: dict[str, str | float] = {
        **{name_label(dim): names[index] for (dim, names), index in labels},
        **describe_problem(space.grid, problem),
    }
    return {
        "slice": numbers[:count],
        **{name: column.ravel()[:count] for name, column in columns.items()},
        **{name: np.full(count, value) for name, value in constant.items()},
    }


def _label_strategy(space: SampleSpace, request: Request, draw: Draw, strategy: int) -> Columns:
    """Make the columns of all slices under one strategy that differ within the problem."""
    labels = label_points(
        draw.tables.points[strategy],
        draw.rows,
        dict(draw.values),
        parameters=space.inputs if request.gradients else (),
        outputs=space.outputs,
        marked=request.gradients,
    )
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
