"""Shape inference: the layer table of an architecture and a sample shape.

Later steps can refer to a step's output by name: `encoder` or, inside other steps, `encoder.lstm1`.
Names are looked up from the innermost step outwards. `sample` is the network's input.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from paradl.grids.models.kinds import KINDS, LayerKind
from paradl.grids.models.layers import MOST_LAYERS, SAMPLE, Layer, LayerTable, pad_dimensions
from paradl.grids.models.steps.settings import BuildingSettings, LayerSettings, make_sequence
from paradl.grids.models.steps.step import Repeat, Step, Steps
from paradl.grids.models.tensors import LayerOutput, Passage, Shape
from paradl.grids.models.tuning import Tuning
from paradl.grids.reading.errors import InputError, add_place, shorten, suggest_name

# Nested repetitions can exceed any time limit, even of views, which make no layers.
MOST_STEPS = 20 * MOST_LAYERS


def infer_layers(
    model: str,
    steps: Steps,
    shape: tuple[int, ...],
    targets: int | None,
    tuning: Tuning | None = None,
) -> LayerTable:
    """Return the layers of a model's steps for samples of `shape` (C, [d,] h, w).

    InputError: no matrix has the adapters of `tuning`.
    """
    sample = LayerOutput(Shape(shape[0], shape[1:]), SAMPLE)
    walk = _Walk(targets, outputs={"sample": sample}, tuning=tuning)
    with add_place(model):
        walk.follow("", steps, sample)
        names = Counter(layer.name for layer in walk.layers)
        # Messages refer to layers by name.
        if twin := next((name for name, count in names.items() if count > 1), None):
            raise InputError(f"two layers are called {shorten(twin)}", advice="rename one")
        if tuning and tuning.lora and not any(layer.role.rank for layer in walk.layers):
            what = f"targets: no matrix in blocks is of {shorten(tuning.targets)}"
            raise InputError(what, advice="write all, attention, mlp, or layers: query+value")
        return LayerTable.from_layers(walk.layers)


@dataclass
class _Walk:
    """Collects layers in the order in which a sample passes them, and the output of each step."""

    targets: int | None
    outputs: dict[str, LayerOutput]
    layers: list[Layer] = field(default_factory=list)
    steps: int = 0
    tuning: Tuning | None = None
    word: str = ""  # of the step that is being built

    def follow(
        self, scope: str, steps: Steps, x: LayerOutput, *, experts: int = 0, active: int = 0
    ) -> LayerOutput:
        """Return the output of a sequence of steps; experts, active: as of `Site`."""
        first = len(self.layers)
        # One for the sequence itself: to repeat nothing takes time, too.
        self.steps += 1 + len(steps)
        if self.steps > MOST_STEPS:
            raise InputError(f"expected at most {MOST_STEPS:,} steps, repetitions counted")
        numbers = Counter[str]()
        for step in steps:
            numbers[step.word] += 1  # named steps count, so naming one renames no other
            name = scope + (step.settings.name or f"{step.word}{numbers[step.word]}")
            x = self.outputs[name] = self._take(name, step, x)
        if experts:  # so far they are the layers of one, which takes all positions
            self.layers[first:] = [
                _multiply(layer, experts, active) for layer in self.layers[first:]
            ]
        return x

    def look_up(self, name: str, reference: str) -> LayerOutput:
        """Return the output of an earlier step that the step `name` refers to."""
        scope = name  # names of inner steps hide those of outer ones
        while scope:
            scope = scope.rpartition(".")[0]
            stream = self.outputs.get(f"{scope}.{reference}" if scope else reference)
            if stream is not None:
                return stream
        advice = suggest_name(reference, self.outputs)
        what = f"no step {shorten(reference)} before it"
        raise InputError(what, where=f"layer {name}", advice=advice)

    def _take(self, name: str, step: Step, x: LayerOutput) -> LayerOutput:
        settings, self.word = step.settings, step.word
        if isinstance(settings, BuildingSettings):
            first = len(self.layers)
            y = settings.build(name, x, self)
            if isinstance(settings, Repeat) and settings.shared:
                first += (len(self.layers) - first) // settings.times
                later = self.layers[first:]
                self.layers[first:] = [replace(layer, w=0.0, bias=0.0) for layer in later]
            return y
        assert isinstance(settings, LayerSettings)
        if step.kind.windowed and x.tensor.is_sequence:
            what = f"expected an image, got {x.tensor}; use 'linear'"
            raise InputError(what, where=f"layer {name}")
        passage = settings.infer(name, x.tensor, self.targets)
        return self.add(name, step.kind.name, passage, x)

    def find_table(self, x: LayerOutput) -> tuple[str | None, int]:
        """Return the kind of the layer that made a tensor, and its weights; None, 0: sample."""
        if x.maker == SAMPLE:
            return None, 0
        maker = self.layers[x.maker]
        return maker.kind, int(maker.w)

    def add(self, name: str, kind: str, passage: Passage, *inputs: LayerOutput) -> LayerOutput:
        """Add a layer and return its output."""
        makers = tuple(stream.maker for stream in inputs)
        role, tuning = passage.role, self.tuning if kind == "linear" else None
        adapts = tuning and tuning.targets_matrix(name, self.word, role)
        # What later layers read of its output, they read of the sum behind it.
        made = replace(passage, role=replace(role, kept=1.0)) if adapts else passage
        self.layers.append(_make_layer(name, KINDS[kind], made, makers))
        y = LayerOutput(passage.y, maker=len(self.layers) - 1)
        return self._adapt(name, passage, y, *inputs) if adapts else y

    def _adapt(self, name: str, passage: Passage, y: LayerOutput, x: LayerOutput) -> LayerOutput:
        """Add an adapter beside a matrix, and return the sum of their outputs.

        Tensor parallelism divides the side of A or B that the matrix has divided, and every PE has
        the other one (peft, LoraParallelLinear).
        """
        rank = self.tuning.lora or 0 if self.tuning else 0
        role = replace(passage.role, rank=rank, kept=1.0)
        whole, by_rows = replace(role, divided=""), role.divided == "rows"
        narrow = make_sequence(passage.x.extents[0], rank)
        down = Passage(passage.x, narrow, bias=False, role=role if by_rows else whole)
        up = Passage(narrow, passage.y, bias=False, role=whole if by_rows else role)
        between = self.add(f"{name}.lora_a", "linear", down, x)
        beside = self.add(f"{name}.lora_b", "linear", up, between)
        total = Passage(passage.y, passage.y, inputs=2, role=replace(passage.role, divided=""))
        return self.add(f"{name}.lora_sum", "lora_sum", total, y, beside)


def _multiply(layer: Layer, experts: int, active: int) -> Layer:
    """Turn a layer of one expert into a layer of all experts."""
    return replace(
        layer,
        w=layer.w * experts,
        bias=layer.bias * experts,
        active=layer.active * active / experts,
        role=replace(layer.role, experts=experts),
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
