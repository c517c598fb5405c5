"""What stands behind a step's word: the base of all settings, and sizes as files write them."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from grids.entries.entry import Count, Name, Record, refuse_bool
from grids.models.tensors import Passage, Tensor


def _list_one(value: object) -> object:
    """One size for all dimensions as a list of one."""
    return (value,) if isinstance(value, int) else value


# How many of them fit is known when a sample is there (`tensors.size_dimensions`).
A_DIMENSION_EACH = Field(min_length=1, max_length=3)
Sizes = Annotated[tuple[Count, ...], A_DIMENSION_EACH, BeforeValidator(_list_one)]
Paddings = Annotated[
    tuple[Annotated[int, BeforeValidator(refuse_bool), Field(ge=0, le=2**53)], ...],
    A_DIMENSION_EACH,
    BeforeValidator(_list_one),
]


class Settings(Record):
    """The settings of one step. A bare value in the file is the setting called `bare`."""

    bare: ClassVar[str] = "name"

    name: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_bare(cls, value: Any) -> Any:
        if value is None:
            return {}
        return value if isinstance(value, dict | cls) else {cls.bare: value}


class LayerSettings(Settings):
    """The settings of a step that is one layer; its word says of which kind."""

    @abstractmethod
    def infer(self, layer: str, x: Tensor, targets: int) -> Passage:
        """The way of `x` through the layer; ShapeError, InputError: it does not fit `layer`."""
