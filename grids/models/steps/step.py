"""The steps of an architecture, in YAML and in Python.

A step is a word, or a mapping of one word to its settings; a bare value sets the first setting
(docs/your-model.md has all of them):

    layers:
      - conv: {filters: 64, kernel: 7, stride: 2, padding: 3, bias: false}
      - relu
      - maxpool: 2
      - residual:                   # ends in an addition; without shortcut, of the input itself
          body: [{conv: {filters: 64, kernel: 3, padding: same}}, relu]
          shortcut: [{conv: {filters: 64, kernel: 1}}]
      - repeat: {times: 3, layers: [relu]}  # with new weights each time
      - read: sample                # continues from the sample or an earlier step's output
      - free: {flops: 2e6, weights: 4096, outputs: [32, 112, 112]}
      - fc: {outputs: 4096, name: fc6}

Kernel, stride and padding are a number for all dimensions, or a list in the order [d,] h, w.
Padding is per side; "same" pads by kernel - 1 in total, so the extent is divided by the stride and
rounded up. Any step takes a `name`; by default it is its word and a number. A layer without a step
of its own is `free`: no group can split it.
"""

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from paradl.grids.entries.entry import Count, Name, Record, refuse_bool
from paradl.grids.models.kinds import KIND_OF_STEP, LayerKind
from paradl.grids.models.steps.attention import Attention, LatentAttention, MatMul
from paradl.grids.models.steps.sequences import (
    ClassToken,
    FirstToken,
    Gated,
    LayerNorm,
    LinearSettings,
    Lstm,
    Positions,
    ScaleSettings,
    ToSequence,
)
from paradl.grids.models.steps.settings import (
    BY_FORM,
    LIST,
    BuildingSettings,
    LayerSettings,
    Number,
    Site,
    StepSettings,
    Targets,
    count_outputs,
    expect_sequence,
    make_sequence,
    project,
)
from paradl.grids.models.steps.state_spaces import LinearAttention, ShortConv, StateSpace
from paradl.grids.models.steps.vocabularies import EmbeddingSettings, Logits, SampledSoftmaxSettings
from paradl.grids.models.steps.windows import AdaptivePool, Conv, Pool, TransposedConv
from paradl.grids.models.tensors import LayerOutput, Passage, Role, Shape
from paradl.grids.reading.errors import InputError, ShapeError, shorten

# The bound of a layer table; more is a typo.
Amount = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False), BeforeValidator(refuse_bool)]
OutputSizes = Annotated[tuple[Count, ...], Field(min_length=1, max_length=4), Tag(LIST)]


class Free(LayerSettings):
    """Forward operations per sample, weights, and items in and out per sample.

    inputs: by default all incoming items. outputs: their number, or C x extents; by default the
    input's sizes. A sequence may become an image, as some attention does between its layers.
    """

    flops: Amount
    weights: Amount = 0.0
    biases: Amount = 0.0
    inputs: Amount | None = None
    outputs: Annotated[Number | Targets | OutputSizes, BY_FORM] | None = None

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        y = self._find_output(layer, x, targets)
        items = float(x.items) if self.inputs is None else self.inputs
        return Passage(
            *(x, y), items=items, weights=self.weights, biases=self.biases, flops=self.flops
        )

    def _find_output(self, layer: str, x: Shape, targets: int | None) -> Shape:
        """Return the output, of the input's rank unless a sequence becomes an image."""
        if self.outputs is None:
            return x
        if self.outputs == "targets" or isinstance(self.outputs, int):
            channels = count_outputs(layer, self.outputs, targets)
            return Shape(channels, x.flat.extents)
        is_folded = len(x.extents) == 1 and len(self.outputs) > len(x.sizes)
        if len(self.outputs) != len(x.sizes) and not is_folded:
            what = f"outputs: expected a number, or C and {len(x.extents)} extents"
            raise InputError(f"{what}, got {len(self.outputs)} numbers", where=f"layer {layer}")
        return Shape(self.outputs[0], self.outputs[1:])


class Fc(LayerSettings):
    """A fully connected layer: a matrix for all incoming items."""

    bare: ClassVar[str] = "outputs"

    outputs: Count | Literal["targets"]
    bias: bool = True

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        outputs = count_outputs(layer, self.outputs, targets)
        return Passage(x.flat, Shape(outputs, x.flat.extents), bias=self.bias)


class Plain(LayerSettings):
    """A layer without settings, whose output has the sizes of its input."""

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        return Passage(x, x)


