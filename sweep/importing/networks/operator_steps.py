"""Operators where they stand, and the steps that any of them may become.

What no step expresses is counted: operations, parameters and items, as a `free` step.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from sweep.importing.networks.graph import BATCH, Sizes, TracedGraph, TracedTensor


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
        """The arguments from the `first` on, with defaults for those that are left out."""
        given = self.args[first:]
        return (*given, *defaults[len(given) :])

    @property
    def items(self) -> int:
        """Items of its output, a sample."""
        return math.prod(self.shape) // BATCH


class OperatorSteps:
    """Steps of a graph that operators become."""

    def __init__(self, graph: TracedGraph) -> None:
        self.graph = graph
        self.tables: dict[str, str] = {}  # steps of embeddings, by weight

    def weighted(
        self, word: str, settings: dict[str, Any], site: OperatorSite, x: TracedTensor, sizes: Sizes
    ) -> TracedTensor:
        """A step with a weight, and a bias if there is one; again, it is counted as traffic."""
        weights = [tensor for tensor in site.reads if tensor.is_weight]
        if any(name in self.graph.counted for t in weights for name, _ in t.weights):
            return self.product(site, 0)  # shared: its weights stand once
        matrix = max(weights, key=lambda tensor: len(tensor.shape))
        biases = [tensor for tensor in weights if tensor is not matrix]
        if matrix.parameters < math.prod(matrix.shape):
            return self.product(site, 0)  # repeated, or made of constants
        # A weight may be made of more parameters than it has items, such as a norm of its own; a
        # bias of fewer, where keys have none: those stand in a step behind.
        self.graph.take_weights(b for b in biases if b.parameters == math.prod(b.shape))
        if not biases or biases[0].parameters != math.prod(biases[0].shape):
            settings["bias"] = False
        self.graph.take_weights([matrix])
        rest = matrix.parameters - math.prod(matrix.shape)
        y = self.graph.add(word, settings, site.name, [x], site.shape, sizes, _channel(x, site))
        return self.add_rest(site, y, rest)

    def add_rest(self, site: OperatorSite, y: TracedTensor, rest: float = 0.0) -> TracedTensor:
        """The tensor behind a step that has the parameters of an operator that no step has yet."""
        rest += self.graph.take_weights(tensor for tensor in site.reads if tensor.is_weight)
        if not rest or y.is_weight:
            return y
        name = f"{site.name}.parameters"
        return self.graph.count(name, [y], y.shape, y.sizes, weights=rest, channel=y.channel)

    def word(self, site: OperatorSite, word: str) -> TracedTensor:
        """An operator of each item by itself."""
        x = site.live[0]
        return self.graph.add(word, {}, site.name, [x], site.shape, x.sizes, x.channel)

    def product(self, site: OperatorSite, flops: float) -> TracedTensor:
        """A product of two tensors, or of one with a weight, of which only counts are known."""
        weights = self.graph.take_weights(t for t in site.reads if t.is_weight)
        inner = site.live[0].shape[-1]
        return self.count(site, flops=flops or 2 * site.items * inner, weights=weights)

    def count(
        self, site: OperatorSite, *, flops: float = 0.0, weights: float = 0.0
    ) -> TracedTensor:
        """A step of counts alone, with sizes as near to the tensor's own as can be."""
        x = site.live[0]
        grid = math.prod(x.sizes[1:])
        if site.items % grid == 0:
            sizes = (site.items // grid, *x.sizes[1:])
        else:
            sizes = (site.items, *ones(x))
        if len(site.shape) == len(x.sizes) + 1 and len(site.shape) == 4:
            at = x.channel % 4
            sizes = (site.shape[at], *(n for d, n in enumerate(site.shape) if d not in (0, at)))
        return self.graph.count(
            site.name,
            site.live,
            site.shape,
            sizes,
            flops=flops,
            weights=weights,
            channel=x.channel,
        )

    def fit_image(self, x: TracedTensor, site: OperatorSite) -> TracedTensor:
        """The tensor as an image of the sizes that it has here: a copy, where its step's differ."""
        if x.sizes == x.shape[1:]:
            return x
        return self.graph.count(f"{site.name}.copy", [x], x.shape, x.shape[1:])

    def fit(self, x: TracedTensor, site: OperatorSite, width: int) -> TracedTensor:
        """The tensor as rows of `width` features: a sequence, where the source has one."""
        rows = x.items // width
        is_image = len(x.sizes) > 2
        if is_image and len(x.shape) == 3 and x.sizes[0] == width:
            return self.graph.add(
                "to_sequence", {}, f"{site.name}.rows", [x], x.shape, (width, rows), -1
            )
        if not is_image and x.sizes[0] == width and rows == 1 and x.sizes[1] > 1:
            return self.graph.add(
                "first_token", {}, f"{site.name}.row", [x], x.shape, (width, 1), -1
            )
        if x.sizes[0] == width and rows == math.prod(x.sizes[1:]):
            return x
        if is_image and rows == math.prod(x.sizes[1:]):
            sizes: Sizes = (width, *x.sizes[1:])
        else:
            sizes = (width, *((rows,) if not is_image else (rows, *ones(x)[1:])))
        return self.graph.count(f"{site.name}.copy", [x], x.shape, sizes, channel=-1)


def view(x: TracedTensor, shape: Sizes) -> TracedTensor:
    """The same items in another shape; where the channels are, by the sizes of the step."""
    places = [n for n, size in enumerate(shape) if n and size == x.sizes[0]]
    channel = x.channel
    if places and not (0 < channel < len(shape) and shape[channel] == x.sizes[0]):
        channel = places[-1]
    if len(shape) == len(x.sizes) + 1 and shape[1:] != x.sizes and shape[-1] == x.sizes[0]:
        channel = len(shape) - 1
    elif shape[1:] == x.sizes:
        channel = 1
    return replace(x, shape=shape, channel=channel)


def _channel(x: TracedTensor, site: OperatorSite) -> int:
    """The dimension of the channels of an output."""
    return 1 if site.kind.startswith("conv") else len(site.shape) - 1


def ones(x: TracedTensor) -> Sizes:
    """Extents of 1, as many as the step's."""
    return (1,) * (len(x.sizes) - 1)


def short(sizes: Any) -> Any:
    """A number where all sizes are the same."""
    sizes = [*sizes] if isinstance(sizes, list | tuple) else [sizes]
    return sizes[0] if len(set(sizes)) == 1 else sizes


def unusual(**settings: Any) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    usual = {"stride": 1, "dilation": 1, "padding": 0, "output_padding": 0}
    named = {key: short(value) for key, value in settings.items()}
    return {key: value for key, value in named.items() if value != usual[key]}
