"""Shape inference: an architecture and a sample shape give the layer table.

A tensor is a sample's C channels by its extents ([d,] h, w). A window of K items with stride S
and P items of padding in all turns an extent X into floor((X + P - K) / S) + 1.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from grids.models.kinds import KINDS, Kind
from grids.models.layers import Layer, LayerTable, pad_dimensions
from grids.models.liveness import SAMPLE
from grids.models.settings import LayerSettings
from grids.models.steps import Concat, Flatten, Multiply, Residual, Side, Step, Steps
from grids.models.tensors import Counts, Passage, Tensor
from grids.reading.errors import InputError, ShapeError, shorten


def infer_layers(model: str, steps: Steps, shape: tuple[int, ...], targets: int) -> LayerTable:
    """The layers of the steps of `model` for samples of `shape` (C, [d,] h, w)."""
    walk = _Walk(targets)
    try:
        walk.follow("", steps, _Stream(Tensor(shape[0], shape[1:]), SAMPLE))
        _refuse_twins(walk.layers)
        return LayerTable.from_layers(walk.layers)
    except InputError as error:
        raise InputError(str(error), where=model) from None


def _refuse_twins(layers: list[Layer]) -> None:
    """InputError for a name that two layers have: messages point at layers by name."""
    twins = [name for name, count in Counter(layer.name for layer in layers).items() if count > 1]
    if twins:
        raise InputError(
            f"two layers are called {shorten(twins[0])}", advice="give each its own name"
        )


def _name_steps(scope: str, steps: Steps) -> Iterator[tuple[str, Step]]:
    """Each step with its full name: its own, or its word and a number within the sequence."""
    numbers = Counter[str]()
    for step in steps:
        numbers[step.word] += 1  # named ones count, too: a name for one renames no other
        yield scope + (step.settings.name or f"{step.word}{numbers[step.word]}"), step


@dataclass(frozen=True)
class _Stream:
    """A tensor between layers, and the position of the layer that made it."""

    tensor: Tensor
    maker: int


@dataclass
class _Walk:
    """Collects layers in the order in which a sample meets them."""

    targets: int
    layers: list[Layer] = field(default_factory=list)

    def follow(self, scope: str, steps: Steps, x: _Stream) -> _Stream:
        """What comes out of the steps, one after the other."""
        for name, step in _name_steps(scope, steps):
            x = self._take(name, step, x)
        return x

    def _take(self, name: str, step: Step, x: _Stream) -> _Stream:
        """What comes out of one step."""
        settings = step.settings
        match settings:
            case LayerSettings():
                passage = settings.infer(name, x.tensor, self.targets)
                return self._add(name, step.kind, passage, x)
            case Residual():
                return self._take_residual(name, settings, x)
            case Multiply():
                return self._take_product(name, settings, x)
            case Concat():
                return self._take_concat(name, settings, x)
            case Side():
                # What a head gives goes to a loss of its own, and no further.
                self.follow(f"{name}.", settings.layers, x)
                return x
        assert isinstance(settings, Flatten)
        return replace(x, tensor=x.tensor.flat)

    def _take_residual(self, name: str, residual: Residual, x: _Stream) -> _Stream:
        """The sum of the body and the shortcut, which have to give the same sizes."""
        body = self.follow(f"{name}.", residual.body, x)
        # Of no steps, the input itself: nothing is added to the table.
        shortcut = self.follow(f"{name}.shortcut.", residual.shortcut, x)
        y = body.tensor
        if y != shortcut.tensor:
            raise ShapeError(f"{name}.add: the body gives {y}, the shortcut {shortcut.tensor}")
        return self._add(f"{name}.add", KINDS["add"], Passage(y, y, inputs=2), body, shortcut)

    def _take_product(self, name: str, product: Multiply, x: _Stream) -> _Stream:
        """The body times the gate, either of which may count for all channels or rows of both."""
        gate = self.follow(f"{name}.", product.gate, x)
        body = self.follow(f"{name}.body.", product.body, x)
        y = _broadcast(f"{name}.multiply", body.tensor, gate.tensor)
        counts = Counts(body.tensor.items + gate.tensor.items, 0, 0, flops=y.items)
        passage = Passage(y, y, counts=counts)
        return self._add(f"{name}.multiply", KINDS["multiply"], passage, body, gate)

    def _take_concat(self, name: str, concat: Concat, x: _Stream) -> _Stream:
        """The branches' outputs side by side, of which only the channels may differ."""
        ends = [
            self.follow(f"{name}.branch{number}.", branch, x)
            for number, branch in enumerate(concat.branches, start=1)
        ]
        tensors = [end.tensor for end in ends]
        if len({each.extents for each in tensors}) > 1:
            extents = ", ".join(str(each) for each in tensors)
            raise ShapeError(f"{name}.concat: the branches give extents that differ: {extents}")
        y = Tensor(sum(each.channels for each in tensors), tensors[0].extents)
        # A copy, which reads what it writes.
        return self._add(f"{name}.concat", KINDS["concat"], Passage(y, y), *ends)

    def _add(self, name: str, kind: Kind, passage: Passage, *inputs: _Stream) -> _Stream:
        """What comes out of a layer, which joins the collection."""
        makers = tuple(each.maker for each in inputs)
        self.layers.append(_make_layer(name, kind, passage, makers))
        return _Stream(passage.y, maker=len(self.layers) - 1)


def _broadcast(name: str, body: Tensor, gate: Tensor) -> Tensor:
    """The sizes of a product; ShapeError where they differ, and neither is 1."""
    sizes = list(zip(body.sizes, gate.sizes, strict=True))
    if any(1 not in pair and len(set(pair)) > 1 for pair in sizes):
        raise ShapeError(f"{name}: the body gives {body}, the gate {gate}")
    channels, *extents = map(max, sizes)
    return Tensor(channels, tuple(extents))


def _make_layer(name: str, kind: Kind, passage: Passage, makers: tuple[int, ...]) -> Layer:
    """One row of the table, of a layer and what passes through it, made by layers before it."""
    # Of what is opaque no rows are known: as of a fully connected layer, all items are channels.
    x, y = (each.flat if kind.opaque else each for each in (passage.x, passage.y))
    counts = passage.counts or _count(kind, passage)
    return Layer(
        name=name,
        kind=kind.name,
        x=counts.inputs,
        y=y.items,
        w=counts.weights,
        bias=counts.biases,
        flops=counts.flops,
        channels=x.channels,
        filters=y.channels,
        extents_x=pad_dimensions(x.extents),
        extents_y=pad_dimensions(y.extents),
        kernel=pad_dimensions(passage.kernel if passage.span is None else passage.span),
        stride=pad_dimensions(passage.stride),
        groups=passage.groups,
        inputs=makers,
    )


def _count(kind: Kind, passage: Passage) -> Counts:
    """What the kind counts of what passes through a layer."""
    x, y, kernel = passage.x, passage.y, passage.kernel
    # A filter has weights for the channels of its own group alone.
    weights = kind.count_weights(x.channels // passage.groups, y.channels, kernel)
    places = x if kind.spreads else y
    return Counts(
        inputs=passage.inputs * x.items,
        weights=weights,
        biases=kind.count_biases(y.channels) if passage.bias else 0,
        flops=kind.count_operations(weights, places.sizes, kernel),
    )
