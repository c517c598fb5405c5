"""The shapes that the kernels speak of.

Every numeric axis of a cube (PEs, batch, bandwidth ...) is one dimension of `cells`; a value that does
not vary along an axis has size 1 there and broadcasts. What belongs to layers, pipeline stages,
messages, network levels or spatial dimensions carries one leading dimension more.
"""

from typing import TypeAlias

from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Num, UInt8

Cells: TypeAlias = Num[ArrayLike, "*#cells"]
Flags: TypeAlias = Bool[ArrayLike, "*#cells"]
Limits: TypeAlias = UInt8[Array, "*cells"]
PerLayer: TypeAlias = Num[ArrayLike, "layer *#cells"]
PerLayerPart: TypeAlias = Num[ArrayLike, "#layer *#cells"]
PerStage: TypeAlias = Num[ArrayLike, "stage *#cells"]
PerMessage: TypeAlias = Num[ArrayLike, "message *#cells"]
PerLevel: TypeAlias = Num[ArrayLike, "level *#cells"]
Extents: TypeAlias = Num[ArrayLike, "3 layer *#cells"]
Factors: TypeAlias = Num[ArrayLike, "3 *#cells"]
