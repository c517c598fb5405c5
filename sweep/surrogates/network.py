"""The network: sums of terms that are products of powers of the features, plus a correction.

Times and memory are sums of terms (arithmetic, traffic, latency ...), each roughly a product of
powers of sizes, which is a straight line in logarithms. So the logarithm of a target is the
log-sum-exp of lines, with additional lines for each parallelism, and a small network bends them.
Beyond the training range the lines go on straight.
"""

from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import TARGETS

# Outputs of a learner: logarithms of the targets (compute, communication, memory), then the log
# odds of being feasible.
OUTPUTS = len(TARGETS) + 1
TERMS = 6
DEPTH = 2
# Ridge penalty of the initial least-squares lines.
RIDGE = 1e-2
# Initial slope of the log odds in log memory: starting from 0 the network never learns it.
SHARPNESS = 5.0


class SurrogateNetwork(eqx.Module):
    """Network of lines and hidden layers.

    lines [kind, term, feature], starts [kind, term]: first those of all rows, then what each
    parallelism adds. layers: weights and biases of the hidden layers and of the last one.
    """

    lines: Array
    starts: Array
    layers: tuple[tuple[Array, Array], ...]
    sharpness: Array

    def __call__(self, features: Array, kinds: Array, room: Array) -> Array:
        """Return logarithms of the targets and the log odds of being feasible [output] of one row.

        features: encoded [feature]. kinds: 1 for each parallelism in use, else 0. room: logarithm
        of a PE's memory.
        """
        weights = jnp.concatenate([jnp.ones(1), kinds])
        line = jnp.einsum("ktf,f,k->t", self.lines, features, weights) + weights @ self.starts
        hidden = features
        for weights, biases in self.layers[:-1]:
            hidden = jax.nn.silu(weights @ hidden + biases)
        weights, biases = self.layers[-1]
        terms = line + weights @ hidden + biases
        logs = jax.nn.logsumexp(terms[:-1].reshape(len(TARGETS), TERMS), axis=1)
        return jnp.append(logs, terms[-1] + self.sharpness * (room - logs[2]))


def make_network(
    rng: np.random.Generator, features: int, kinds: int, width: int
) -> SurrogateNetwork:
    """Make a network with random weights and flat lines."""
    outputs = len(TARGETS) * TERMS + 1
    sizes = [features, *[width] * DEPTH, outputs]
    weights = [
        rng.standard_normal((after, before)) / np.sqrt(before) for before, after in pairwise(sizes)
    ]
    # The correction starts small: lines alone are a good guess, and are fitted first.
    weights[-1] *= 0.1
    # Random starts, since equal terms would learn the same.
    starts = np.zeros((1 + kinds, outputs))
    starts[0] = rng.standard_normal(outputs)
    return SurrogateNetwork(
        lines=_to_device(np.zeros((1 + kinds, outputs, features))),
        starts=_to_device(starts),
        layers=tuple((_to_device(matrix), _to_device(np.zeros(len(matrix)))) for matrix in weights),
        sharpness=_to_device(np.array(SHARPNESS)),
    )


def fit_lines(network: SurrogateNetwork, features: Floats, targets: Floats) -> SurrogateNetwork:
    """Set the network's lines to the least-squares fit of the targets.

    features: encoded [row, feature]. targets: logarithms [row, target].
    """
    mean = targets.mean(axis=0)
    squares = features.T @ features + RIDGE * len(features) * np.eye(features.shape[1])
    slopes = np.linalg.solve(squares, features.T @ (targets - mean)).T
    lines, starts = np.array(network.lines), np.array(network.starts)
    lines[0, :-1] += np.repeat(slopes, TERMS, axis=0)
    starts[0, :-1] += np.repeat(mean, TERMS) - np.log(TERMS)
    return replace(network, lines=_to_device(lines), starts=_to_device(starts))


def _to_device(values: Floats) -> Array:
    array: Array = jax.device_put(values.astype(np.float32))
    return array
