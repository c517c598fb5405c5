"""The layer table: all that the oracle knows of a network, a row a layer.

Symbols of ParaDL (Kahira et al., HPDC 2021), section 3: layers l = 1..G with |x_l|, |y_l| items a
sample, |w_l| weights, |bi_l| biases, C_l channels, F_l filters, spatial extents X_l, kernels K_l.
Items and operations are counted a sample; extents and kernels stand in the order d, h, w, with 1
where a network has fewer dimensions. float64 keeps every count exact up to 2^53.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KINDS = ("conv", "fc", "pool", "norm", "relu", "add", "concat", "dropout", "other")
DIMENSIONS = 3  # d, h, w


@dataclass(frozen=True)
class Layer:
    """One row: a layer as shape inference, or a file of ParaDL's, describes it."""

    name: str
    kind: str
    x: float  # items of all inputs together: an addition of two tensors has x = 2 y
    y: float
    w: float  # weights without biases; a batch normalisation has C of each
    bias: float
    flops: float  # forward; a multiply-accumulate is two, biases are not counted
    channels: float
    filters: float
    extents_x: tuple[float, float, float]
    extents_y: tuple[float, float, float]
    kernel: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class LayerTable:
    """A network for one sample shape, column by column: [G], or [G, 3] for extents."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    x: Floats
    y: Floats
    w: Floats
    bias: Floats
    flops: Floats
    channels: Floats
    filters: Floats
    extents_x: Floats
    extents_y: Floats
    kernel: Floats
    seconds: Floats | None = None  # measured forward + backward a sample; only ParaDL's files

    @classmethod
    def from_layers(cls, layers: Sequence[Layer], seconds: Floats | None = None) -> "LayerTable":
        columns = {
            each.name: np.array([getattr(layer, each.name) for layer in layers], np.float64)
            for each in fields(Layer)
            if each.name not in ("name", "kind")
        }
        return cls(
            names=tuple(layer.name for layer in layers),
            kinds=tuple(layer.kind for layer in layers),
            seconds=seconds,
            **columns,
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return int(self.w.sum() + self.bias.sum())

    @property
    def macs(self) -> float:
        """Multiply-accumulates a sample, forward: of convolutions and fully connected layers."""
        multiplies = [kind in ("conv", "fc") for kind in self.kinds]
        return float(self.flops[multiplies].sum()) / 2.0
