"""Runs: how PEs and samples of every cell divide into replicas and groups, and their epochs."""

import math
from dataclasses import replace
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from paradl.grids.convergence.entry import Convergence, draw_curve
from paradl.grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.inputs.machine import look_up_bytes
from paradl.grids.inputs.values import Settings, Values
from paradl.grids.inputs.workload import Workload
from paradl.kernels.arrays import use_numpy
from paradl.kernels.batches import Scaling
from paradl.kernels.configuration.case import EpochLaw
from paradl.kernels.configuration.run import Run
from paradl.kernels.divisors import list_divisors
from paradl.kernels.machine.device import count_pes
from paradl.kernels.machine.network import Network, shared_links
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.parallelisms import NODE
from paradl.kernels.options import Optimizer, OracleName, Zero
from paradl.kernels.parallelism.alignment import count_ranks_in_node
from paradl.kernels.parallelism.layout import UNDIVIDED, find_part

# GPipe's stages are busy S / (q+S-1) of the time: 94 % with 1,024 for q = 64.
MOST_SEGMENTS = 1024


def build_run(strategy: Strategy, values: Values, workload: Workload, settings: Settings) -> Run:
    """Build the run of every cell, with phi still 1."""
    p, system = values.get("pe"), workload.system
    if strategy.several:
        sizes = _find_degrees(strategy, values, p)
    else:
        (name,) = strategy.parts or (UNDIVIDED.name,)
        sizes = {name: find_group_size(strategy, values, system, p, settings.oracle)}
    degrees = {find_part(name).sends_as: size for name, size in sizes.items()}
    # At least one replica, to avoid dividing by 0: a group larger than p is refused elsewhere.
    several = np.maximum(p // count_pes(degrees), 1)
    replicas = several if strategy.replicated else np.ones((1,) * values.rank)
    batch, passes, segments = _cut_flush(strategy, values, replicas, settings.scaling)
    return make_run(
        *(values, system, workload.samples, settings),
        replicas=replicas,
        degrees=degrees,
        spec_batch=batch,
        segments=segments,
        accumulate=passes,
        shards=_find_shards(strategy, system, settings, several, np.asarray(count_pes(degrees))),
    )


def _find_shards(
    strategy: Strategy, system: System, settings: Settings, replicas: Floats, inside: Floats
) -> Floats | None:
    """Return the replicas that ZeRO divides over [cells]; None for all, or without ZeRO."""
    if not (strategy.shard and settings.options.zero):
        return None
    if strategy.shard != NODE:
        return np.full(replicas.shape, float(strategy.shard))
    ranks, strides = (np.rint(number).astype(int) for number in (replicas, inside))
    return count_ranks_in_node(ranks, strides, system.pes_per_node).astype(float)


def make_run(
    values: Values, system: System, samples: int, settings: Settings, **divided: Any
) -> Run:
    """Make a run. divided: fields that say how PEs and samples divide."""
    return Run(
        p=values.get("pe"),
        samples=np.asarray(float(samples)),
        delta=look_up_bytes("item", system, values, settings.oracle),
        gamma=values.get("gamma"),
        phi=np.ones((1,) * values.rank),
        gradient_delta=look_up_bytes("gradient", system, values, settings.oracle),
        sharded=_find_sharded(settings.options.zero, system, settings.options.optimizer),
        scaling=settings.scaling,
        **divided,
    )


def _find_sharded(zero: Zero, system: System, optimizer: Optimizer) -> Floats | None:
    """Return ZeRO's share of bytes per weight: states, from stage 2 gradients, at 3 weights."""
    if not zero:
        return None
    precision = PRECISIONS[system.precision]
    parts = (precision.master + OPTIMIZER_BYTES[optimizer], precision.gradient, precision.item)
    return np.asarray(sum(parts[:zero]) / sum(parts))


def _cut_flush(
    strategy: Strategy, values: Values, replicas: Floats, scaling: Scaling
) -> tuple[Floats, Floats, Floats]:
    """Return the batch, the passes of an iteration, and the segments of a pipeline.

    Micro-batches are segments, or passes without stages.
    """
    batch, flushes = values.get("batch"), values.get("accumulate")
    if strategy.micro is None:
        return batch, flushes, _look_up_segments(strategy, values)
    flush = batch if scaling == "weak" else batch / (replicas * flushes)
    cuts = np.maximum(np.ceil(flush / strategy.micro), 1.0)
    if strategy.segmented:
        return batch, flushes, cuts
    of_pass = batch / cuts if scaling == "weak" else batch
    return of_pass, flushes * cuts, np.ones((1,) * values.rank)


def _look_up_segments(strategy: Strategy, values: Values) -> Floats:
    # The strategy's own segments override an axis, as its group does.
    if strategy.segments is None:
        return np.ones((1,) * values.rank) if strategy.placed else values.get("segments")
    if strategy.segments == "best":
        # Along the last dimension of choices. No replica has more samples than the largest batch,
        # whether that is per replica or global.
        numbers = np.array(list_segments(strategy, float(values.get("batch").max())), float)
        cells = [1] * (values.rank - values.leading)
        return numbers.reshape(*[1] * (values.leading - 1), -1, *cells)
    return np.full((1,) * values.rank, float(strategy.segments))


def find_group_size(
    strategy: Strategy, values: Values, system: System, p: Floats, oracle: OracleName
) -> Floats:
    """Return the PEs per group: one, all, or what the user or (for hybrids) the node says.

    It has the shape of p even where constant, so that all strategies share one compiled program.
    """
    size: Floats = np.ones((1,) * values.rank)
    if strategy.parts and not strategy.hybrid:
        return p
    if strategy.group == "best":
        size = _list_divisors(p, least=2)
    elif strategy.group is not None:
        size = float(strategy.group) * size
    elif strategy.hybrid:
        name = strategy.parts[0] if strategy.parts[0] in values else "group"
        size = values.get(name, system.pes_per_node)
        # With fewer PEs than a node has, all are one group; Table III refuses such cells.
        if name not in values and oracle == "machine":
            size = np.minimum(size, p)
    return np.broadcast_to(size, np.broadcast_shapes(size.shape, p.shape))


def _find_degrees(strategy: Strategy, values: Values, p: Floats) -> dict[str, Floats]:
    """Return the degree of each parallelism [cells]; an open one gets the remaining PEs."""
    stated, degrees = dict(strategy.degrees), {}
    for name in strategy.parts:
        size = stated.get(name)
        if size == "best":
            # Each choice has a leading dimension of its own, in the order of `choices`.
            sizes, at = _list_divisors(p, least=1), strategy.choices.index(name)
            degrees[name] = np.moveaxis(sizes, 0, at)
        elif size is not None:
            degrees[name] = np.full((1,) * values.rank, float(size))
        elif name in values:
            degrees[name] = values.get(name)
    for name in strategy.parts:
        if name not in degrees:
            # At least 1: degrees whose product exceeds p are refused elsewhere.
            degrees[name] = np.maximum(p // reduce(mul, degrees.values()), 1.0)
    return {name: degrees[name] for name in strategy.parts}


def _list_divisors(p: Floats, least: int) -> Floats:
    """List the divisors of p from `least` on along a leading dimension, padded with the last."""
    counts = p.ravel().astype(int)
    # A group of 1 is data parallelism. A prime has one group, all of its PEs.
    sizes = [list_divisors(count)[least - 1 :] or (1,) for count in counts.tolist()]
    most = max(map(len, sizes))
    table = np.array([row + row[-1:] * (most - len(row)) for row in sizes], float)
    return table.T.reshape(most, *p.shape[1:])


def find_contention(
    strategy: Strategy, values: Values, network: Network, run: Run, oracle: OracleName
) -> Floats:
    """Return phi of the gradient exchange: given, or the number of rings sharing a node's links.

    Undivided weights, on every PE or in a spatial group, are one ring, alone on its links. In the
    machine oracle the path itself counts what shares it (`kernels.machine.network`).
    """
    if "phi" in values:
        return values.get("phi")
    if oracle == "machine" or not (strategy.segmented or strategy.splits("weights")):
        return np.ones((1,) * values.rank)
    with use_numpy():
        return np.asarray(shared_links(network, run.p, run.replicas, run.group))


def list_segments(strategy: Strategy, batch: float) -> tuple[int, ...]:
    """List powers of two up to the samples of a batch and the largest known number of segments."""
    most = min(max(batch, 1), MOST_SEGMENTS, strategy.most_segments)
    largest = math.floor(math.log2(most))
    return tuple(2**n for n in range(largest + 1))


def build_training(convergence: Convergence | None, values: Values) -> EpochLaw | None:
    """Return the law of a model and data set; None if there is none."""
    if convergence is None:
        return None
    curve, cells = draw_curve(convergence), (1,) * values.rank
    return EpochLaw(
        curve=replace(
            curve, knots=curve.knots.reshape(-1, *cells), bends=curve.bends.reshape(-1, *cells)
        ),
        law=convergence.law,
        converges_to=np.asarray(convergence.converges_to or np.inf, float),
    )


def find_largest_batch(convergence: Convergence | None, values: Values) -> Floats | None:
    """Return the largest global batch that converges or that the user allows; None if unlimited."""
    converges_to = None if convergence is None else convergence.converges_to
    if "max_global_batch" not in values:
        return None if converges_to is None else np.full((1,) * values.rank, float(converges_to))
    return np.minimum(values.get("max_global_batch"), converges_to or np.inf)
