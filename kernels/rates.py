"""Rates: an iteration's times taken apart, so that most of the closed form has few dimensions.

Each time of Table III is affine in the batch b and in the start-ups of messages, alpha:
T = fixed + startup + b sample. None of the three varies with b, and only startup does with alpha:
over PEs x batches x bandwidths x latencies, all that is left for each cell is this sum.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from kernels.arrays import Cells
from kernels.case import Case
from kernels.network import Network
from kernels.run import Options, Times, add_terms
from kernels.strategy import iteration_terms
from kernels.terms import Terms


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rates:
    """An iteration's time: fixed [s]; startup, of its messages [s]; sample [s for each of b]."""

    fixed: Times
    startup: Times
    sample: Times


# Measured (`python -m benchmarks gains`, 2 cores, 2026-11): blocks of 2**22 cells at 0.88 to 1.16
# times the rate without, 1.01 in the mean of eight. Not for speed, then: stored cubes have its
# order of operations, and what is affine can later be set against what overlaps it.
def are_constant(options: Options) -> bool:
    """Whether times are affine at all: the faster of two algorithms is not."""
    return options.algorithm != "best"


def find_rates(case: Case) -> Rates:
    """Table III's rates, as the derivatives of its formulas.

    Each is found on a network without what plays no part in it, and so has no dimensions of that.
    """
    run, network = case.run, case.network
    none = jnp.zeros((1,) * jnp.ndim(run.p))
    one = jnp.ones_like(none)

    def of_batch(batch: Cells) -> Terms:
        return terms(batch, without_latency)

    def of_startups(factor: Cells) -> Terms:
        return terms(none, _slower_to_start(without_transfer, factor))

    def terms(batch: Cells, network: Network) -> Terms:
        of_batch = replace(run, spec_batch=batch, scaling="weak")
        return iteration_terms(replace(case, run=of_batch, network=network))

    levels = jnp.zeros((jnp.shape(network.span)[0], *none.shape))
    without_latency = replace(network, latency=levels, staging_latency=none)
    without_transfer = replace(
        network, bandwidth=levels + jnp.inf, staging_bandwidth=none + jnp.inf
    )
    fixed, change = jax.linearize(of_batch, none)
    # At their full length: it decides which of two paths is the slower.
    _, startup = jax.jvp(of_startups, (one,), (one,))
    return Rates(add_terms(fixed), add_terms(startup), add_terms(change(one)))


def iteration_times(rates: Rates, batch: Cells) -> Times:
    """T = fixed + startup + b sample [s]."""

    def time(fixed: Cells, startup: Cells, sample: Cells) -> Cells:
        return fixed + startup + batch * sample

    times: Times = jax.tree.map(time, rates.fixed, rates.startup, rates.sample)
    return times


def _slower_to_start(network: Network, factor: Cells) -> Network:
    """The network with latencies `factor` times as long."""
    return replace(
        network,
        latency=network.latency * factor,
        staging_latency=network.staging_latency * factor,
    )
