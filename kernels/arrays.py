"""The shapes that the kernels speak of.

Every numeric axis of a cube (PEs, batch, bandwidth ...) is one dimension of `cells`; a value that
does not vary along an axis has size 1 there and broadcasts. What belongs to layers, pipeline
stages, messages, network levels or spatial dimensions carries one leading dimension more.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jax import Array
from jaxtyping import Bool, Int, Num, UInt16

# Of flags, nine of them.
LIMITS = np.uint16

if TYPE_CHECKING:
    AnyArray: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]]
else:  # single numbers, too, which of numpy's are no arrays but do what these do
    AnyArray: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]] | np.generic

# beartype takes no int for a float: both are written out.
Cells: TypeAlias = Num[AnyArray | float | int, "*#cells"]
Flags: TypeAlias = Bool[AnyArray, "*#cells"]
Limits: TypeAlias = UInt16[AnyArray, "*#cells"]
PerLayer: TypeAlias = Num[AnyArray, "layer *#cells"]
PerStage: TypeAlias = Num[AnyArray, "stage *#cells"]
PerDevice: TypeAlias = Num[AnyArray, "device layer *#cells"]
OfDevice: TypeAlias = Num[AnyArray, "device *#cells"]
PerMessage: TypeAlias = Num[AnyArray, "message *#cells"]
Single: TypeAlias = Num[AnyArray, "1 *#cells"]  # one stage, or one message
PerLevel: TypeAlias = Num[AnyArray, "level *#cells"]
Extents: TypeAlias = Num[AnyArray, "3 layer *#cells"]
Factors: TypeAlias = Num[AnyArray, "3 *#cells"]
Ends: TypeAlias = Int[AnyArray, "stage *#cells"]
