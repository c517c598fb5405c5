"""Kinds of layers: how they compute, what they keep, and how a group may split them.

Everything the oracle knows about a kind is in its class here. Words of steps and flags of the layer
table follow from `KINDS`. An element-wise kind is one row of `KINDS`; one that computes differently
also has a class; settings are in grids/models/steps/. A new fact is an attribute of `LayerKind`
with the value of element-wise layers, overridden where it differs. grids/models/layers.py derives
what is kept for the backward pass.

To add one: a row of `_ALL` here, with a class if it computes differently. With settings of its own:
a class of them in grids/models/steps/ (windows.py; for several layers or inputs a
`BuildingSettings`, as in attention.py) and its word in `Step` of step.py. A row and an example in
docs/your-model.md. Tests: tests/grids/models/test_kinds.py; `KINDS` of tests/helpers/cases.py, for
tests/test_oracle_agreement.py.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class LayerKind:
    """A kind of layer, by default element-wise: each item follows from the items in its place.

    steps: words of an architecture that make such a layer; none if it only ends a larger step.
    """

    name: str
    steps: tuple[str, ...] = ()

    # Computes multiply-accumulates with weights; otherwise it takes as long as its memory traffic.
    multiplies: ClassVar[bool] = False
    # A kernel slides over the input: spatial groups may split it, with a halo if K > 1.
    windowed: ClassVar[bool] = False
    # Groups split its filters or channels by default.
    divides: ClassVar[bool] = False
    # The kernel slides over the output: a row of the input makes several rows.
    spreads: ClassVar[bool] = False
    # Only its counts are known, so no group can split it.
    opaque: ClassVar[bool] = False
    # The backward pass reads the input.
    keeps_input: ClassVar[bool] = False
    # The backward pass reads the output. Runs in place if nothing else needs the input.
    keeps_output: ClassVar[bool] = False
    # Further bytes for the backward pass, the same in any precision [bytes per output item].
    remembered: ClassVar[int] = 0
    # Further items for the backward pass, in the tensors' precision [items per output item].
    carried: ClassVar[int] = 0
    # Why no group can split its filters or channels; empty if groups can.
    whole: ClassVar[str] = ""
    # Costs little to run again: "batch normalization, activation function and pooling" (Chen et al.
    # 2016, section 3), and dropout.
    cheap: ClassVar[bool] = False

    @property
    def elementwise(self) -> bool:
        """True if each item follows from the items in its place."""
        return not self.multiplies and not self.windowed

    @property
    def convolves(self) -> bool:
        """True for convolutions, whose filters or channels a group may split."""
        return self.multiplies and self.windowed

    def count_weights(self, channels: int, filters: int, kernel: Sizes) -> int:
        """Return |w| without biases, for C channels per filter, F filters and a kernel K."""
        return 0

    def count_biases(self, filters: int) -> int:
        """Return |bi|, for layers with biases."""
        return 0

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        """Return forward operations per sample, for |w| weights, F x extents out and a kernel K.

        y: the output; for kinds with `spreads`, C x extents of the input. A multiply-accumulate
        counts as two; biases are not counted.
        """
        return math.prod(y)


class Pooling(LayerKind):
    """Maximum or mean of each window; each item of a window is one operation."""

    windowed = True
    cheap = True

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return math.prod(y) * math.prod(kernel)


class MaxPooling(Pooling):
    """Maximum of each window; its place is kept as a 64-bit index per output item."""

    remembered = 8


class Normalisation(LayerKind):
    """Scale (counted as weight) and shift (counted as bias) per channel."""

    keeps_input = True
    cheap = True

    def count_weights(self, channels: int, filters: int, kernel: Sizes) -> int:
        return channels

    def count_biases(self, filters: int) -> int:
        return filters


class ScaleNormalisation(Normalisation):
    """Scale per channel without a shift (RMSNorm, Zhang and Sennrich 2019)."""

    def count_biases(self, filters: int) -> int:
        return 0


class Activation(LayerKind):
    """Function whose slope follows from its value: ReLU's is 1 where the output is above 0."""

    keeps_output = True
    cheap = True


class CurvedActivation(LayerKind):
    """Function whose slope needs its argument: GELU has the same value for two arguments."""

    keeps_input = True
    cheap = True


class Product(LayerKind):
    """Product of two tensors, item by item: the slope of each is the other."""

    keeps_input = True


class Dropout(LayerKind):
    """Random zeroing of items; the mask takes a byte per item."""

    # Not in place, which is the default of frameworks: the backward pass of a ReLU before it needs
    # the ReLU's output.
    remembered = 1
    cheap = True


class Multiplying(LayerKind):
    """Product with weights: F filters of C channels by K."""

    multiplies = True
    keeps_input = True

    def count_weights(self, channels: int, filters: int, kernel: Sizes) -> int:
        return channels * filters * math.prod(kernel)

    def count_biases(self, filters: int) -> int:
        return filters


