"""Streams: points drawn, answered and described by compiled programs, faster than a disk reads.

A stripe is `count` points of one table: its rows and the values of parameters are drawn uniformly.
Numbers leave in single precision, as learners take them. Three programs one after the other: of one
alone the compiler would draw, and answer, again for each column (2.7 ms instead of 1.5 for 4096
points, 2026-11).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import LIMITS, AnyArray
from kernels.compiled import compiled
from kernels.elasticities import Slopes
from kernels.flags import FORBIDS
from kernels.labels import EPOCH, TARGETS, label_points
from kernels.points import Points

# Columns of targets; the last is 1 where nothing forbids a point, else 0.
STREAMED = (EPOCH, *TARGETS, "feasible")


@dataclass(frozen=True)
class Law:
    """How values of a parameter are drawn: from `low` to `high`, whole ones rounded, or listed."""

    name: str
    law: Literal["uniform", "loguniform", "listed"]
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    values: tuple[float, ...] = ()


def draw_stripe(
    table: Points,
    described: AnyArray,
    machines: Mapping[str, AnyArray],
    key: Array,
    *,
    count: int,
    laws: tuple[Law, ...],
    parameters: tuple[str, ...],
) -> tuple[Array, Array, Array]:
    """Features [point, feature], targets [point, 5] (`STREAMED`), slopes [point, 4, parameter].

    described: features of the table's rows [row, feature]. machines: values [machine] of what
    points share; the table's rows are then those of the first machine, of the second ... laws: of
    what each point draws. Values of both stand behind the described features, by their names in
    alphabetical order. parameters: in which there are slopes, if any.
    """
    rows, values = _draw_points(machines, key, size=described.shape[0], count=count, laws=laws)
    answers, slopes, _ = label_points(table, rows, values, parameters=parameters)
    columns = {name: answers[name] for name in (*STREAMED[:-1], "limit")}
    return _assemble(described, rows, values, columns, slopes, parameters=parameters)


@compiled("size", "count", "laws")
def _draw_points(
    machines: Mapping[str, AnyArray],
    key: Array,
    *,
    size: int,
    count: int,
    laws: tuple[Law, ...],
) -> tuple[Array, dict[str, Array]]:
    """Rows [point] of a table of `size`, and values [point] by parameter."""
    parts = jax.random.uniform(key, (len(laws) + 1, count), jnp.float32).astype(float)
    rows = jnp.minimum((parts[0] * size).astype(jnp.int32), size - 1)
    values = {law.name: _draw(law, part) for law, part in zip(laws, parts[1:], strict=True)}
    for name, each in machines.items():
        values[name] = jnp.asarray(each)[rows // (size // each.shape[0])]
    return rows, values


@compiled("parameters")
def _assemble(
    described: AnyArray,
    rows: Array,
    values: dict[str, Array],
    answers: dict[str, Array],
    slopes: dict[str, Slopes],
    *,
    parameters: tuple[str, ...],
) -> tuple[Array, Array, Array]:
    """Columns side by side, in single precision."""
    feasible = (answers["limit"] & LIMITS(FORBIDS)) == 0
    targets = [*(answers[name] for name in STREAMED[:-1]), feasible]
    drawn = jnp.stack([values[name].astype(jnp.float32) for name in sorted(values)], axis=1)
    return (
        jnp.concatenate([jnp.asarray(described)[rows], drawn], axis=1),
        jnp.stack([each.astype(jnp.float32) for each in targets], axis=1),
        _stack_slopes(slopes, parameters, len(rows)),
    )


def _draw(law: Law, parts: Array) -> Array:
    """Values at parts in [0, 1), as `grids.ranges` has them."""
    if law.law == "listed":
        values = jnp.asarray(law.values)
        return values[jnp.minimum((parts * len(law.values)).astype(jnp.int32), len(law.values) - 1)]
    half = 0.5 if law.whole else 0.0
    low, high = law.low - half, law.high + half
    if law.law == "loguniform":
        values = jnp.exp(jnp.log(low) + parts * (jnp.log(high) - jnp.log(low)))
    else:
        values = low + parts * (high - low)
    return jnp.clip(jnp.round(values) if law.whole else values, law.low, law.high)


def _stack_slopes(slopes: Mapping[str, Slopes], parameters: tuple[str, ...], count: int) -> Array:
    if not parameters:
        return jnp.zeros((count, len(STREAMED) - 1, 0), jnp.float32)
    each = [
        jnp.stack([slopes[target][name] for name in parameters], axis=1) for target in STREAMED[:-1]
    ]
    return jnp.stack(each, axis=1).astype(jnp.float32)
