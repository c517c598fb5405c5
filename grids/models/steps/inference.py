"""Shape inference: the layer table of an architecture and a sample shape.

Later steps can refer to a step's output by name: `encoder` or, inside other steps, `encoder.lstm1`.
Names are looked up from the innermost step outwards. `sample` is the network's input.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from paradl.grids.models.kinds import KINDS, LayerKind
from paradl.grids.models.layers import MOST_LAYERS, SAMPLE, Layer, LayerTable, pad_dimensions
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    LayerSettings,
    expect_sequence,
    make_sequence,
)
from paradl.grids.models.steps.step import (
    Concat,
    Experts,
    Flatten,
    Multiply,
    Read,
    Repeat,
    Residual,
    Side,
    Step,
    Steps,
)
from paradl.grids.models.tensors import LayerOutput, Passage, Role, Shape
from paradl.grids.reading.errors import InputError, ShapeError, add_place, shorten, suggest_name

# Nested repetitions can exceed any time limit, even of views, which make no layers.
MOST_STEPS = 20 * MOST_LAYERS


def infer_layers(
    model: str, steps: Steps, shape: tuple[int, ...], targets: int | None
) -> LayerTable:
    """Return the layers of a model's steps for samples of `shape` (C, [d,] h, w)."""
    sample = LayerOutput(Shape(shape[0], shape[1:]), SAMPLE)
    walk = _Walk(targets, outputs={"sample": sample})
    with add_place(model):
        walk.follow("", steps, sample)
        names = Counter(layer.name for layer in walk.layers)
        # Messages refer to layers by name.
        if twin := next((name for name, count in names.items() if count > 1), None):
            raise InputError(f"two layers are called {shorten(twin)}", advice="rename one")
        return LayerTable.from_layers(walk.layers)


@dataclass
class _Walk:
    """Collects layers in the order in which a sample passes them, and the output of each step."""

    targets: int | None
    outputs: dict[str, LayerOutput]
    layers: list[Layer] = field(default_factory=list)
    steps: int = 0

    def follow(self, scope: str, steps: Steps, x: LayerOutput) -> LayerOutput:
        """Return the output of a sequence of steps."""
        # One for the sequence itself: to repeat nothing takes time, too.
        self.steps += 1 + len(steps)
        if self.steps > MOST_STEPS:
            raise InputError(f"expected at most {MOST_STEPS:,} steps, repetitions counted")
        numbers = Counter[str]()
        for step in steps:
            numbers[step.word] += 1  # named steps count, so naming one renames no other
            name = scope + (step.settings.name or f"{step.word}{numbers[step.word]}")
            x = self.outputs[name] = self._take(name, step, x)
        return x

    def look_up(self, name: str, reference: str) -> LayerOutput:
        """Return the output of an earlier step that the step `name` refers to."""
        scope = name  # names of inner steps hide those of outer ones
        while scope:
            scope = scope.rpartition(".")[0]
            stream = self.outputs.get(f"{scope}.{reference}" if scope else reference)
            if stream is not None:
                return stream
        what, advice = (
            f"no step {shorten(reference)} before it",
            suggest_name(reference, self.outputs),
        )
        raise InputError(what, where=f"layer {name}", advice=advice)

    def _take(self, name: str, step: Step, x: LayerOutput) -> LayerOutput:
        settings = step.settings
        match settings:
            case LayerSettings():
                if step.kind.windowed and x.tensor.is_sequence:
                    what = f"expected an image, got {x.tensor}; use 'linear'"
                    raise InputError(what, where=f"layer {name}")
                passage = settings.infer(name, x.tensor, self.targets)
                return self.add(name, step.kind.name, passage, x)
            case BuildingSettings():
                return settings.build(name, x, self)
            case Read():
                return self.look_up(name, settings.step)
            case Repeat():
                for number in range(1, settings.times + 1):
                    x = self.follow(f"{name}.{number}.", settings.layers, x)
                return x
            case Residual():
                return self._take_residual(name, settings, x)
            case Multiply():
                return self._take_product(name, settings, x)
            case Concat():
                return self._take_concat(name, settings, x)
            case Experts():
                return self._take_experts(name, settings, x)
            case Side():
                # A head's output goes to its own loss, and no further.
                self.follow(f"{name}.", settings.layers, x)
                return x
        assert isinstance(settings, Flatten)
        return replace(x, tensor=x.tensor.flat)

    def _take_residual(self, name: str, residual: Residual, x: LayerOutput) -> LayerOutput:
        body = self.follow(f"{name}.", residual.body, x)
        # Without steps the shortcut is the input itself and adds no layer.
        shortcut = self.follow(f"{name}.shortcut.", residual.shortcut, x)
        y = body.tensor
        if y != shortcut.tensor:
            raise ShapeError(f"{name}.add: the body gives {y}, the shortcut {shortcut.tensor}")
        return self.add(f"{name}.add", "add", Passage(y, y, inputs=2), body, shortcut)

    def _take_product(self, name: str, product: Multiply, x: LayerOutput) -> LayerOutput:
        """Multiply body and gate; channels or extents of 1 are broadcast."""
        gate = self.follow(f"{name}.", product.gate, x)
        body = self.follow(f"{name}.body.", product.body, x)
        sizes = list(zip(body.tensor.sizes, gate.tensor.sizes, strict=True))
        if any(1 not in pair and len({*pair}) > 1 for pair in sizes):
            raise ShapeError(
                f"{name}.multiply: the body gives {body.tensor}, the gate {gate.tensor}"
            )
        channels, *extents = map(max, sizes)
        y = Shape(channels, tuple(extents))
        passage = Passage(y, y, items=body.tensor.items + gate.tensor.items)
        return self.add(f"{name}.multiply", "multiply", passage, body, gate)

    def _take_concat(self, name: str, concat: Concat, x: LayerOutput) -> LayerOutput:
        ends = [
            self.follow(f"{name}.branch{number}.", branch, x)
            for number, branch in enumerate(concat.branches, start=1)
        ]
        tensors = [end.tensor for end in ends]
        if len({tensor.extents for tensor in tensors}) > 1:
            extents = ", ".join(map(str, tensors))
            raise ShapeError(f"{name}.concat: the branches give extents that differ: {extents}")
        y = Shape(sum(tensor.channels for tensor in tensors), tensors[0].extents)
        # A copy: it reads what it writes.
        return self.add(f"{name}.concat", "concat", Passage(y, y), *ends)

    def _take_experts(self, name: str, experts: Experts, x: LayerOutput) -> LayerOutput:
        """Build the weighted sum of the active experts' results for each position.

        Expert layers see every position once per active expert; their weights are those of all
        experts.
        """
        positions, features = expect_sequence(name, x.tensor)
        scores = make_sequence(positions, experts.count)
        biases = experts.count if experts.corrects else 0
        # Megatron recomputes the router with its experts, as one module.
        routing = Passage(x.tensor, scores, biases=biases, role=Role(module="moe"))
        scored = self.add(f"{name}.router", "linear", routing, x)
        passage = Passage(scores, scores, role=Role(module="moe"))
        chosen = self.add(f"{name}.softmax", "softmax", passage, scored)
        scattered = make_sequence(positions * experts.active, features)
        passage = Passage(x.tensor, scattered, role=Role(module="moe"))
        copies = self.add(f"{name}.dispatch", "dispatch", passage, x, chosen)
        first = len(self.layers)
        y = self.follow(f"{name}.", experts.layers, copies)
        if y.tensor != scattered:
            raise ShapeError(f"{name}: experts give {y.tensor}, expected {scattered}")
        # So far they are the layers of one expert, which takes all copies.
        self.layers[first:] = [_multiply(layer, experts) for layer in self.layers[first:]]
        passage = Passage(scattered, x.tensor, besides=chosen.tensor.items)
        return self.add(f"{name}.combine", "combine", passage, y, chosen)

    def find_table(self, x: LayerOutput) -> tuple[str | None, int]:
        """Return the kind of the layer that made a tensor, and its weights; None, 0: sample."""
        if x.maker == SAMPLE:
            return None, 0
        maker = self.layers[x.maker]
        return maker.kind, int(maker.w)

    def add(self, name: str, kind: str, passage: Passage, *inputs: LayerOutput) -> LayerOutput:
        """Add a layer and return its output."""
        makers = tuple(stream.maker for stream in inputs)
        self.layers.append(_make_layer(name, KINDS[kind], passage, makers))
        return LayerOutput(passage.y, maker=len(self.layers) - 1)


