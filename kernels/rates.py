"""Rates: an iteration's times taken apart, so that most of the closed form has few dimensions.

Each time of Table III is affine in the batch b and in the start-ups of messages, alpha:
T = fixed + startup + b sample. None of the three varies with b, and only startup does with alpha:
over PEs x batches x bandwidths x latencies, all that is left for each cell is this sum.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from kernels.arrays import Cells
from kernels.group import GroupWork
from kernels.network import Network
from kernels.run import Options, Run, Terms, Times, summed
from kernels.strategy import iteration_terms


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rates:
    """Of an iteration: fixed [s]; startup, of its messages [s]; sample [s for each of b]."""

    fixed: Times
    startup: Times
    sample: Times


def are_constant(options: Options) -> bool:
    """Whether times are affine at all: the faster of two algorithms is not."""
    return options.algorithm != "best"


def rates_of(work: GroupWork, run: Run, network: Network, options: Options) -> Rates:
    """Table III's rates, as the derivatives of its formulas, in which the batch plays no part."""

    def terms(batch: Cells, startups: Cells) -> Terms:
        of_batch = replace(run, size=batch, scaling="weak")
        return iteration_terms(work, of_batch, _with_startups(network, startups), options)

    none = jnp.zeros((1,) * jnp.ndim(run.p))
    one = jnp.ones_like(none)
    # Start-ups at their full length: they decide which of two paths is the slower.
    _, change = jax.linearize(terms, none, one)
    fixed, startup, sample = terms(none, none), change(none, one), change(one, none)
    return Rates(summed(fixed), summed(startup), summed(sample))


def iteration(found: Rates, batch: Cells) -> Times:
    """T = fixed + startup + b sample [s]."""

    def time(fixed: Cells, startup: Cells, sample: Cells) -> Cells:
        return fixed + startup + batch * sample

    times: Times = jax.tree.map(time, found.fixed, found.startup, found.sample)
    return times


def _with_startups(network: Network, factor: Cells) -> Network:
    """The network with latencies `factor` times as long."""
    return replace(
        network,
        latency=network.latency * factor,
        staging_latency=network.staging_latency * factor,
    )
