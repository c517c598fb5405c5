"""The layer table: everything the oracle knows about a network, one row per layer.

Symbols of ParaDL (Kahira et al., HPDC 2021), section 3: layers l = 1..G with |x_l|, |y_l| items per
sample, |w_l| weights, |bi_l| biases, C_l channels, F_l filters, spatial extents X_l, kernels K_l.
Items and operations are per sample. Extents and kernels are in the order d, h, w, with 1 for
missing dimensions. float64 keeps every count exact up to 2^53.

Layers are in an order in which a sample passes them, and read earlier layers: `inputs` has the
positions of the layers that each reads, -1 for the sample.

The backward pass reads some of the forward pass's tensors, which occupy memory until then. A tensor
is kept, once, if a layer that reads it needs its input, or the layer that made it needs its output
(grids/models/kinds.py). It is counted with the layer that made it; the sample with the first layer.
Additions and concatenations need neither. But a concatenation copies: with a ReLU before it and a
convolution after it, both the ReLU's output and the copy are kept.

A ReLU runs in place if it alone reads a tensor that nobody keeps: its output, which is kept, takes
that tensor's memory. If another layer reads the tensor too, or its maker needs it (a ReLU after a
ReLU), the ReLU's output has memory of its own. One rule covers both cases: of two tensors that
share memory, only the output is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from paradl.grids.models.kinds import KINDS, LayerKind
from paradl.grids.models.tensors import NO_ROLE, Role
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.names.arrays import Flags, Floats, Integers

DIMENSIONS = 3  # d, h, w
SAMPLE = -1  # the sample's position

# In the catalogue: ResNet-152 has 514 layers, VGG-16 1.4e8 weights, CosmoFlow at 256^3 1.5e11
# operations per sample. The pipeline partition looks at every pair of layers.
MOST_LAYERS = 5_000
MOST_COUNT = 1e18

# What each bounded column counts, for messages.
COUNTED = {"x": "input items", "y": "output items", "w": "weights", "flops": "operations"}


@dataclass(frozen=True)
class Layer:
    """One row: a layer from shape inference."""

    name: str
    kind: str  # a key of `kinds.KINDS`
    x: float  # items of all inputs together: an addition of two tensors has x = 2 y
    y: float
    w: float  # weights without biases; batch normalisation has C of each
    bias: float
    flops: float  # forward; a multiply-accumulate is two, biases are not counted
    channels: float
    filters: float
    extents_x: tuple[float, float, float]
    extents_y: tuple[float, float, float]
    # Rows that a window spans; for a dilated one, gaps included.
    kernel: tuple[float, float, float]
    # Rows of x per row of y; below 1 for a transposed convolution.
    stride: tuple[float, float, float] = (1.0, 1.0, 1.0)
    groups: float = 1.0  # groups of channels, each with its own filters
    # Positions of the layers that it reads, -1 for the sample. None: the previous row.
    inputs: tuple[int, ...] | None = None
    steps: float = 1.0  # products in sequence, such as a recurrent layer's for each position
    reads: float = 1.0  # times that weights are read from memory in each of the three passes
    # Tables with row-sparse gradients: weights that a sample looks up, weights drawn once per pass.
    looked_up: float = 0.0
    drawn: float = 0.0
    # Share of its weights that one position uses: for experts, the chosen ones.
    active: float = 1.0
    role: Role = NO_ROLE


# Without equality, a table hashes by identity: placements are cached per table.
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
    stride: Floats  # of windows; 1 for other layers
    groups: Floats
    steps: Floats
    reads: Floats
    looked_up: Floats
    drawn: Floats
    active: Floats
    inputs: tuple[tuple[int, ...], ...]  # positions of the layers read, -1 for the sample
    roles: tuple[Role, ...]
    spatial_layers: int | None = None  # first layers that a spatial group divides; None: all

    def __post_init__(self) -> None:
        for name, kind in zip(self.names, self.kinds, strict=True):
            if kind not in KINDS:
                raise InputError.unknown("kind", kind, KINDS, where=f"layer {shorten(name)}")
        for position, inputs in enumerate(self.inputs):
            assert inputs
            assert all(SAMPLE <= read < position for read in inputs)

    @classmethod
    def from_layers(cls, layers: Sequence[Layer]) -> "LayerTable":
        """Build the table of at least one layer."""
        _expect_countable(layers)
        columns = {
            field.name: np.array([getattr(layer, field.name) for layer in layers], np.float64)
            for field in fields(Layer)
            if field.name not in ("name", "kind", "inputs", "role")
        }
        return cls(
            names=tuple(layer.name for layer in layers),
            kinds=tuple(layer.kind for layer in layers),
            inputs=tuple(
                (position - 1,) if layer.inputs is None else layer.inputs
                for position, layer in enumerate(layers)
            ),
            roles=tuple(layer.role for layer in layers),
            # Named, since type checkers cannot tell that it is none of the columns.
            spatial_layers=None,
            **columns,
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return int(self.w.sum() + self.bias.sum())

    @property
    def macs(self) -> float:
        """Forward multiply-accumulates per sample, in layers that multiply by weights."""
        return float(self.flops[self.multiplying].sum()) / 2.0

    # Derived columns are cached: kernel inputs are made from a table for every group size in a
    # search of spatial factors, and for every machine in a data set of samples.
    @cached_property
    def _kept(self) -> Flags:
        """Outputs that the backward pass reads [G + 1]; the sample comes last, where -1 points."""
        kept = np.array([*(kind.keeps_output for kind in self._kinds), False])
        for kind, positions in zip(self._kinds, self.inputs, strict=True):
            if kind.keeps_input:
                kept[list(positions)] = True
        return kept

    @cached_property
    def kept_items(self) -> Floats:
        """Items per sample [G] that the backward pass reads of each layer's output.

        The sample counts with the first. States carried from one position to the next are included.
        """
        carried = np.array([kind.carried for kind in self._kinds])
        items = np.where(self._kept[:SAMPLE], self.y, 0.0) + carried * self.y
        items[0] += self._sample * self._kept[SAMPLE]
        return items

    @cached_property
    def kept_bytes(self) -> Floats:
        """Further bytes per sample that each layer keeps [G], the same in every precision."""
        return np.array([kind.remembered for kind in self._kinds]) * self.y

    @cached_property
    def rerun(self) -> Flags:
        """Cheap layers that run again in the backward pass if it keeps no cheap output [G].

        They follow from outputs that are kept anyway, and the backward pass reads what they make or
        what follows from it. A ReLU that works in place on a convolution's output is kept in its
        stead.
        """
        kinds, kept, again = self._kinds, self._kept, np.zeros(len(self) + 1, bool)
        for layer, (kind, positions) in enumerate(zip(kinds, self.inputs, strict=True)):
            again[layer] = kind.cheap and all(again[p] or kept[p] for p in positions)
        needed = kept | np.array([*(kind.remembered > 0 for kind in kinds), False])
        for layer in reversed(range(len(self))):
            again[layer] &= needed[layer]
            if again[layer]:
                needed[list(self.inputs[layer])] = True
        return again[:SAMPLE]

    @cached_property
    def rerun_items(self) -> Floats:
        """Items per sample [G] that layers that run again would otherwise keep."""
        return np.where(self.rerun & self._kept[:SAMPLE], self.y, 0.0)

    def count_rerun(self, sizes: Floats) -> Floats:
        """Sum sizes of what runs again for the backward pass of each layer, all there at once [G].

        sizes: of what layers that run again would otherwise keep [G].
        """
        there = np.zeros(len(self) + 1)
        for layer, (kind, positions) in enumerate(zip(self._kinds, self.inputs, strict=True)):
            if self.rerun[layer] or kind.keeps_input:
                before = (there[p] for p in {*positions} - {SAMPLE} if self.rerun[p])
                there[layer] = sizes[layer] + sum(before)
        return there[:SAMPLE]

    @cached_property
    def crossing(self) -> Floats:
        """Items per sample that cross a cut behind each layer [G], shortcuts included."""
        return count_crossing(self.inputs, self._sample, self.y)

    def cross_parts(self, sample: Floats, y: Floats) -> Floats:
        """Return `crossing` for shares of the sample [...] and of each output [G, ...]."""
        items = y * self.y.reshape(-1, *[1] * (y.ndim - 1))
        return count_crossing(self.inputs, sample * self._sample, items)

    @property
    def depth(self) -> int:
        """Number of multiplying layers on the longest path through the network."""
        return find_depth(self.inputs, self.multiplying)

    @property
    def _sample(self) -> float:
        return float(self.x[0]) / len(self.inputs[0])  # the first layer reads nothing else

    @property
    def _kinds(self) -> list[LayerKind]:
        return [KINDS[kind] for kind in self.kinds]

    @cached_property
    def multiplying(self) -> Flags:
        """True for layers that multiply by weights [G]; others take as long as their traffic."""
        return np.array([kind.multiplies for kind in self._kinds])

    @cached_property
    def windowed(self) -> Flags:
        """True for layers with a sliding kernel [G], which a spatial group may split."""
        return np.array([kind.windowed for kind in self._kinds])

    @cached_property
    def split_in_space(self) -> Flags:
        """True for layers that the experiments' spatial groups split [G]: the first ones."""
        first = np.arange(len(self)) < (self.spatial_layers or len(self))
        return np.logical_and(self.windowed, first)

    @cached_property
    def layer_starts(self) -> Integers:
        """Rows at which layers 1..G of Table III begin: convolutions, poolings, matrices.

        Element-wise rows (activations, normalisations, sums) belong to the layer before them, or to
        the first layer if none is before.
        """
        first = np.flatnonzero([not kind.elementwise for kind in self._kinds])
        return np.append(0, first[1:])

    @cached_property
    def convolutions(self) -> Flags:
        """True for convolutions [G], whose filters or channels a group may split."""
        return np.array([kind.convolves for kind in self._kinds])

    @property
    def of_sequences(self) -> bool:
        """True if it has products on sequences: linear, recurrent, or of two tensors."""
        return bool(self.sequence_products.any())

    @cached_property
    def sequence_products(self) -> Flags:
        """True for products on sequences [G]: linear, recurrent, or of two tensors."""
        # `fc` is none, which takes an image's items: it is neither split by default nor left whole.
        return np.array(
            [
                kind.multiplies and not kind.windowed and bool(kind.whole or kind.divides)
                for kind in self._kinds
            ]
        )

    @property
    def sequential(self) -> bool:
        """True if a layer has sequential steps, or reads weights other than once per pass."""
        return bool((self.steps != 1).any() or (self.reads != 1).any()) or self.sparse

    @property
    def sparse(self) -> bool:
        """True if a table's gradient has only the rows that a pass looks up."""
        return bool((self.looked_up > 0).any())

    @cached_property
    def divisible(self) -> Flags:
        """True for layers whose filters or channels groups split by default [G]."""
        return np.array([kind.divides for kind in self._kinds])

    @cached_property
    def divisible_filters(self) -> Floats:
        """Largest number of parts for filters [G]; 1 if only counts are known."""
        opaque = np.array([kind.opaque for kind in self._kinds])
        return np.where(opaque, 1.0, self.filters)

    @cached_property
    def divisible_channels(self) -> Floats:
        """Largest number of parts for the channels per filter [G], those of its group."""
        opaque = np.array([kind.opaque for kind in self._kinds])
        return np.where(opaque, 1.0, self.channels / self.groups)

    @property
    def volumetric(self) -> bool:
        """True if samples have a depth, so that convolutions are three-dimensional."""
        return bool((self.extents_x[:, 0] > 1).any())

    @property
    def multipliers(self) -> tuple[str, ...]:
        """Kinds of products with an efficiency of their own, in alphabetical order."""
        convolution = "conv3d" if self.volumetric else "conv2d"
        kinds = (kind for kind in self._kinds if kind.multiplies)
        return tuple(sorted({convolution if kind.convolves else "matmul" for kind in kinds}))