def _multiply(layer: Layer, experts: Experts) -> Layer:
    """Turn a layer of one expert into a layer of all experts."""
    return replace(
        layer,
        w=layer.w * experts.count,
        bias=layer.bias * experts.count,
        active=layer.active * experts.active / experts.count,
        role=replace(layer.role, experts=experts.count),
    )


def _make_layer(name: str, kind: LayerKind, passage: Passage, makers: tuple[int, ...]) -> Layer:
    """Build the row of the table for a layer that reads the outputs of `makers`."""
    # The rows of an opaque layer are unknown, so all items count as channels.
    x, y = (tensor.flat if kind.opaque else tensor for tensor in (passage.x, passage.y))
    items, weights, biases, flops = passage.items, passage.weights, passage.biases, passage.flops
    if items is None:
        items = passage.inputs * passage.x.items + passage.besides
    if weights is None:
        # A filter only has weights for the channels of its group.
        per_filter = passage.x.channels // passage.groups
        weights = kind.count_weights(per_filter, passage.y.channels, passage.kernel)
    if biases is None:
        biases = kind.count_biases(passage.y.channels) if passage.bias else 0
    if flops is None:
        places = passage.x if kind.spreads else passage.y
        flops = kind.count_operations(weights, places.sizes, passage.kernel)
    channels, filters = passage.width or (x.channels, y.channels)
    return Layer(
        name=name,
        kind=kind.name,
        x=items,
        y=y.items,
        w=weights,
        bias=biases,
        flops=flops,
        channels=channels,
        filters=filters,
        extents_x=pad_dimensions(x.rows),
        extents_y=pad_dimensions(y.rows),
        kernel=pad_dimensions(passage.kernel if passage.span is None else passage.span),
        stride=pad_dimensions(passage.stride),
        groups=passage.groups,
        inputs=makers,
        steps=passage.steps,
        reads=passage.reads,
        looked_up=passage.looked_up,
        drawn=passage.drawn,
        role=passage.role,
    )