class FullyConnected(Multiplying):
    """Matrix times the vector of all items: each weight is used once."""

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return 2 * weights


class Convolution(Multiplying):
    """Convolution: a weight is used once per position of the kernel."""

    windowed = True
    divides = True

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return 2 * weights * math.prod(y[1:])


class TransposedConvolution(Convolution):
    """Transposed convolution: a weight is used once per position of the input."""

    spreads = True


class FreeLayer(Multiplying):
    """Layer with counts from its author; it runs like matrix products."""

    opaque = True


class Linear(Multiplying):
    """Matrix for each position: filters are its columns, channels its rows.

    Every matrix's output is gathered, like that of a convolution; Megatron-LM (Shoeybi et al. 2019)
    exchanges once for two consecutive matrices.
    """

    divides = True

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return 2 * weights * math.prod(y[1:])


class MatrixProduct(LayerKind):
    """Product of two tensors, or with a vector; its step counts the operations."""

    multiplies = True
    keeps_input = True
    whole = "both of its matrices are tensors, which every PE holds whole"


# Of both parts of a recurrent layer.
WAITS = "each position reads all units of the one before, which would take a gather per step"


class Recurrent(LayerKind):
    """Matrix that multiplies its own output at the previous position.

    grids/models/steps/sequences.py counts its products. The gradients of its weights need the
    output; incoming sums need not be kept.
    """

    multiplies = True
    keeps_output = True
    whole = WAITS


class Gates(LayerKind):
    """Gates of a recurrent layer, with a state carried and kept from position to position."""

    keeps_input = True
    keeps_output = True
    carried = 1
    whole = WAITS


class Scan(MatrixProduct):
    """Sum over earlier positions with a decay: a state that every position updates.

    Kernels compute the states of a piece of the sequence again in the backward pass, and keep none.
    """

    whole = "each position reads the state that the one before left"


class Softmax(Activation):
    """Exponentials divided by their sum over all features of a position."""

    whole = "each item is divided by the sum of all"


class Embedding(LayerKind):
    """Look-up of rows in a table."""

    keeps_input = True
    whole = "rows of its table are looked up whole"


class SampledSoftmax(LayerKind):
    """Scores of randomly drawn classes."""

    multiplies = True
    keeps_input = True
    whole = "classes are drawn from the whole table"


# Monotonic activations: the slope follows from the value.
BY_VALUE = ("relu", "relu6", "leaky_relu", "elu", "sigmoid", "tanh", "hardsigmoid", "hardtanh")
BY_ARGUMENT = ("gelu", "silu", "mish", "hardswish")


_ALL = (
    Convolution("conv", steps=("conv",)),
    TransposedConvolution("transposed_conv", steps=("transposed_conv",)),
    FreeLayer("free", steps=("free",)),
    FullyConnected("fc", steps=("fc",)),
    MaxPooling("maxpool", steps=("maxpool",)),
    Pooling("avgpool", steps=("avgpool", "adaptive_avgpool")),
    Normalisation("norm", steps=("batchnorm", "layernorm", "instancenorm", "groupnorm")),
    ScaleNormalisation("rmsnorm", steps=("rmsnorm",)),
    *(Activation(word, (word,)) for word in BY_VALUE),
    *(CurvedActivation(word, (word,)) for word in BY_ARGUMENT),
    Dropout("dropout", steps=("dropout",)),
    LayerKind("add"),  # the end of a residual step
    Product("lora_sum"),  # of a matrix's and its adapter's outputs: both cross the memory
    LayerKind("scale", steps=("scale",)),  # by constants, such as a frozen normalisation
    Product("multiply"),  # the end of a multiply step
    Product("gated_product"),  # in a gated step: an activation of one tensor times the other
    # Experts: copies of tokens for each chosen expert, and the weighted sum of their results.
    LayerKind("dispatch"),
    Product("combine"),
    # Rotation of pairs of features by position (Su et al. 2021): linear, so nothing is kept.
    LayerKind("rotary"),
    LayerKind("concat"),  # the end of a concat step's branches
    Linear("linear", steps=("linear",)),
    MatrixProduct("matmul", steps=("matmul",)),
    Scan("scan"),
    CurvedActivation("short_conv"),  # of a few positions, each channel by itself
    Softmax("softmax", steps=("softmax",)),
    Embedding("embedding", steps=("embedding",)),
    SampledSoftmax("sampled_softmax", steps=("sampled_softmax",)),
    Recurrent("recurrent"),  # in an lstm step, behind the linear layer of its input
    Gates("gates"),
    LayerKind("class_token", steps=("class_token",)),
    LayerKind("positions", steps=("positions",)),
)

KINDS = {kind.name: kind for kind in _ALL}
KIND_OF_STEP = {word: kind for kind in _ALL for word in kind.steps}