class Flatten(BuildingSettings):
    """All items as channels. A view: no layer, nothing to compute or to keep."""

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        return replace(x, tensor=x.tensor.flat)


class Residual(BuildingSettings):
    """A body and a shortcut from the same input, added; both have the same sizes."""

    bare: ClassVar[str] = "body"

    body: "Steps"
    shortcut: "Steps" = ()

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        body = site.follow(f"{name}.", self.body, x)
        # Without steps the shortcut is the input itself and adds no layer.
        shortcut = site.follow(f"{name}.shortcut.", self.shortcut, x)
        y = body.tensor
        if y != shortcut.tensor:
            raise ShapeError(f"{name}.add: the body gives {y}, the shortcut {shortcut.tensor}")
        return site.add(f"{name}.add", "add", Passage(y, y, inputs=2), body, shortcut)


class Multiply(BuildingSettings):
    """A gate and a body from the same input, multiplied; without body, the input itself.

    One channel, or an extent of 1, is broadcast.
    """

    bare: ClassVar[str] = "gate"

    gate: "Steps"
    body: "Steps" = ()

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        gate = site.follow(f"{name}.", self.gate, x)
        body = site.follow(f"{name}.body.", self.body, x)
        sizes = list(zip(body.tensor.sizes, gate.tensor.sizes, strict=True))
        if any(1 not in pair and len({*pair}) > 1 for pair in sizes):
            raise ShapeError(
                f"{name}.multiply: the body gives {body.tensor}, the gate {gate.tensor}"
            )
        channels, *extents = map(max, sizes)
        y = Shape(channels, tuple(extents))
        passage = Passage(y, y, items=body.tensor.items + gate.tensor.items)
        return site.add(f"{name}.multiply", "multiply", passage, body, gate)


class Concat(BuildingSettings):
    """Branches from the same input, concatenated along the channels, in which alone they differ."""

    bare: ClassVar[str] = "branches"

    branches: Annotated[tuple["Steps", ...], Field(min_length=1)]

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        ends = [
            site.follow(f"{name}.branch{number}.", branch, x)
            for number, branch in enumerate(self.branches, start=1)
        ]
        tensors = [end.tensor for end in ends]
        if len({tensor.extents for tensor in tensors}) > 1:
            extents = ", ".join(map(str, tensors))
            raise ShapeError(f"{name}.concat: the branches give extents that differ: {extents}")
        y = Shape(sum(tensor.channels for tensor in tensors), tensors[0].extents)
        # A copy: it reads what it writes.
        return site.add(f"{name}.concat", "concat", Passage(y, y), *ends)


class Read(BuildingSettings):
    """The output of an earlier step, or the sample, as the input of later steps. A view."""

    bare: ClassVar[str] = "step"

    step: Name

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        return site.look_up(name, self.step)


class Repeat(BuildingSettings):
    """Layers repeated in sequence, with new weights each time; shared: with those of the first."""

    layers: "Steps"
    times: Annotated[Count, Field(le=1000)]
    shared: bool = False

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        for number in range(1, self.times + 1):
            x = site.follow(f"{name}.{number}.", self.layers, x)
        return x


class Experts(BuildingSettings):
    """Equal networks, of which each position goes to the few that a router scores highest.

    Shazeer et al. 2017; Lepikhin et al. 2020. Positions are assumed to be spread evenly. layers:
    those of one expert. corrects: whether each expert has a learned bias of its score (DeepSeek-V3,
    arXiv 2412.19437, section 2.1.2). latent: features that experts read and write.
    """

    bare: ClassVar[str] = "layers"

    count: Count
    active: Count
    layers: "Steps"
    corrects: bool = False
    latent: Count | None = None

    @model_validator(mode="after")
    def _check_active(self) -> Self:
        if self.active > self.count:
            raise ValueError(f"active: expected at most the {self.count} experts")
        return self

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        positions, features = expect_sequence(name, x.tensor)
        scores = make_sequence(positions, self.count)
        # Megatron recomputes the router with its experts, as one module.
        role = Role(module="moe")
        biases = self.count if self.corrects else 0
        routing = Passage(x.tensor, scores, biases=biases, role=role)
        scored = site.add(f"{name}.router", "linear", routing, x)
        chosen = site.add(f"{name}.softmax", "softmax", Passage(scores, scores, role=role), scored)
        x = project(site, f"{name}.latent", x, self.latent, bias=False) if self.latent else x
        # Expert layers see every position once per active expert.
        scattered = make_sequence(positions * self.active, x.tensor.channels)
        passage = Passage(x.tensor, scattered, role=role)
        copies = site.add(f"{name}.dispatch", "dispatch", passage, x, chosen)
        y = site.follow(f"{name}.", self.layers, copies, experts=self.count, active=self.active)
        if y.tensor != scattered:
            raise ShapeError(f"{name}: experts give {y.tensor}, expected {scattered}")
        passage = Passage(scattered, x.tensor, besides=chosen.tensor.items)
        y = site.add(f"{name}.combine", "combine", passage, y, chosen)
        return project(site, f"{name}.widened", y, features, bias=False) if self.latent else y


