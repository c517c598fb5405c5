"""Memory: bytes that the fullest PE needs.

ParaDL, Table III, column Maximum Memory: gamma delta (2b (|x|+|y|) + 2|w| + |bi|): every activation
and weight with its gradient, every bias; gamma in (0, 1] is the part that buffer reuse leaves.
"""

from kernels.arrays import Cells
from kernels.group import GroupWork


def memory(work: GroupWork, delta: Cells, gamma: Cells) -> Cells:
    """Bytes of the fullest PE, `delta` bytes an item."""
    return gamma * delta * work.memory_items
