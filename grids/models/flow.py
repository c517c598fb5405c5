"""The flow of a sample through a network: what crosses a cut, what is kept, how deep it is.

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
from typing import Any

import numpy as np

from paradl.grids.models.kinds import LayerKind
from paradl.kernels.names.arrays import Flags, Floats

SAMPLE = -1  # the sample's position


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


def count_kept_items(
    kinds: Sequence[LayerKind], inputs: Sequence[Sequence[int]], sample: float, y: Floats
) -> Floats:
    """Count items per sample [G] kept of each layer's output; the sample counts with the first.

    States carried from one position to the next are included. inputs: positions of the layers that
    each layer reads. sample, y: items of the sample, of each output [G].
    """
    kept = find_kept(kinds, inputs)
    items = np.where(kept[:SAMPLE], y, 0.0) + np.array([kind.carried for kind in kinds]) * y
    items[0] += sample * kept[SAMPLE]
    return items


def find_kept(kinds: Sequence[LayerKind], inputs: Sequence[Sequence[int]]) -> Flags:
    """Find the outputs that the backward pass reads; the sample comes last, where -1 points."""
    kept = np.array([*(kind.keeps_output for kind in kinds), False])
    for kind, positions in zip(kinds, inputs, strict=True):
        if kind.keeps_input:
            kept[list(positions)] = True
    return kept


def find_rerun(kinds: Sequence[LayerKind], inputs: Sequence[Sequence[int]]) -> Flags:
    """Find the cheap layers [G] that run again in the backward pass if it keeps no cheap output.

    They follow from outputs that are kept anyway, and the backward pass reads what they make or
    what follows from it. A ReLU that works in place on a convolution's output is kept in its stead.
    """
    kept, again = find_kept(kinds, inputs), np.zeros(len(kinds) + 1, bool)
    for layer, (kind, positions) in enumerate(zip(kinds, inputs, strict=True)):
        again[layer] = kind.cheap and all(again[p] or kept[p] for p in positions)
    needed = kept | np.array([*(kind.remembered > 0 for kind in kinds), False])
    for layer in reversed(range(len(kinds))):
        again[layer] &= needed[layer]
        if again[layer]:
            needed[list(inputs[layer])] = True
    return again[:SAMPLE]


def count_rerun(
    kinds: Sequence[LayerKind], inputs: Sequence[Sequence[int]], again: Flags, sizes: Floats
) -> Floats:
    """Sum sizes of what runs again for the backward pass of each layer, all there at once [G].

    again: layers that run again; sizes: of what these would otherwise keep [G].
    """
    there = np.zeros(len(kinds) + 1)
    for layer, (kind, positions) in enumerate(zip(kinds, inputs, strict=True)):
        if again[layer] or kind.keeps_input:
            before = (there[p] for p in {*positions} - {SAMPLE} if again[p])
            there[layer] = sizes[layer] + sum(before)
    return there[:SAMPLE]
