"""How a sample flows through a network: what follows from which layer reads which.

Layers stand in an order in which a sample meets them, and read layers before them: `inputs` has the
positions of the layers that made what each of them reads, -1 for the sample.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grids.models.liveness import SAMPLE

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def count_crossing(inputs: Sequence[Sequence[int]], sample: float, y: Floats) -> Floats:
    """Items a sample [G] that cross a cut behind each layer: a chain's y, 0 behind the last.

    A tensor made at or before the cut that a later layer reads crosses it, once: inside a residual
    block the shortcut does, too. sample, y: items of the sample, and of each output [G].
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
    return np.cumsum(change)


def find_depth(inputs: Sequence[Sequence[int]], multiplying: Flags) -> int:
    """Multiplying layers on the longest way through the network, 50 of ResNet-50's 54.

    What lies beside it makes it no longer: a projection on a shortcut, a branch of a block.
    """
    depths = [0] * (len(inputs) + 1)  # the sample's stands last
    for layer, positions in enumerate(inputs):
        depths[layer] = max(depths[each] for each in positions) + int(multiplying[layer])
    assert depths[SAMPLE] == 0
    return max(depths)
