"""The oracle: time, memory and limits of every cell, in two compiled stages.

`reduce_layers` sums the layers once, to arrays that vary only with what a layer depends on;
`answer` is closed-form and runs over all cells. Both are differentiable in every continuous
parameter.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import Array

from kernels import calibrated
from kernels.arrays import Cells, Flags, Limits
from kernels.calibration import Calibration
from kernels.collectives import Algorithm
from kernels.compiled import compiled
from kernels.compute import PE, Optimizer, layer_times
from kernels.flags import FORBIDS
from kernels.group import Bounds, GroupWork, Placement
from kernels.layers import Layers
from kernels.limits import Early, early, limits
from kernels.memory import memory
from kernels.network import Network
from kernels.rates import Rates, are_constant, iteration, rates_of
from kernels.run import Options, Run, Terms, Times, epoch, summed
from kernels.strategy import GroupStrategy, group_work, iteration_terms
from kernels.uncertainty import Spread, Uncertainty, spread


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Answer:
    """Terms [s an epoch], memory [B a PE], limit flags; the replicas and group they hold for.

    compute, communication: sums of terms. spread: how far they may be off; None where nothing was
    calibrated.
    """

    terms: Terms
    compute: Cells
    communication: Cells
    memory: Cells
    limit: Limits
    replicas: Cells
    group: Cells
    spread: Spread | None = None


@compiled("group", "optimizer", "algorithm")
def reduce_layers(
    layers: Layers,
    pe: PE,
    placement: Placement,
    p2: Cells,
    delta: Cells,
    *,
    group: GroupStrategy,
    optimizer: Optimizer = "sgd",
    algorithm: Algorithm = "ring",
) -> GroupWork:
    """Stage one: the work of a group's busiest PE."""
    times = layer_times(layers, pe, delta, optimizer)
    return group_work(group, layers, times, placement, p2, algorithm)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ahead:
    """What of stage two varies with few dimensions, and so is found ahead of the cells.

    exists: whether there is such a configuration. rates: None where times have none.
    """

    exists: Flags
    flags: Early
    rates: Rates | None


def ahead_of(
    work: GroupWork,
    bounds: Bounds,
    run: Run,
    network: Network,
    options: Options,
    known: Calibration | None = None,
) -> Ahead:
    """Find it; the calibrated oracle has no rates."""
    exists = jnp.equal(run.p1 * run.p2, run.p) & bounds.defined
    rates = None
    if known is None and are_constant(options):
        rates = rates_of(work, run, network, options)
        rates = replace(rates, fixed=_where(exists, rates.fixed))
    return Ahead(exists, early(bounds, run), rates)


def answer(
    work: GroupWork,
    bounds: Bounds,
    run: Run,
    network: Network,
    pe: PE,
    options: Options,
    known: Calibration | None = None,
    doubt: Uncertainty | None = None,
    ahead: Ahead | None = None,
) -> Answer:
    """Stage two: everything about every cell; NaN where no such configuration exists.

    Table III's formulas, or with a calibration those of `kernels.calibrated`. ahead: where it is at
    hand.
    """
    ahead = ahead or ahead_of(work, bounds, run, network, options, known)
    exists = ahead.exists
    needed = jnp.where(exists, memory(work, run.batch, run.delta, run.gamma), jnp.nan)
    off = None
    if known is not None:
        terms = calibrated.iteration_terms(work, run, network, pe, known, options)
        times = _where(exists, summed(terms))
        if doubt is not None:
            off = spread(work, run, network, pe, known, options, doubt)
    elif ahead.rates is not None:
        times = iteration(ahead.rates, run.batch)
    else:
        times = _where(exists, summed(iteration_terms(work, run, network, options)))
    found = epoch(times, run, options)
    return Answer(
        terms=found.terms,
        compute=found.compute,
        communication=found.communication,
        memory=needed,
        limit=limits(work, ahead.flags, run, needed, pe.memory_capacity),
        replicas=run.p1,
        group=run.p2,
        spread=off,
    )


def best_group(choices: Answer) -> Answer:
    """Of answers for several group sizes, along the leading axis, the fastest that is allowed.

    Where none is allowed, the fastest that exists.
    """
    time = choices.compute + choices.communication
    time, _ = jnp.broadcast_arrays(jnp.where(jnp.isnan(time), jnp.inf, time), choices.limit)
    forbidden = (choices.limit & jnp.uint8(FORBIDS)) > 0
    allowed = jnp.where(forbidden, jnp.inf, time)
    pick = jnp.where(jnp.isinf(allowed).all(axis=0), time.argmin(axis=0), allowed.argmin(axis=0))
    picked: Answer = jax.tree.map(lambda leaf: _pick(leaf, pick, time.shape), choices)
    return picked


def _pick(leaf: Cells, pick: Array, shape: tuple[int, ...]) -> Array:
    return jnp.take_along_axis(jnp.broadcast_to(leaf, shape), pick[None], axis=0)[0]


def _where(exists: Flags, times: Times) -> Times:
    defined: Times = jax.tree.map(lambda time: jnp.where(exists, time, jnp.nan), times)
    return defined
