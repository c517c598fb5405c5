"""Operators where they stand, and the steps that they become, whatever the framework.

Operators that no step expresses are counted: operations, parameters and items, as a `free` step.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from paradl.sweep.importing.networks.graph import BATCH, Sizes, TracedGraph, TracedTensor


@dataclass(frozen=True)
class OperatorSite:
    """An operator where it stands. live: those of its tensors that depend on the sample."""

    kind: str
    name: str
    shape: Sizes
    args: list[Any]
    reads: list[TracedTensor]
    live: list[TracedTensor]

    def fill(self, first: int, *defaults: Any) -> tuple[Any, ...]:
        """Return the arguments from the `first` on, with defaults for those that are left out."""
        given = self.args[first:]
        return (*given, *defaults[len(given) :])

    @property
    def items(self) -> int:
        """Items of the output, per sample."""
        return math.prod(self.shape) // BATCH

    @property
    def weights(self) -> list[TracedTensor]:
        """The tensors that are the same for all samples."""
        return [tensor for tensor in self.reads if tensor.is_weight]


class OperatorSteps:
    """Steps of a graph. tables: steps of embeddings, by the name of their weight."""

    def __init__(self, graph: TracedGraph) -> None:
        self.graph = graph
        self.tables: dict[str, str] = {}

    def step(
        self,
        site: OperatorSite,
        word: str,
        settings: Mapping[str, object],
        x: TracedTensor,
        sizes: Sizes,
        channel: int = 1,
    ) -> TracedTensor:
        """Add a step that reads x, and return its output."""
        name = f"{site.name}.logits" if word == "logits" else site.name
        return self.graph.add(word, settings, name, [x], site.shape, sizes, channel)

    def word(self, site: OperatorSite, word: str) -> TracedTensor:
        """Add a step that acts on each item by itself."""
        x = site.live[0]
        return self.graph.add(word, {}, site.name, [x], site.shape, x.sizes, x.channel)

    def weighted(
        self,
        word: str,
        settings: dict[str, object],
        site: OperatorSite,
        x: TracedTensor,
        sizes: Sizes,
    ) -> TracedTensor:
        """Add a step with a weight, and a bias if there is one; a shared weight is counted."""
        weights = site.weights
        matrix = max(weights, key=lambda tensor: len(tensor.shape))
        biases = [tensor for tensor in weights if tensor is not matrix]
        # Channels stand first behind convolutions, last behind matrices.
        channel = 1 if site.kind.startswith("conv") else len(site.shape) - 1
        is_shared = any(name in self.graph.counted for t in weights for name, _ in t.weights)
        # Its weights stand once; others are repeated, or made of constants.
        if is_shared or matrix.parameters < math.prod(matrix.shape):
            inner = math.prod(matrix.shape) // site.shape[channel]
            return self.product(site, 2 * site.items * inner)
        # A weight may be made of more parameters than it has items, such as a norm of its own; a
        # bias of fewer, where keys have none: those stand in a step behind.
        self.graph.take_weights(b for b in biases if b.parameters == math.prod(b.shape))
        if not biases or biases[0].parameters != math.prod(biases[0].shape):
            settings = {**settings, "bias": False}
        self.graph.take_weights([matrix])
        rest = matrix.parameters - math.prod(matrix.shape)
        y = self.step(site, word, settings, x, sizes, channel)
        return self.add_rest(site, y, rest)

    def add_rest(self, site: OperatorSite, y: TracedTensor, rest: float = 0.0) -> TracedTensor:
        """Return the tensor behind a step with the operator's parameters that no step has yet."""
        rest += self.graph.take_weights(site.weights)
        if not rest or y.is_weight:
            return y
        name = f"{site.name}.parameters"
        return self.graph.count(name, [y], y.shape, y.sizes, weights=rest, channel=y.channel)

    def multiply(
        self, site: OperatorSite, x: TracedTensor, matrix: TracedTensor, width: int, features: int
    ) -> TracedTensor:
        """Add a matrix: for all items, for each position, or for each place of an image."""
        if len(x.shape) == 2 and math.prod(x.sizes) == width:
            sizes: Sizes = (features, *ones(x))
            return self.weighted("fc", {"outputs": features}, site, x, sizes)
        x = self.fit(x, site, width)
        sizes = (features, *x.sizes[1:])
        table = self.tables.get(matrix.weights[0][0]) if matrix.weights else None
        if table and len(x.sizes) == 2 and len(site.reads) == 2:
            return self.step(
                site, "logits", {"vocabulary": features, "shares": table}, x, sizes, -1
            )
        if len(x.sizes) == 2:
            return self.weighted("linear", {"features": features}, site, x, sizes)
        return self.weighted("conv", {"filters": features, "kernel": 1}, site, x, sizes)

    def embed(self, site: OperatorSite, table: TracedTensor) -> TracedTensor:
        """Add rows of a table."""
        self.graph.take_weights([table])
        features = math.prod(table.shape[1:])
        sizes = (features, site.items // features)
        settings = {"vocabulary": table.shape[0], "features": features}
        y = self.graph.add("embedding", settings, site.name, site.live, site.shape, sizes, -1)
        self.tables |= {name: str(y.step) for name, _ in table.weights}
        return y

    def pool_all(self, site: OperatorSite, x: TracedTensor) -> TracedTensor:
        """Add the mean of all places of an image."""
        return self.step(site, "adaptive_avgpool", {"extent": 1}, x, (x.sizes[0], *ones(x)))

    def product(self, site: OperatorSite, flops: float) -> TracedTensor:
        """Count a product of two tensors, or of one with a weight, which no step expresses."""
        weights = self.graph.take_weights(site.weights)
        inner = site.live[0].shape[-1]
        return self.count(site, flops=flops or 2 * site.items * inner, weights=weights)

    def count(
        self, site: OperatorSite, *, flops: float = 0.0, weights: float = 0.0
    ) -> TracedTensor:
        """Add a step of counts alone, with sizes as near to the tensor's own as can be."""
        x = site.live[0]
        # Where items fill the grid of the tensor before, what follows may still be a step.
        grid = math.prod(x.sizes[1:])
        if site.items % grid == 0:
            sizes = (site.items // grid, *x.sizes[1:])
        else:
            sizes = (site.items, *ones(x))
        # An image stays one: its own extents, with channels where they are.
        if len(site.shape) == len(x.sizes) + 1 and len(site.shape) == 4:
            at = x.channel % 4
            sizes = (site.shape[at], *(n for d, n in enumerate(site.shape) if d not in (0, at)))
        return self.graph.count(
            site.name, site.live, site.shape, sizes, flops=flops, weights=weights, channel=x.channel
        )

    def fit_image(self, x: TracedTensor, site: OperatorSite) -> TracedTensor:
        """Return the tensor as an image of the sizes that it has here: a copy if they differ."""
        if x.sizes == x.shape[1:]:
            return x
        return self.graph.count(f"{site.name}.copy", [x], x.shape, x.shape[1:])

    def fit(self, x: TracedTensor, site: OperatorSite, width: int) -> TracedTensor:
        """Return the tensor as rows of `width` features: a sequence, where the source has one."""
        # [batch, rows, width] in whatever order: only sizes tell a sequence from an image.
        rows = x.items // width
        is_image = len(x.sizes) > 2
        if is_image and len(x.shape) == 3 and x.sizes[0] == width:
            name, sizes = f"{site.name}.rows", (width, rows)
            return self.graph.add("to_sequence", {}, name, [x], x.shape, sizes, -1)
        if not is_image and x.sizes[0] == width and rows == 1 and x.sizes[1] > 1:
            name, sizes = f"{site.name}.row", (width, 1)
            return self.graph.add("first_token", {}, name, [x], x.shape, sizes, -1)
        fits = rows == math.prod(x.sizes[1:])
        if x.sizes[0] == width and fits:
            return x
        extents = x.sizes[1:] if is_image and fits else (rows, *ones(x)[1:])
        copied = (width, *extents)
        return self.graph.count(f"{site.name}.copy", [x], x.shape, copied, channel=-1)


def view(x: TracedTensor, shape: Sizes) -> TracedTensor:
    """Return the same items in another shape; the sizes of the step show where channels are."""
    places = [n for n, size in enumerate(shape) if n and size == x.sizes[0]]
    channel = x.channel
    if places and not (0 < channel < len(shape) and shape[channel] == x.sizes[0]):
        channel = places[-1]
    if len(shape) == len(x.sizes) + 1 and shape[1:] != x.sizes and shape[-1] == x.sizes[0]:
        channel = len(shape) - 1
    elif shape[1:] == x.sizes:
        channel = 1
    return replace(x, shape=shape, channel=channel)


def ones(x: TracedTensor) -> Sizes:
    """Return extents of 1, as many as the step's."""
    return (1,) * (len(x.sizes) - 1)


def short(sizes: Any) -> Any:
    """Return a number where all sizes are the same, else the list of them."""
    sizes = [*sizes] if isinstance(sizes, list | tuple) else [sizes]
    return sizes[0] if len(set(sizes)) == 1 else sizes


def unusual(**settings: Any) -> dict[str, object]:
    """Return the settings that differ from their defaults."""
    usual = {"padding": 0, "output_padding": 0}  # of others 1
    named = {key: short(value) for key, value in settings.items()}
    return {key: value for key, value in named.items() if value != usual.get(key, 1)}
