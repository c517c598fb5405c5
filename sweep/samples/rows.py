"""Make rows: labels, features, answers and slopes of a problem's slices, column by column."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.blocks.labels import label_points
from kernels.compiled import fetch
from kernels.names.stored import EPOCH
from kernels.oracle.points import Points
from sweep.cube.variables import find_allowed, join_limits
from sweep.samples.columns import name_slope
from sweep.samples.draw import Draw, draw_slices, make_tables
from sweep.samples.edges import Shares, move_to_edges
from sweep.samples.features import describe_problem, describe_slices
from sweep.samples.space import Problem, SampleSpace
from sweep.samples.splits import name_label

Columns = dict[str, NDArray[Any]]
# Chunks of a problem share its tables.
_keep_tables = lru_cache(maxsize=2)(make_tables)
# Slices evaluated at once: larger programs are no faster.
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


def list_chunks(space: SampleSpace, rows: int) -> list[Chunk]:
    """Divide rows into chunks; problems have equal numbers of slices, give or take one."""
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
    return chunks


def make_rows(space: SampleSpace, chunk: Chunk, request: Request) -> Columns:
    """Make all columns of a chunk's rows, ordered by slice, then by strategy."""
    problem, seed = chunk.problem, request.seed
    tables = _keep_tables(space, problem, seed)
    drawn = draw_slices(space, tables, problem, seed, chunk.first, chunk.size)
    draw, origin = move_to_edges(space, drawn, problem, (seed, chunk.first), request.shares)
    parts = [
        _label_strategy(space, strategy, points, draw, request) | {"origin": origin}
        for strategy, points in enumerate(tables.points)
    ]
    numbers = np.repeat(chunk.number + chunk.first + np.arange(chunk.size), len(parts))
    within = np.arange(numbers.size) < chunk.count * len(parts)
    # In the very last slice some strategies may exceed the requested number of rows.
    kept = within & (numbers * len(parts) + np.arange(numbers.size) % len(parts) < request.rows)
    columns = {name: np.stack([part[name] for part in parts], 1).ravel() for name in parts[0]}
    rows = {name: column[kept] for name, column in ({"slice": numbers} | columns).items()}
    # More than half of the columns: made once, not under every strategy.
    constant = _label_problem(space, problem) | describe_problem(space.grid, problem)
    return rows | {name: np.full(len(rows["slice"]), value) for name, value in constant.items()}


def _label_problem(space: SampleSpace, problem: Problem) -> dict[str, str]:
    labels = zip(space.grid.labels.items(), problem, strict=False)
    return {name_label(dim): names[index] for (dim, names), index in labels}


def _label_strategy(
    space: SampleSpace,
    strategy: int,
    points: Points,
    draw: Draw,
    request: Request,
) -> Columns:
    """Make the columns of all slices under one strategy that differ within the problem."""
    parameters = space.inputs if request.gradients else ()
    answers, slopes, kinks = fetch(
        label_points(
            points,
            draw.rows,
            dict(draw.values),
            parameters=parameters,
            outputs=space.outputs,
            marked=request.marked and request.gradients,
        )
    )
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
