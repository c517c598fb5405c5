"""The network: sums of terms, each a product of powers of the features and of what layers bend.

Times and memory of training are sums of terms (arithmetic, traffic, start-ups ...), each about a
product of powers of sizes: in logarithms a straight line. So a target is the logarithm of a sum of
exponentials of lines, with lines of its own for each way of dividing a network, and a small network
that bends them. It is straight where nothing was seen, and so goes on beyond what it knows.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from grids.models.layers import Floats

# Outputs of a network, in this order: logarithms of these three, then log odds of feasibility.
TARGETS = ("comp_time", "comm_time", "memory")
TERMS = 6
# Weight of the squares of lines against those of errors, where a network begins.
RIDGE = 1e-2
# A slope of 0 of log odds in log memory would teach a new network nothing.
SHARPNESS = 5.0


class Network(eqx.Module):
    """lines [kind, term, feature], starts [kind, term]: those of all rows first, then what each way
    of dividing adds. layers: weights and biases of what bends them.
    """

    lines: Array
    starts: Array
    layers: tuple[tuple[Array, Array], ...]
    sharpness: Array

    def __call__(self, features: Array, kinds: Array, room: Array) -> Array:
        """Logarithms of the targets and the log odds of being feasible [4] of one row.

        features: encoded [feature]. kinds: 1 for each way in which layers are divided. room: the
        logarithm of the memory of a PE.
        """
        ways = jnp.concatenate([jnp.ones(1), kinds])
        line = jnp.einsum("ktf,f,k->t", self.lines, features, ways) + ways @ self.starts
        hidden = features
        for weights, biases in self.layers[:-1]:
            hidden = jax.nn.silu(weights @ hidden + biases)
        weights, biases = self.layers[-1]
        terms = line + weights @ hidden + biases
        logs = jax.nn.logsumexp(terms[:-1].reshape(len(TARGETS), TERMS), axis=1)
        return jnp.append(logs, terms[-1] + self.sharpness * (room - logs[2]))

    def check(self, features: int, kinds: int) -> None:
        """ValueError: arrays that do not belong together."""
        outputs = len(TARGETS) * TERMS + 1
        sizes = [features, *(len(biases) for _, biases in self.layers)]
        shapes = [(after, before) for before, after in pairwise(sizes)]
        right = (
            self.lines.shape == (1 + kinds, outputs, features)
            and self.starts.shape == (1 + kinds, outputs)
            and self.sharpness.shape == ()
            and sizes[-1] == outputs
            and all(
                weights.shape == shape and biases.ndim == 1
                for (weights, biases), shape in zip(self.layers, shapes, strict=True)
            )
        )
        if not right:
            raise ValueError("arrays of other shapes")


def make_network(
    rng: np.random.Generator, features: int, kinds: int, width: int, depth: int
) -> Network:
    """A network of random weights, whose lines are flat."""
    outputs = len(TARGETS) * TERMS + 1
    sizes = [features, *[width] * depth, outputs]
    weights = [
        rng.standard_normal((after, before)) / np.sqrt(before) for before, after in pairwise(sizes)
    ]
    weights[-1] *= 0.1
    # Terms begin apart from each other: equal ones would learn the same.
    starts = np.zeros((1 + kinds, outputs))
    starts[0] = rng.standard_normal(outputs)
    return Network(
        lines=_move(np.zeros((1 + kinds, outputs, features))),
        starts=_move(starts),
        layers=tuple((_move(matrix), _move(np.zeros(len(matrix)))) for matrix in weights),
        sharpness=_move(np.array(SHARPNESS)),
    )


def begin_network(network: Network, features: Floats, targets: Floats) -> Network:
    """The network whose terms begin at the straight lines nearest to the targets.

    features: encoded [row, feature]. targets: logarithms [row, target].
    """
    mean = targets.mean(axis=0)
    squares = features.T @ features + RIDGE * len(features) * np.eye(features.shape[1])
    lines = np.linalg.solve(squares, features.T @ (targets - mean)).T
    of_all, starts = np.array(network.lines), np.array(network.starts)
    of_all[0, :-1] += np.repeat(lines, TERMS, axis=0)
    starts[0, :-1] += np.repeat(mean, TERMS) - np.log(TERMS)
    return replace(network, lines=_move(of_all), starts=_move(starts))


def _move(values: Floats) -> Array:
    """The same numbers in single precision, where programs run."""
    moved: Array = jax.device_put(values.astype(np.float32))
    return moved


def flatten_network(network: Network) -> dict[str, Array]:
    """Its arrays, by name."""
    arrays = {"lines": network.lines, "starts": network.starts, "sharpness": network.sharpness}
    for number, (weights, biases) in enumerate(network.layers):
        arrays |= {f"weights{number}": weights, f"biases{number}": biases}
    return arrays


def build_network(arrays: dict[str, Any]) -> Network:
    """The network of such arrays."""
    depth = sum(name.startswith("weights") for name in arrays)
    return Network(
        lines=jnp.asarray(arrays["lines"]),
        starts=jnp.asarray(arrays["starts"]),
        layers=tuple(
            (jnp.asarray(arrays[f"weights{n}"]), jnp.asarray(arrays[f"biases{n}"]))
            for n in range(depth)
        ),
        sharpness=jnp.asarray(arrays["sharpness"]),
    )
