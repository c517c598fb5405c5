"""The network, and its fit to logarithms of targets and, on request, slopes (Sobolev training).

Times and memory are sums of terms (arithmetic, traffic, latency ...), each roughly a product of
powers of sizes, which is a straight line in logarithms. So the logarithm of a target is the
log-sum-exp of lines, with additional lines for each parallelism, and a small network bends them.
Beyond the training range the lines go on straight.

Czarnecki et al., "Sobolev training for neural networks", NeurIPS 2017: each step compares the
network's derivative along a random direction of the inputs with that of the labels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from jax import Array

from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import TARGETS
from paradl.sweep.samples.features import FOLLOWED
from paradl.sweep.surrogates.rows import (
    Encoding,
    Singles,
    read_kinds,
    read_room,
    read_slopes,
    read_targets,
    read_values,
)

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


def fit_lines(network: SurrogateNetwork, features: Singles, logs: Singles) -> SurrogateNetwork:
    """Fit the lines to logarithms of targets [row, target] by least squares, where defined."""
    known = np.isfinite(logs).all(axis=1)
    features, targets = features[known].astype(np.float64), logs[known].astype(np.float64)
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


# Loss weights: logarithms of epoch, compute, communication (times its share of the epoch) and
# memory; classification by feasibility; slopes.
WEIGHTS = (1.0, 0.3, 0.3, 0.3)
CLASSES = 0.1
SLOPES = 1.0
# [logarithm] Larger errors count linearly, not squared, so that outliers do not dominate.
FAR = 0.3
BATCH = 1024
# Least steps per epoch: small data sets get smaller batches.
LEAST_STEPS = 32
# Most rows for the least-squares lines.
LINE_ROWS = 20_000
RATE = 3e-3
DECAY = 1e-4
# Training ends after this many epochs without a better validation error.
PATIENCE = 8
# Rows predicted at once.
PREDICTED = 2**12
# Called with the epoch, their number and the validation error.
Report = Callable[[int, int, float], None]


# Rows as arrays by name.
Examples = dict[str, Singles]


def make_examples(frame: pd.DataFrame, encoding: Encoding, inputs: Sequence[str] = ()) -> Examples:
    """Encode rows, with their slopes in `inputs`.

    features: encoded [row, feature]. kinds [row, parallelism]. room [row]. targets [row, target].
    feasible [row]. With slopes also: slopes [row, 1 + target, input]; columns [row, column], the
    features that depend on some input; rates [row, column], their derivatives; masks [row, input,
    column], which of them depend on which input.
    """
    values = read_values(frame, encoding.names)
    arrays = {
        "features": encoding.encode(values),
        "kinds": read_kinds(frame),
        "room": read_room(frame),
        "targets": read_targets(frame),
        "feasible": frame["feasible"].to_numpy(np.float32),
    }
    if inputs:
        followed = np.array([FOLLOWED.get(name, name) for name in encoding.names])
        columns = np.flatnonzero(np.isin(followed, inputs)).astype(np.int32)
        masks = (followed[columns] == np.array(inputs)[:, None]).astype(np.float32)
        arrays["slopes"] = read_slopes(frame, inputs)
        arrays["rates"] = encoding.differentiate(values)[:, columns]
        # Equal in all rows, but broadcast so that batches slice all arrays alike.
        arrays["masks"] = np.broadcast_to(masks, (len(frame), *masks.shape))
        arrays["columns"] = np.broadcast_to(columns, (len(frame), len(columns)))
    return arrays


def fit_network(
    train: Examples,
    valid: Examples,
    *,
    width: int,
    epochs: int,
    seed: int = 0,
    report: Report = lambda *_: None,
) -> tuple[SurrogateNetwork, float]:
    """Train a network, on slopes, too, if the examples have them; return the one with the least
    validation error, and that error.
    """
    best, least, found = None, np.inf, 0
    with jax.numpy_dtype_promotion("standard"):  # as Optax expects it
        for epoch, network in enumerate(_train_epochs(train, width, epochs, seed), 1):
            error = measure_error(network, valid)
            report(epoch, epochs, error)
            # A copy: the next step reuses the network's memory.
            if error < least or best is None:
                best, least, found = jax.tree.map(jnp.array, network), error, epoch
            elif epoch >= found + PATIENCE:
                break
    assert best is not None  # there is at least one epoch
    return best, least


def _train_epochs(
    train: Examples, width: int, epochs: int, seed: int
) -> Iterator[SurrogateNetwork]:
    """Yield the network after each epoch."""
    count = len(train["features"])
    size = min(BATCH, max(count // LEAST_STEPS, 1))
    steps = count // size
    optimiser, step = _make_step(steps, epochs)
    rng = np.random.default_rng(seed)
    network = make_network(rng, train["features"].shape[1], train["kinds"].shape[1], width)
    network = fit_lines(network, train["features"][:LINE_ROWS], train["targets"][:LINE_ROWS])
    state = optimiser.init(network)
    for _ in range(epochs):
        order = rng.permutation(count)
        # More than there are inputs: the draws do not depend on their number.
        signs = rng.choice(np.array([-1.0, 1.0], np.float32), (steps, 64))
        for number in range(steps):
            chosen = order[number * size : (number + 1) * size]
            batch = {name: array[chosen] for name, array in train.items()}
            network, state = step(batch, network, state, signs[number])
        yield network


@lru_cache(maxsize=2)  # the members of an ensemble share a program
def _make_step(
    steps: int, epochs: int
) -> tuple[optax.GradientTransformation, Callable[..., tuple[SurrogateNetwork, Any]]]:
    """Make the optimiser for `steps` steps per epoch, and its compiled step."""
    total = steps * epochs
    warm_up = min(2 * steps, total // 2)  # two epochs, but at most half of the training
    schedule = optax.warmup_cosine_decay_schedule(RATE / 20, RATE, warm_up, total, RATE / 300)
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=DECAY)
    )

    # Not Equinox's own: dividing the network into arrays and others again at each step takes longer
    # than a step on few rows, and it has only arrays.
    @partial(jax.jit, donate_argnums=(1, 2))
    def step(
        batch: dict[str, Array], network: SurrogateNetwork, state: Any, signs: Array
    ) -> tuple[SurrogateNetwork, Any]:
        slope = jax.grad(_measure_loss)(network, batch, signs)
        change, state = optimiser.update(slope, state, network)
        return eqx.apply_updates(network, change), state

    return optimiser, step


def measure_error(network: SurrogateNetwork, examples: Examples) -> float:
    """Return the root mean square error of the logarithm of an epoch's time."""
    outputs = apply_member(network, examples)
    guess, known = (np.logaddexp(logs[:, 0], logs[:, 1]) for logs in (outputs, examples["targets"]))
    return float(np.sqrt(np.nanmean((guess - known) ** 2)))