def count_crossing(inputs: Sequence[Sequence[int]], sample: Any, y: Floats) -> Floats:
    """Count items per sample [G, ...] that cross a cut behind each layer; 0 behind the last.

    A tensor made at or before the cut crosses it, once, if a later layer reads it, as a shortcut in
    a residual block does. sample, y: items of the sample [...], and of each output [G, ...].
    """
    # A tensor that nobody reads ends at its own layer. The sample comes last, where position -1
    # points, and exists before the first layer.
    last_reader = [*range(len(inputs)), 0]
    for reader, positions in enumerate(inputs):
        for position in positions:
            last_reader[position] = max(last_reader[position], reader)
    change = y.copy()
    change[0] += sample
    np.subtract.at(change, last_reader, [*y, sample])
    return np.cumsum(change, axis=0)


def find_depth(inputs: Sequence[Sequence[int]], multiplying: Flags) -> int:
    """Count multiplying layers on the longest path through the network: 50 of ResNet-50's 54.

    Layers beside that path, such as projections on shortcuts, do not count.
    """
    depths = [0] * (len(inputs) + 1)  # the sample's is last
    for layer, positions in enumerate(inputs):
        depths[layer] = max(depths[position] for position in positions) + int(multiplying[layer])
    assert depths[SAMPLE] == 0
    return max(depths)


def pad_dimensions(sizes: tuple[float, ...]) -> tuple[float, float, float]:
    """Return sizes along d, h, w, with 1 for missing dimensions."""
    d, h, w = (1,) * (DIMENSIONS - len(sizes)) + sizes
    return d, h, w


def _expect_countable(layers: Sequence[Layer]) -> None:
    if not layers:
        raise InputError("no layers", advice="give the network at least one that computes")
    if len(layers) > MOST_LAYERS:
        raise InputError(f"expected at most {MOST_LAYERS:,} layers, got {len(layers):,}")
    for layer in layers:
        for name in ("x", "y", "w", "flops"):
            if not getattr(layer, name) <= MOST_COUNT:  # which NaN fails, too
                what = f"expected at most {MOST_COUNT:g} of {COUNTED[name]}"
                raise InputError(what, where=f"layer {shorten(layer.name)}")
