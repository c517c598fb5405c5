"""Array types of the kernels.

Each numeric axis of a cube (PEs, batch, bandwidth ...) is a dimension of `cells`; values that do
not vary along an axis have size 1 there and broadcast. Values per layer, pipeline stage, message,
network level or spatial dimension have one more, leading dimension.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jax import Array
from jaxtyping import Bool, Int, Num, UInt16

# Integer type of flags, of which there are nine.
LIMITS = np.uint16

if TYPE_CHECKING:
    AnyArray: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]]
else:  # numpy's scalars, too, which behave like arrays
    AnyArray: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]] | np.generic

# beartype does not accept an int as a float, so both are listed.
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
