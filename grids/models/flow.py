"""The flow of a sample through a network: what crosses a cut, what is kept, how deep it is.

Layers stand in an order in which a sample meets them, and read layers before them: `inputs` has the
positions of the layers that made what each of them reads, -1 for the sample.

The backward pass reads a part of what the forward pass made: until then that part is memory. A
tensor is kept, once, where a layer that reads it needs its input, or the layer that made it its
output (grids/models/kinds.py). It belongs to the layer that made it, the sample to the first one.
Additions and concatenations need neither, but a concatenation is a copy: where a ReLU ends in one
before a convolution, ReLU's output is kept, and the copy is, too.

A ReLU is in place where it alone reads a tensor that nobody needs: its output, which is kept,
takes that tensor's memory. Where another layer reads the tensor, too, or its maker needs it (a ReLU
behind a ReLU), it must not be overwritten, and ReLU's output is another one. One rule counts both
right: of two tensors that share memory, only the output is needed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.models.kinds import LayerKind

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SAMPLE = -1  # as a position: what no layer made


def count_crossing(inputs: Sequence[Sequence[int]], sample: Any, y: Floats) -> Floats:
    """Items a sample [G, ...] that cross a cut behind each layer: a chain's y, 0 behind the last.

    A tensor made at or before the cut that a later layer reads crosses it, once: inside a residual
    block the shortcut does, too. sample, y: items of the sample [...], and of each output [G, ...].
    """
    # Each layer's own position: until then a tensor that nobody reads is there. The sample stands
    # last, where its position -1 points, and is there before the first layer.
    last_reader = [*range(len(inputs)), 0]
    for reader, positions in enumerate(inputs):
        for position in positions:
            last_reader[position] = max(last_reader[position], reader)
    change = y.copy()
    change[0] += sample
    np.subtract.at(change, last_reader, [*y, sample])
    return np.cumsum(change, axis=0)


def find_depth(inputs: Sequence[Sequence[int]], multiplying: Flags) -> int:
    """Multiplying layers on the longest way through the network, 50 of ResNet-50's 54.

    What lies beside it makes it no longer: a projection on a shortcut, a branch of a block.
    """
    depths = [0] * (len(inputs) + 1)  # the sample's stands last
    for layer, positions in enumerate(inputs):
        depths[layer] = max(depths[position] for position in positions) + int(multiplying[layer])
    assert depths[SAMPLE] == 0
    return max(depths)


def count_kept_items(
    kinds: Sequence[LayerKind], inputs: Sequence[Sequence[int]], sample: float, y: Floats
) -> Floats:
    """Items a sample [G] that are kept of each layer's output, and of the sample with the first.

    And the states that a layer carries from one position to the next, which are no tensor of it.

    inputs: the positions of the layers that made what each layer reads. sample, y: items of the
    sample, of each output [G].
    """
    # One more than there are layers: the sample stands last, where its position -1 points.
    kept = np.array([*(kind.keeps_output for kind in kinds), False])
    for kind, positions in zip(kinds, inputs, strict=True):
        if kind.keeps_input:
            kept[list(positions)] = True
    items = np.where(kept[:SAMPLE], y, 0.0) + np.array([kind.carried for kind in kinds]) * y
    items[0] += sample * kept[SAMPLE]
    return items


def count_kept_bytes(kinds: Sequence[LayerKind], y: Floats) -> Floats:
    """Bytes a sample [G] that each layer remembers besides tensors, whatever the precision."""
    return np.array([kind.remembered for kind in kinds]) * y
