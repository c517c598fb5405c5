"""Settings of steps: their base classes, types of sizes in files, and matrices that steps build."""

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from paradl.grids.entries.entry import Count, Name, Record, list_one, refuse_bool
from paradl.grids.models.tensors import NO_ROLE, LayerOutput, Passage, Reading, Role, Shape
from paradl.grids.reading.errors import InputError, ShapeError, format_count

if TYPE_CHECKING:
    from paradl.grids.models.steps.step import Steps


# Whether the number of sizes fits is checked with a sample (`tensors.size_dimensions`).
A_DIMENSION_EACH = Field(min_length=1, max_length=3)
Listed = Annotated[tuple[Count, ...], A_DIMENSION_EACH]
Sizes = Annotated[Listed, BeforeValidator(list_one, json_schema_input_type=Count | Listed)]
Padding = Annotated[int, Field(ge=0, le=2**53), BeforeValidator(refuse_bool)]
Padded = Annotated[tuple[Padding, ...], A_DIMENSION_EACH]
Paddings = Annotated[Padded, BeforeValidator(list_one, json_schema_input_type=Padding | Padded)]


def _name_form(value: object) -> str:
    if isinstance(value, str):
        return WORD
    return LIST if isinstance(value, list | tuple) else NUMBER


# Validation only tries the form that a value has, so a wrong value gives one message rather than
# one per form. Messages omit parts of a location in brackets, which pydantic adds too.
WORD, NUMBER, LIST = "[word]", "[number]", "[list]"
BY_FORM = Discriminator(_name_form)
Number = Annotated[Count, Tag(NUMBER)]
Targets = Annotated[Literal["targets"], Tag(WORD)]  # as many as the data set has


class StepSettings(Record):
    """Settings of one step. A bare value in the file sets the field named `bare`."""

    bare: ClassVar[str] = "name"

    name: Name | None = None

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema: all settings, the bare one, or none if no other is required."""
        reference = handler(schema)
        record = handler.resolve_ref_schema(reference)
        forms, needed = [dict(record)], set(record.get("required", ()))
        forms += [record["properties"][cls.bare]] if needed <= {cls.bare} else []
        forms += [] if needed else [{"type": "null"}]
        record.clear()
        record["anyOf"] = forms
        return reference

    @model_validator(mode="before")
    @classmethod
    def _from_bare(cls, value: Any) -> Any:
        if value is None:
            return {}
        return value if isinstance(value, dict | cls) else {cls.bare: value}


def count_outputs(layer: str, outputs: int | Literal["targets"], targets: int | None) -> int:
    """Return a layer's number of outputs; ShapeError if the data set has no targets."""
    if outputs != "targets":
        return outputs
    if targets is None:
        raise ShapeError(
            f"{layer} has one output per target, and a data set of tokens has no targets"
        )
    return targets


class LayerSettings(StepSettings):
    """Settings of a step that is one layer; its word gives the kind."""

    @abstractmethod
    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        """Return the passage of `x` through the layer; ShapeError, InputError: it does not fit."""


class Site(Protocol):
    """The part of the network built so far. `targets`: outputs to learn; None: tokens."""

    @property
    def targets(self) -> int | None: ...

    def add(self, name: str, kind: str, passage: Passage, *inputs: LayerOutput) -> LayerOutput:
        """Add a layer of a kind that reads `inputs`, and return its output."""

    def follow(
        self, scope: str, steps: "Steps", x: LayerOutput, *, experts: int = 0, active: int = 0
    ) -> LayerOutput:
        """Return the output of a sequence of steps, whose names begin with the scope.

        experts: networks that it stands for, of which `active` take each position.
        """

    def look_up(self, name: str, reference: str) -> LayerOutput:
        """Return the output of an earlier step that `name` refers to; InputError if none has it."""

    def find_table(self, x: LayerOutput) -> tuple[str | None, int]:
        """Return the kind of the layer that made a tensor, and its weights; None, 0: sample."""


class BuildingSettings(StepSettings):
    """Settings of a step that makes several layers, or layers that read several tensors."""

    @abstractmethod
    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        """Build the layers and return their output; InputError, ShapeError: they do not fit."""


