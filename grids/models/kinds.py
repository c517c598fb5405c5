"""Kinds of layers: how they compute, what they keep, and how a group may split them.

All that the oracle knows of a kind stands in its class here; the words of steps, the names in
ParaDL's files and the flags of the layer table follow from `KINDS`. An element-wise kind is a row
of `KINDS`; one that computes otherwise is a class, too; one with settings has them in
grids/models/steps.py. A further fact about kinds is an attribute of `Kind` with the value of
element-wise layers, set again by classes that differ. grids/models/flow.py derives from three of
them what is kept for the backward pass.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class LayerKind:
    """A kind of layer; by default element-wise: each item comes from the items in its place.

    steps: the words that make such a layer in an architecture, none where a larger step ends in
    one. prefixes: how the names of such layers begin in ParaDL's files.
    """

    name: str
    steps: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    # Its operations are multiply-accumulates with weights; else it takes as long as its traffic.
    multiplies: ClassVar[bool] = False
    # A kernel slides over the extents: a spatial group may split them, with a halo if K > 1.
    windowed: ClassVar[bool] = False
    # Groups split its filters or channels by default.
    divides: ClassVar[bool] = False
    # Its kernel slides over the output: it makes several rows of one.
    spreads: ClassVar[bool] = False
    # Only its counts are known: no group splits it.
    opaque: ClassVar[bool] = False
    # It takes all items that come in as channels of one item each.
    flattens: ClassVar[bool] = False
    # Its backward pass reads its input.
    keeps_input: ClassVar[bool] = False
    # Its backward pass reads its output. It runs in place where nothing else needs the input.
    keeps_output: ClassVar[bool] = False
    # Other bytes that its backward pass reads, in any precision [bytes an output item].
    remembered: ClassVar[int] = 0
    # Other items, in the precision of tensors [items an output item].
    carried: ClassVar[int] = 0
    # The reason why no group can split its filters or channels; empty where groups can.
    whole: ClassVar[str] = ""

    @property
    def elementwise(self) -> bool:
        """True if each item comes from the items in its place."""
        return not self.multiplies and not self.windowed

    @property
    def convolves(self) -> bool:
        """True if it is a convolution, of which a group may split filters or channels."""
        return self.multiplies and self.windowed

    def count_weights(self, channels: int, filters: int, kernel: Sizes) -> int:
        """|w| without biases, of C channels that each filter reads, F filters and a kernel K."""
        return 0

    def count_biases(self, filters: int) -> int:
        """|bi|, where the layer has biases at all."""
        return 0

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        """Forward operations a sample, of |w| weights, F x extents out (`y`; of a kind that
        spreads, C x extents in) and a kernel K.

        A multiply-accumulate is two; biases are not counted.
        """
        return math.prod(y)


class Pooling(LayerKind):
    """The largest, or the mean, of each window: each item of a window is one operation."""

    windowed = True

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return math.prod(y) * math.prod(kernel)


class MaxPooling(Pooling):
    """The largest of each window, whose place is remembered: an index of 64 bits an output item."""

    remembered = 8


class Normalisation(LayerKind):
    """A scale, counted as weight, and a shift, counted as bias, a channel."""

    keeps_input = True

    def count_weights(self, channels: int, filters: int, kernel: Sizes) -> int:
        return channels

    def count_biases(self, filters: int) -> int:
        return filters


class ScaleNormalisation(Normalisation):
    """A scale a channel without a shift (Zhang and Sennrich 2019, RMSNorm)."""

    def count_biases(self, filters: int) -> int:
        return 0


class Activation(LayerKind):
    """A function whose slope follows from its value: ReLU's is 1 where the output is above 0."""

    keeps_output = True


class CurvedActivation(LayerKind):
    """A function whose slope takes its argument: two arguments give GELU the same value."""

    keeps_input = True


class Product(LayerKind):
    """Two tensors, item by item: the slope of each is the other."""

    keeps_input = True


class Dropout(LayerKind):
    """Items that are passed on or dropped; a byte an item remembers which."""

    # Not in place, as by default in frameworks: behind a ReLU, whose backward pass reads its
    # output, it could not be.
    remembered = 1


class Multiplying(LayerKind):
    """A product with weights: F filters of C channels by K."""

    multiplies = True
    keeps_input = True

    def count_weights(self, channels: int, filters: int, kernel: Sizes) -> int:
        return channels * filters * math.prod(kernel)

    def count_biases(self, filters: int) -> int:
        return filters


class FullyConnected(Multiplying):
    """A matrix times a column of all items: each weight is used once."""

    flattens = True

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return 2 * weights


