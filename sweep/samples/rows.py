"""Rows: slices of a problem with everything that a learner is given of them, column by column."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.blocks.labels import ANSWERS, EPOCH, TARGETS, label_points
from kernels.compiled import fetch
from kernels.oracle.points import Points
from sweep.cube.variables import name_limits
from sweep.samples.columns import name_label, name_slope
from sweep.samples.draw import Draw, draw_slices
from sweep.samples.edges import Shares, is_feasible, move_to_edges
from sweep.samples.features import describe_rows
from sweep.samples.space import Problem, Space
from sweep.samples.tables import make_tables

Columns = dict[str, NDArray[Any]]
# The chunks of a problem share its tables.
_keep_tables = lru_cache(maxsize=2)(make_tables)
# Slices that are evaluated at once: beyond it programs are no faster (docs/surrogates.md).
CHUNK = 4096


@dataclass(frozen=True)
class Request:
    """Which rows are drawn: how many, from which seed, which shares near edges.

    marked: whether points near a kink are looked for. gradients: whether there are slopes at all.
    """

    rows: int
    seed: int = 0
    shares: Shares = field(default_factory=Shares)
    gradients: bool = True
    marked: bool = True


@dataclass(frozen=True)
class Chunk:
    """Slices `first` to `first + count` of one problem, of which slice 0 is number `number`."""

    problem: Problem
    number: int
    first: int
    count: int
    size: int


def list_chunks(space: Space, rows: int) -> list[Chunk]:
    """All chunks of so many rows: problems have as many slices each, but for one."""
    slices, problems = ceil(rows / len(space.grid.strategies)), space.problems
    # All of one size: one compiled program serves them.
    size = min(CHUNK, 1 << (ceil(slices / len(problems)) - 1).bit_length())
    chunks, number = [], 0
    for place, problem in enumerate(problems):
        share = slices // len(problems) + (place < slices % len(problems))
        for first in range(0, share, size):
            count = min(size, share - first)
            chunks.append(Chunk(problem, number, first, count, size))
        number += share
    return chunks


def make_rows(space: Space, chunk: Chunk, request: Request) -> Columns:
    """All columns of a chunk's rows, slice after slice, in each of them strategy after strategy."""
    problem, seed = chunk.problem, request.seed
    tables = _keep_tables(space, problem, seed)
    drawn = draw_slices(space, tables, problem, seed, chunk.first, chunk.size)
    draw, origin = move_to_edges(space, drawn, problem, (seed, chunk.first), request.shares)
    parts = [
        _label_strategy(space, problem, strategy, points, draw, request) | {"origin": origin}
        for strategy, points in enumerate(tables.points)
    ]
    numbers = np.repeat(chunk.number + chunk.first + np.arange(chunk.size), len(parts))
    within = np.arange(numbers.size) < chunk.count * len(parts)
    # The very last slice leaves out strategies beyond the number of rows in the request.
    kept = within & (numbers * len(parts) + np.arange(numbers.size) % len(parts) < request.rows)
    columns = {name: np.stack([part[name] for part in parts], 1).ravel() for name in parts[0]}
    return {name: column[kept] for name, column in ({"slice": numbers} | columns).items()}


def _label_strategy(
    space: Space, problem: Problem, strategy: int, points: Points, draw: Draw, request: Request
) -> Columns:
    """The columns of all slices under one strategy."""
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
    labels = zip(space.grid.labels.items(), (*problem, strategy), strict=True)
    return {
        **{name_label(dim): np.full(len(draw), names[at]) for (dim, names), at in labels},
        **describe_rows(space.grid, problem, strategy, draw),
        **_read_answers(answers, space.outputs),
        **{
            name_slope(target, parameter): np.asarray(slope, np.float32)
            for target, of_target in slopes.items()
            for parameter, slope in of_target.items()
        },
        "near_kink": np.asarray(kinks),
    }


def _read_answers(fetched: Mapping[str, Any], outputs: tuple[str, ...]) -> Columns:
    """Targets, the limits of a row, and the counts that the oracle chose."""
    answers: dict[str, NDArray[Any]] = {
        name: np.asarray(answer) for name, answer in fetched.items()
    }
    flags = answers["limit"]
    times = {name: answers[name].astype(np.float32) for name in (EPOCH, *TARGETS, *outputs)}
    chosen = {
        name: answers[name].astype(np.float32) for name in ANSWERS if name not in (*times, "limit")
    }
    return {
        **times,
        "feasible": is_feasible(flags),
        "defined": np.isfinite(answers[EPOCH]) & np.isfinite(answers["memory"]),
        "limit_names": _name_flags(flags),
        **chosen,
    }


def _name_flags(flags: NDArray[np.generic]) -> NDArray[np.str_]:
    """The names of each row's limits, in one text."""
    values, at = np.unique(flags, return_inverse=True)
    return np.array([", ".join(name_limits(int(value))) for value in values])[at]