def expect_sequence(name: str, x: Shape) -> tuple[int, int]:
    """Return positions and features of a sequence; InputError for an image."""
    if not x.is_sequence:
        what = f"expected a sequence, got an image of {x}; write 'to_sequence' before it"
        raise InputError(what, where=f"layer {name}")
    return x.extents[0], x.channels


def make_sequence(positions: int, features: int) -> Shape:
    """Return the tensor of a sequence."""
    return Shape(features, (positions,))


def project(
    site: Site, name: str, x: LayerOutput, features: int, role: Role = NO_ROLE, *, bias: bool
) -> LayerOutput:
    """Add a matrix for the features of each position."""
    y = make_sequence(x.tensor.extents[0], features)
    return site.add(name, "linear", Passage(x.tensor, y, bias=bias, role=role), x)


def weigh(
    site: Site, name: str, scores: LayerOutput, reading: Reading | None = None, sinks: int = 0
) -> LayerOutput:
    """Add the softmax of scores; with queries, keys and values it is Megatron's core attention.

    sinks: learned scores beside them, which take a share of the sum.
    """
    role = Role(module="core_attn", reading=reading)
    passage = replace(keep_sizes(scores), role=role, weights=sinks or None)
    return site.add(f"{name}.softmax", "softmax", passage, scores)


def multiply(site: Site, name: str, x: LayerOutput, gate: LayerOutput) -> LayerOutput:
    """Add the product of a tensor and the activation of its gate, one kernel."""
    return site.add(name, "gated_product", replace(keep_sizes(x), inputs=2), x, gate)


def keep_sizes(x: LayerOutput) -> Passage:
    """Return the passage through a layer whose output has its input's sizes."""
    return Passage(x.tensor, x.tensor)


def compare(
    site: Site, name: str, x: LayerOutput, other: LayerOutput, reading: Reading
) -> LayerOutput:
    """Add T x S scores per head: features of each position with those that it reads of `other`.

    If `other` has fewer heads, each serves several.
    """
    queries, features = expect_sequence(name, x.tensor)
    positions, others = expect_sequence(name, other.tensor)
    if features * reading.kv_heads != others * reading.heads:
        raise ShapeError(f"{name}: {x.tensor} do not match {other.tensor}: features differ")
    depth, keys = split_heads(name, features, reading.heads), reading.count_keys(positions)
    passage = Passage(
        x.tensor,
        make_sequence(queries, reading.heads * keys),
        role=Role(reading=reading),
        flops=2 * queries * keys * features,
        width=(depth, keys),
        besides=other.tensor.items,
    )
    return site.add(name, "matmul", passage, x, other)


def collect(
    site: Site,
    name: str,
    x: LayerOutput,
    other: LayerOutput,
    reading: Reading,
    depth: int | None = None,
) -> LayerOutput:
    """Add T x d sums per head: features of the positions that it reads of `other`, weighted by x.

    depth: features per head, if several heads share those of `other`.
    """
    queries, scores = expect_sequence(name, x.tensor)
    positions, features = expect_sequence(name, other.tensor)
    heads, keys = reading.heads, reading.count_keys(positions)
    if scores != heads * keys:
        raise ShapeError(f"{name}: {x.tensor} do not match {other.tensor} in {heads} heads")
    depth = depth or split_heads(name, features, heads)
    passage = Passage(
        x.tensor,
        make_sequence(queries, heads * depth),
        flops=2 * queries * keys * heads * depth,
        width=(keys, depth),
        besides=other.tensor.items,
    )
    return site.add(name, "matmul", passage, x, other)


def split_heads(name: str, features: int, heads: int) -> int:
    """Return features per head; InputError if heads do not divide them."""
    if features % heads:
        layer = name.rpartition(".")[0] or name
        raise InputError(f"heads: {describe_heads(features, heads)}", where=f"layer {layer}")
    return features // heads


def describe_heads(features: int, heads: int) -> str:
    """Say that heads do not divide features."""
    return (
        f"{format_count(heads, 'head')} cannot share {format_count(features, 'feature')} "
        "evenly; write a divisor of the features"
    )