class Convolution(Multiplying):
    """A convolution: a weight is used once for each position of the kernel."""

    windowed = True
    divides = True

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return 2 * weights * math.prod(y[1:])


class TransposedConvolution(Convolution):
    """A transposed convolution: a weight is used once for each position of the input."""

    spreads = True


class FreeLayer(Multiplying):
    """A layer with its author's counts; it runs as matrix products do."""

    opaque = True


class Linear(Multiplying):
    """A matrix for each position: filters are its columns, channels its rows.

    The output of every matrix is gathered, as that of convolutions is; Megatron-LM (Shoeybi et al.
    2019) exchanges once for two in a row.
    """

    divides = True

    def count_operations(self, weights: float, y: Sizes, kernel: Sizes) -> float:
        return 2 * weights * math.prod(y[1:])


class MatrixProduct(LayerKind):
    """A product of two tensors, or with a vector; its step counts the operations."""

    multiplies = True
    keeps_input = True
    whole = "both of its matrices are tensors, which every PE holds whole"


class Recurrent(LayerKind):
    """A matrix that multiplies its own output at the position before.

    grids/models/lstm.py counts its products. The gradients of its weights read the output; the
    sums that come in need not be kept.
    """

    multiplies = True
    keeps_output = True
    whole = "each position reads all units of the one before, which would take a gather a step"


class Gates(LayerKind):
    """Gates: units from sums, with a state that is carried from position to position, and kept."""

    keeps_input = True
    keeps_output = True
    carried = 1
    whole = "each position reads all units of the one before, which would take a gather a step"


class Softmax(Activation):
    """Exponentials over their sum, of all features of a position."""

    whole = "each item is divided by the sum of all"


class Embedding(LayerKind):
    """Rows of a table."""

    keeps_input = True
    whole = "rows of its table are looked up whole"


class SampledSoftmax(LayerKind):
    """Scores of drawn classes."""

    multiplies = True
    keeps_input = True
    whole = "classes are drawn from the whole table"


# Monotonous activations: the value says what the slope is.
BY_VALUE = ("relu", "relu6", "leaky_relu", "elu", "sigmoid", "tanh", "hardsigmoid", "hardtanh")
BY_ARGUMENT = ("gelu", "silu", "mish", "hardswish")


_ALL = (
    Convolution("conv", steps=("conv",), prefixes=("CONV",)),
    TransposedConvolution("transposed_conv", steps=("transposed_conv",)),
    FreeLayer("free", steps=("free",)),
    FullyConnected("fc", steps=("fc",), prefixes=("FC",)),
    # A POOL that does not say of which kind counts as the one that remembers more.
    MaxPooling("maxpool", steps=("maxpool",), prefixes=("MPOOL", "POOL")),
    Pooling("avgpool", steps=("avgpool", "adaptive_avgpool"), prefixes=("APOOL",)),
    Normalisation(
        "norm",
        steps=("batchnorm", "layernorm", "instancenorm", "groupnorm"),
        prefixes=("BNORM",),
    ),
    ScaleNormalisation("rmsnorm", steps=("rmsnorm",)),
    *(Activation(word, (word,), ("RELU",) if word == "relu" else ()) for word in BY_VALUE),
    *(CurvedActivation(word, (word,)) for word in BY_ARGUMENT),
    Dropout("dropout", steps=("dropout",), prefixes=("DROPOUT",)),
    LayerKind("add", prefixes=("ADD",)),  # where a residual step ends
    Product("multiply"),  # where a multiply step ends
    Product("gated_product"),  # of a gated step: an activation of one tensor times the other
    # Of tokens: copies for the experts that each goes to, and the weighted sum of what these give.
    LayerKind("dispatch"),
    Product("combine"),
    # A rotation of pairs of features by their position (Su et al. 2021): linear, nothing is kept.
    LayerKind("rotary"),
    LayerKind("concat", prefixes=("CONCAT",)),  # where the branches of a concat step meet
    Linear("linear", steps=("linear",)),
    MatrixProduct("matmul", steps=("matmul",)),
    Softmax("softmax", steps=("softmax",)),
    Embedding("embedding", steps=("embedding",)),
    SampledSoftmax("sampled_softmax", steps=("sampled_softmax",)),
    Recurrent("recurrent"),  # of an lstm step, which has an input's linear layer in front
    Gates("gates"),
    LayerKind("class_token", steps=("class_token",)),
    LayerKind("positions", steps=("positions",)),
)

KINDS = {kind.name: kind for kind in _ALL}
KIND_OF_STEP = {word: kind for kind in _ALL for word in kind.steps}
KIND_OF_PREFIX = {prefix: kind for kind in _ALL for prefix in kind.prefixes}
