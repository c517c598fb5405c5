"""Settings behind a step's word: their base class, and sizes as files write them."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from grids.entries.entry import Count, Name, Record, refuse_bool
from grids.models.tensors import Passage, Shape
from grids.reading.errors import ShapeError


def _list_one(value: object) -> object:
    """One size for all dimensions as a list of one."""
    return (value,) if isinstance(value, int) else value


def _describe(least: int) -> WithJsonSchema:
    """The JSON schema of one size or a list of sizes, which pydantic cannot see in validators."""
    one = {"type": "integer", "minimum": least}
    return WithJsonSchema(
        {"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": 3}]}
    )


# Whether their number fits is known when a sample is there (`tensors.size_dimensions`).
A_DIMENSION_EACH = Field(min_length=1, max_length=3)
Sizes = Annotated[
    tuple[Count, ...], A_DIMENSION_EACH, BeforeValidator(_list_one), _describe(least=1)
]
Paddings = Annotated[
    tuple[Annotated[int, BeforeValidator(refuse_bool), Field(ge=0, le=2**53)], ...],
    A_DIMENSION_EACH,
    BeforeValidator(_list_one),
    _describe(least=0),
]


def _name_form(value: object) -> str:
    """The form that a value has: a word, a list or a number."""
    if isinstance(value, str):
        return WORD
    return LIST if isinstance(value, list | tuple) else NUMBER


# Only the form of the value is tried, so that a wrong value gives one message and not one a form.
# Messages leave out the parts of a place that have brackets, as pydantic adds them, too.
WORD, NUMBER, LIST = "[word]", "[number]", "[list]"
BY_FORM = Discriminator(_name_form)
Number = Annotated[Count, Tag(NUMBER)]
Targets = Annotated[Literal["targets"], Tag(WORD)]  # as many as the data set has


class StepSettings(Record):
    """The settings of one step. A bare value in the file is the setting called `bare`."""

    bare: ClassVar[str] = "name"

    name: Name | None = None

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """All settings; or the bare one, or none, where no other is required."""
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
    """The outputs of a layer; ShapeError where they are the data set's and it has none."""
    if outputs != "targets":
        return outputs
    if targets is None:
        raise ShapeError(
            f"{layer} has as many outputs as the data set has targets, and a data set of tokens "
            "has none"
        )
    return targets


class LayerSettings(StepSettings):
    """The settings of a step that is one layer; its word says of which kind."""

    @abstractmethod
    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        """The way of `x` through the layer; ShapeError, InputError where it does not fit."""