def apply_member(member: SurrogateNetwork, arrays: dict[str, Singles]) -> Singles:
    """Return the outputs [row, output] of a network, evaluated block by block."""
    parts = []
    for first in range(0, len(arrays["features"]), PREDICTED):
        inputs = [arrays[name][first : first + PREDICTED] for name in ("features", "kinds", "room")]
        count = len(inputs[0])
        # Padded to a power of two, so that few compiled programs serve all numbers of rows.
        size = 1 << (count - 1).bit_length()
        filled = [np.resize(array, (size, *array.shape[1:])) for array in inputs]
        parts.append(np.asarray(_apply(member, *filled))[:count])
    return np.concatenate(parts) if parts else np.zeros((0, OUTPUTS), np.float32)


@jax.jit
def _apply(member: SurrogateNetwork, *inputs: Array) -> Array:
    outputs: Array = jax.vmap(member)(*inputs)
    return outputs


def _measure_loss(network: SurrogateNetwork, batch: dict[str, Array], signs: Array) -> Array:
    """Return the loss of a batch; if it has slopes also that of slopes along `signs` [input]."""
    features, kinds, room = (batch[name] for name in ("features", "kinds", "room"))
    outputs = jax.vmap(network)(features, kinds, room)
    logs, known = _with_epoch(outputs[:, :-1]), _with_epoch(batch["targets"])
    # An error of communication matters as much as its share of the epoch.
    share = jnp.exp(known[:, 2] - known[:, 0])[:, None]
    weights = jnp.array(WEIGHTS) * jnp.where(jnp.arange(len(WEIGHTS)) == 2, share, 1.0)
    loss = _sum_losses(logs, known, weights)
    loss += CLASSES * jnp.mean(
        optax.losses.sigmoid_binary_cross_entropy(outputs[:, -1], batch["feasible"])
    )
    if "slopes" in batch:
        # One random direction per step: a derivative along it costs one pass.
        direction = signs[: batch["slopes"].shape[2]]
        along = jnp.einsum("rif,i,rf->rf", batch["masks"], direction, batch["rates"])
        tangents = jnp.zeros_like(features).at[:, batch["columns"][0]].set(along)
        _, slopes = jax.jvp(
            lambda moved: _with_epoch(jax.vmap(network)(moved, kinds, room)[:, :-1]),
            (features,),
            (tangents,),
        )
        loss += SLOPES * _sum_losses(slopes, batch["slopes"] @ direction, weights)
    return loss


def _with_epoch(logs: Array) -> Array:
    """Prepend the logarithm of an epoch's time to those of the targets [row, 1 + target]."""
    return jnp.concatenate([jnp.logaddexp(logs[:, :1], logs[:, 1:2]), logs], axis=1)


def _sum_losses(guess: Array, known: Array, weights: Array) -> Array:
    """Return losses summed over columns and averaged over rows; 0 where a label is NaN."""
    # NaN is replaced before the loss: replaced after it, the derivative would still be NaN.
    errors = jnp.where(jnp.isfinite(known), guess - known, 0.0)
    losses = optax.losses.huber_loss(errors, delta=FAR)
    # The share of communication is NaN where a row has no times.
    return jnp.sum(jnp.where(jnp.isfinite(weights), weights, 0.0) * losses) / guess.shape[0]
