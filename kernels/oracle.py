"""The oracle: time, memory and limits of every cell, in two compiled stages.

`reduce_layers` sums the layers once, to arrays that vary only with what a layer depends on;
`answer` is closed-form and runs over all cells. Both are differentiable in every continuous
parameter.
"""

from dataclasses import dataclass, fields

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Flags, Limits
from kernels.collectives import Algorithm
from kernels.compiled import compiled
from kernels.compute import PE, Optimizer, layer_times
from kernels.group import Bounds, GroupWork, Placement
from kernels.layers import Layers
from kernels.limits import FORBIDS, limits
from kernels.memory import memory
from kernels.network import Network
from kernels.strategy import (
    GroupStrategy,
    Options,
    Run,
    Terms,
    epoch_terms,
    group_work,
    iteration_terms,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Answer:
    """Terms [s an epoch], memory [B a PE], limit flags; the replicas and group they hold for."""

    terms: Terms
    memory: Cells
    limit: Limits
    replicas: Cells
    group: Cells


@compiled("group", "optimizer", "algorithm")
def reduce_layers(
    layers: Layers,
    pe: PE,
    placement: Placement,
    p2: Cells,
    b: Cells,
    delta: Cells,
    *,
    group: GroupStrategy,
    optimizer: Optimizer = "sgd",
    algorithm: Algorithm = "ring",
) -> GroupWork:
    """Stage one: the work of a group's busiest PE."""
    times = layer_times(layers, pe, delta, optimizer)
    return group_work(group, layers, times, placement, p2, b, algorithm)


def answer(
    work: GroupWork,
    bounds: Bounds,
    run: Run,
    network: Network,
    memory_capacity: Cells,
    options: Options,
) -> Answer:
    """Stage two: everything about every cell; NaN where no such configuration exists."""
    exists = jnp.equal(run.p1 * run.p2, run.p) & bounds.defined
    needed = memory(work, run.delta, run.gamma)
    terms = epoch_terms(iteration_terms(work, run, network, options), run, options)
    return Answer(
        terms=_where_exists(exists, terms),
        memory=jnp.where(exists, needed, jnp.nan),
        limit=limits(work, bounds, run, jnp.where(exists, needed, jnp.nan), memory_capacity),
        replicas=run.p1,
        group=run.p2,
    )


def best_group(choices: Answer) -> Answer:
    """Of answers for several group sizes, along the leading axis, the fastest that is allowed.

    Where none is allowed, the fastest that exists.
    """
    time = choices.terms.compute + choices.terms.communication
    time = jnp.where(jnp.isnan(time), jnp.inf, time)
    forbidden = (choices.limit & jnp.uint8(FORBIDS)) > 0
    allowed = jnp.where(forbidden, jnp.inf, time)
    pick = jnp.where(jnp.isinf(allowed).all(axis=0), time.argmin(axis=0), allowed.argmin(axis=0))
    picked: Answer = jax.tree.map(lambda leaf: _pick(leaf, pick, time.shape), choices)
    return picked


def _pick(leaf: Cells, pick: Array, shape: tuple[int, ...]) -> Array:
    return jnp.take_along_axis(jnp.broadcast_to(leaf, shape), pick[None], axis=0)[0]


def _where_exists(exists: Flags, terms: Terms) -> Terms:
    return Terms(
        **{f.name: jnp.where(exists, getattr(terms, f.name), jnp.nan) for f in fields(terms)}
    )