class Side(BuildingSettings):
    """A head beside the trunk, such as an auxiliary classifier."""

    bare: ClassVar[str] = "layers"

    layers: "Steps"

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        # A head's output goes to its own loss, and no further.
        site.follow(f"{name}.", self.layers, x)
        return x


AnyStep = TypeVar("AnyStep", bound=Record)


def _add_plain_words(form: type[AnyStep]) -> type[AnyStep]:
    """Add each word of an element-wise kind as a layer without settings, unless it has some."""
    # A decorator, so that type checkers see the class as written below.
    known = form.model_fields
    words = [word for word, kind in KIND_OF_STEP.items() if kind.elementwise and word not in known]
    plain: dict[str, Any] = dict.fromkeys(words, (Plain | None, None))
    return create_model(
        form.__name__, __base__=form, __module__=form.__module__, __doc__=form.__doc__, **plain
    )


def _has_required(word: FieldInfo) -> bool:
    (settings, _) = get_args(word.annotation)
    return any(field.is_required() for field in settings.model_fields.values())


@_add_plain_words
class Step(Record):
    """One word and its settings; exactly one field is set."""

    conv: Conv | None = None
    transposed_conv: TransposedConv | None = None
    fc: Fc | None = None
    maxpool: Pool | None = None
    avgpool: Pool | None = None
    adaptive_avgpool: AdaptivePool | None = None
    free: Free | None = None
    flatten: Flatten | None = None
    residual: Residual | None = None
    multiply: Multiply | None = None
    concat: Concat | None = None
    side: Side | None = None
    read: Read | None = None
    repeat: Repeat | None = None
    linear: LinearSettings | None = None
    matmul: MatMul | None = None
    attention: Attention | None = None
    latent_attention: LatentAttention | None = None
    state_space: StateSpace | None = None
    linear_attention: LinearAttention | None = None
    short_conv: ShortConv | None = None
    gated: Gated | None = None
    experts: Experts | None = None
    logits: Logits | None = None
    embedding: EmbeddingSettings | None = None
    sampled_softmax: SampledSoftmaxSettings | None = None
    lstm: Lstm | None = None
    to_sequence: ToSequence | None = None
    class_token: ClassToken | None = None
    positions: Positions | None = None
    layernorm: LayerNorm | None = None
    scale: ScaleSettings | None = None
    first_token: FirstToken | None = None

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema: a word whose settings all have defaults, or a mapping of one word."""
        reference = handler(schema)
        step = handler.resolve_ref_schema(reference)
        # Without None, which stands for an absent word.
        words = {word: dict(form["anyOf"][0]) for word, form in step["properties"].items()}
        mapping = {**step, "properties": words, "minProperties": 1, "maxProperties": 1}
        alone = [word for word in step["properties"] if not _has_required(cls.model_fields[word])]
        step.clear()
        step["anyOf"] = [{"enum": alone}, mapping]
        return reference

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        if isinstance(value, str):  # `- relu`
            return {value: {}}
        if not isinstance(value, dict):
            return value
        # Two words in one mapping: the second dash of a list is missing.
        if len(value) != 1:
            raise ValueError(
                f"expected one word and its settings, got {len(value)}: {shorten([*value])}"
            )
        # `- relu:` without a value is YAML's null.
        return {word: {} if settings is None else settings for word, settings in value.items()}

    @property
    def word(self) -> str:
        """The one word that is set."""
        (word,) = self.model_fields_set
        return word

    @property
    def settings(self) -> StepSettings:
        """The settings of the word."""
        settings = getattr(self, self.word)
        assert isinstance(settings, StepSettings)
        return settings

    @property
    def kind(self) -> LayerKind:
        """The kind of layer that the word makes, for words of one layer."""
        return KIND_OF_STEP[self.word]


Steps = tuple[Step, ...]
