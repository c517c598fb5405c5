"""Room: memory that numpy fills and JAX takes as it is, again and again."""

import math
import weakref
from collections import defaultdict

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

Singles = NDArray[np.float32]

# JAX takes numpy's arrays without a copy where they begin at a multiple of so many bytes.
ALIGNMENT = 64


class Room:
    """Memory of arrays, used again once nobody, and no program, has the last array in it.

    The system fills new memory with zeros first: of 65,536 rows of 173 features, 13 ms, and to fill
    it with features takes as long.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Singles]] = defaultdict(list)

    def take(self, shape: tuple[int, ...]) -> Singles:
        """An array of any numbers."""
        count = math.prod(shape)
        free = self._free[count]
        memory = free.pop() if free else np.empty(count + ALIGNMENT // 4, np.float32)
        first = -memory.ctypes.data % ALIGNMENT
        # Of a memory's view, and not of an array: then all views of it keep this one.
        room = np.frombuffer(memoryview(memory.data), np.float32, count, first)
        weakref.finalize(room, free.append, memory).atexit = False
        return room.reshape(shape)


def hand_over(filled: list[Singles]) -> list[Array]:
    """The same numbers as JAX's, not copied where programs run on the processor."""
    handed: list[Array] = jax.device_put(filled, may_alias=True)
    return handed
